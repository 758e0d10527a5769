// Package shepherd is the facade: one parent, its agents, and the notes of all their work.
//
// A host makes one [Shepherd] for each parent and project, out of three ports and a
// notifier ([Config]). Then, in the order in which a reader meets them:
//
//	Start      launches an agent, a sheep, in a place of its own
//	Prompt     hands it work and returns at once; the work has a note by then
//	Watch      returns at once too; the notifier is told when the prompt has settled
//	Wait       blocks for the result instead, at any time, as often as wanted
//	CloseAgent ends a sheep; Close ends the Shepherd
//
// # The journey of a prompt
//
//	Prompt
//	  1  lifecycle  Claim     the agent's one slot; busy, blocked or gone is refused here
//	  2  notes      Reserve   the note is numbered, written and indexed
//	  3  lifecycle  Submit    the text is handed over; one goroutine owns the prompt now
//	◄── prompt id, note path
//	  4  lifecycle  observes the agent until a pure function says that the prompt has ended
//	  5  notes      Finalize  what the child wrote is kept, the outcome is added
//	  6  lifecycle  publishes to every Wait, and to watch, which tells the notifier
//
// Observation begins at the submission of every prompt, whether or not anybody waits or
// watches, so a completion that comes fast is never lost. [Prompt] and the other facade
// files hold the calls; record.go is the one place where a prompt and a note meet.
//
// # For models
//
// [Shepherd.Tools] lists the same operations as data: names, descriptions, schemas and
// functions, for any host that hands tools to a model.
//
// # Testing a host
//
// Package shepherdtest wires a Shepherd to in-memory everything. No process, no disk and,
// inside a testing/synctest bubble, no time passes.
package shepherd
