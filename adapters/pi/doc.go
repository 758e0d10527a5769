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
// # Goroutines
//
//	one listener for each open link            until Close or Detach, which wait for it
//	one reader for each connection             until that ends, or Close or Detach
package pi
