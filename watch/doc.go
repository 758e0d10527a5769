// Package watch tells the parent about prompts that have settled, each watcher exactly once
// for each of its prompts, without anybody waiting.
//
// A watcher is a one-shot subscription to one or more prompts. [Service.Watch] returns at
// once with what has settled already; what settles from then on is gathered for a short
// window, sorted by the order in which the prompts were named, and offered to the
// [Notifier] as one notification. A notification that is not taken is offered again, under
// the same id, as ruling R9 says; what could not be delivered can be listed, and every
// result stays in the registry whatever the notifier does.
//
// # Goroutines
//
// One for each watcher that has something pending, and for each offer one that calls the
// notifier, so that a notifier which hangs delays nobody but its own watcher.
// [Service.Close] waits for the first kind, and for the second as long as its ctx allows.
// Watchers do not wait for each other, so a notifier must bear overlapping calls.
package watch
