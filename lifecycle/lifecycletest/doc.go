// Package lifecycletest helps to test with package lifecycle: an in-memory Herdr that a test
// drives ([Herdr]), the suite that every Herdr has to pass ([TestHerdr]), a wrapper that
// makes any Herdr fail on purpose ([Faults]), and one that watches the calls ([Verify]).
//
// All of it may be used from many goroutines, and inside a testing/synctest bubble.
package lifecycletest
