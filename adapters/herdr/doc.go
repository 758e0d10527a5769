// Package herdr runs agents in panes of a Herdr server, over its socket. It implements
// [lifecycle.Herdr] and starts no process of its own, but for a server if it is asked to.
//
//	h := herdr.New(herdr.Options{Links: pi.Links()})
//	defer h.Detach()
//
// Two things are known of an agent, and they have different uses:
//
//	the child's link   pi's own word, over a socket in a private directory. It takes the
//	                   prompts, byte for byte, and alone says how they end (ruling R2).
//	Herdr              where the pane is, whether it is there, who runs in it. Its status
//	                   (working, idle, done) counts for agents without a link, and for a
//	                   child whose link is lost, and settles by ruling R3 only.
//
// A pi 1.6 is never working for Herdr unless Herdr's own integration is installed in it. So
// without Options.Links a prompt to such a pi ends as "no sign of a start", which is all
// that can be said.
//
//	Launch ──► ping, directory and depth checked
//	           link opened · recorded · tab.create (or pane.split, workspace.create)
//	           agent.start, again while the shell is busy ──► ready at the link's hello
//	Submit ──► link (or agent.prompt, and one Enter if the text stays unsent)
//	Observe ◄─ link events ┐
//	           one subscription for ends and moves of panes ──► a reading of that pane
//	           one subscription for status, of panes that have no link ──► likewise
//	           a reading of everything every 15 s (ruling R1)
//	Close  ──► pane.close, if the pane is proved to be ours
//
// # What holds
//
//   - Readings are the truth and events are a hint: an event only makes its pane be read.
//     So replayed, late, reordered and lost ones do no harm.
//   - A pane is ours when its terminal is the one that we made, or when our child is proved to
//     be in it: its link is open, or its process is there. A pane that was moved is followed;
//     a live handoff is survived; after a restart the pane of the same name is somebody
//     else's, and is never closed.
//   - Each request has its own connection and its own limit of time, so one that is never
//     answered holds up nobody else. Requests that are lost are looked after before anything
//     is done again. A text is never sent twice.
//   - While the server cannot be reached, agents without a link are Unknown. Those with one go
//     on as before.
//   - Values go to Herdr as JSON and never through a shell, but for Spec.Args, which Herdr
//     types into the pane's shell, quoted; control characters are refused there.
//
// Protocols from 17 (Herdr 0.7.5) on are accepted, 19 and 20 (0.8) were tried, newer ones are
// never refused.
//
// # Trying it
//
// The tests run on herdrtest's fake server, with scripted agents and, where `make pi` has
// installed one, with real pi children in pseudo-terminals. With a herdr on PATH
//
//	go test ./adapters/herdr -run Live -v
//
// runs lifecycle's suite, the watcher spec's list and the faults on that one, in directories
// of its own; without one it is skipped.
//
// # Goroutines
//
//	goroutine                        started by        ends when                waited for by
//	lifecycle subscription + reader  the first agent   the last one is closed   Close, CloseAll, Detach
//	status subscription + reader     the first agent   the last one is closed   likewise
//	reading of everything            the first agent   the last one is closed   likewise
//	reading of one pane              an event          it is read               CloseAll, Detach
//	looks after a lost link          the link's loss   3.3 s later at most      CloseAll, Detach
//	one Enter                        Submit, no link   5 s later, or work seen  CloseAll, Detach
//	wait for a started server        Launch            that server ends         nobody: it is not ours
package herdr
