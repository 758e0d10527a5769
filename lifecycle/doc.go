// Package lifecycle owns agents and prompts: it starts agents, gives each prompt one
// owner, decides when a prompt has ended, and publishes every ending exactly once.
//
// # The life of a prompt
//
//	claimed ──► in flight ──► decided ──► published
//	   └──────────────────────────▲        (released, refused, or the agent closed)
//
// [Registry.Claim] takes the agent's one slot. [Claim.Submit] hands the text to the agent
// through the [Herdr] port; from then on one goroutine owns the prompt. It watches the
// agent's level, lets a pure function decide, finishes the prompt's note, frees the slot
// and only then publishes, so whoever learns of a result can read its note and can prompt
// the agent again at once. Deadlines, waits and closing never end a prompt themselves:
// they propose an end, and the first proposal wins.
//
// # Goroutines
//
// One owner for each prompt in flight, and for each ending one short helper that writes
// the note so that a hung disk cannot hold the ending up. [Registry.Close] waits for both.
// An idle agent costs none.
//
// # Testing
//
// Package lifecycletest has an in-memory Herdr that a test drives, the suite that every
// Herdr has to pass, and a wrapper that makes any Herdr fail on purpose. The default clock
// is the system's, so everything here runs inside a testing/synctest bubble.
package lifecycle
