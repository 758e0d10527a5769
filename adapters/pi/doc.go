// Package pi is shepherd's side of the pi coding agent, 1.3.0 and newer.
//
// # Children
//
// [Links] connects a host with the pi children that it starts in panes. Each child runs a
// small extension (extension/child.ts, embedded here), which connects to a unix socket in
// the child's launch directory:
//
//	host                                      child
//	Open: directory, token, socket
//	Launch: environment and arguments  ──►    pi -na -e child.ts --session …
//	                                   ◄──    hello: token, process id, whole level
//	Send: prompt                       ──►    sendUserMessage, byte for byte
//	                                   ◄──    answer: taken, or refused and why
//	                                   ◄──    started … settled: the level, with the signal
//	Stored: a file in the directory    ◄──    each ending, written before it is told
//
// A hello means that the child can take a prompt. What is final is pi's settled event
// (ruling R4), with the last message that belongs to the prompt, found by the marker line
// that package turns puts in front of it. The connection's end is a hint that pi is gone; a
// child whose host comes back connects again, and its hello tells everything.
//
// The launch directory has mode 0700 and a name that cannot be guessed; the files in it have
// 0600. It holds the extension, the token, what goes into the agent's system prompt, the
// socket, the newest ending, and the child's session, which so stays out of the user's
// list. It lives until Close.
//
// Children keep the user's own extensions, unless Spec.Args says `-ne`. The extension's tool,
// shepherd_done, has a name that no tool of a parent has, and is registered late, so that
// even a clash does not keep a child from starting. `-na` answers the question whether to
// trust the project with no: its .pi folder is left alone. A question that somebody's
// extension asks at the start holds the hello up no more than any other.
//
// # Parents
//
// [Serve] is the host of a parent pi: its model gets shepherd's tools, and is told what its
// agents have done. pi runs a small extension (extension/parent.ts), which starts the host
// and talks JSON-RPC 2.0 lines with it:
//
//	pi, with the extension                       host
//	first need: spawn, detached        ──►       Serve: hello, protocol and tools compared
//	session: id, file, mode, seen      ──►       one Shepherd for each session and project
//	                                   ◄──       again: notices of the ledger without a receipt
//	tool call                          ──►       shepherd.Tools, and four of the host's
//	                                   ◄──       watch, herd: what to show and to carry on
//	                                   ◄──       notice ── in the ledger before it is sent
//	queue; while idle: one message
//	receipt: it stands in the session  ──►       struck from the ledger
//	leave: new, resume, fork, quit     ──►       watches released, agents go on
//	end of file                        ──►       Close, as ruling R13 says
//
// A notice is delivered exactly once, whichever side dies: the extension knows notices by
// their ids and reads in the session which ones it has; what neither it nor the ledger has
// was never offered. Of two pis on one session the first has the ledger, by a kernel lock.
// The ledger is one small file for each session, in .shepherd/pi of the project. If the disk
// refuses it, notices are sent all the same.
//
// [ServeSocket] serves pis that find a host running. [InstallExtension] puts the extension
// where pi finds it.
//
// # Goroutines
//
//	one listener for each open link            until Close or Detach, which wait for it
//	one reader for each connection             until that ends, or Close or Detach
//	a host: one for each call under way        until it is answered; cancelled by the end
//	one for each agent, for the widget         until the agent is gone, or the host closes
//	one for each session, for the widget       until the host closes
//	one for each session that is left          0.15 s, then its watches are released; waited
//	                                           for by the session's return and by the end
package pi
