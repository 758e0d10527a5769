// Package herdrtest is a Herdr for tests: a server that speaks Herdr's socket API over a real
// unix socket, with agents that do what a prompt says (see [Obey]) or real programs in
// pseudo-terminals, and with every bad habit of the real one, on demand.
//
//	s := herdrtest.Start(t, herdrtest.Options{})
//	h := herdr.New(herdr.Options{Socket: s.Socket, Links: s.Links()})
//
// It is held to recorded exchanges with a Herdr 0.8.0 (protocol 20). What it does not know
// it refuses as Herdr refuses what it does not know.
//
// # What is like the real one
//
//   - One request on each connection, one line back, end of file. A request line above 1 MiB,
//     a blank one and one that is not UTF-8 are hung up on. A request that is not understood
//     is answered under an empty id.
//   - A subscription replays what is still in the ring of 512 events, one line for each
//     entry and tick; it ends at the first byte that its client writes. Entries about a pane
//     begin now and fall silent when the pane ends.
//   - A new pane's shell is busy for a while; an agent is pending for a while; Enter follows
//     a prompt's text later; a start answers at once and fails in silence.
//
// # What is not
//
// The durations are shorter unless Options say otherwise, there are no layouts, and the
// screen of a program is its output without control sequences.
package herdrtest
