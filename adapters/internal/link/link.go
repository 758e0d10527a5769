// Package link is where the two halves of a child in a pane meet: who makes panes
// (adapters/herdr) and who can talk with the program inside (adapters/pi). Neither
// imports the other.
//
// A link is the child's own word. Where there is one, it alone settles prompts (ruling R2):
// the text of the child's last message, what is final, and whether a dialog waits are known
// to the child and only guessed at from its pane.
package link

import (
	"context"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Links makes the links of one kind of agent. Its methods may be called from many
// goroutines at once.
type Links interface {
	// Open makes a private place (mode 0700) for the child that s describes and listens
	// there. It does not wait for the child. on is told the child's whole level each time
	// it changes, in order and never concurrently; it does not block. On error nothing is
	// left; ctx governs the call alone.
	Open(ctx context.Context, s lifecycle.Spec, on func(Event)) (Link, error)

	// Reopen listens again in the directory of an earlier link, whose child may still be
	// there and will then connect by itself.
	Reopen(ctx context.Context, dir string, on func(Event)) (Link, error)
}

// Link is one child's link. Its methods may be called from many goroutines at once.
type Link interface {
	// Dir is the private directory, to be recorded and given to Reopen.
	Dir() string

	// Launch returns what the child's environment and arguments need so that it connects.
	// The environment holds a secret: it is not to be logged or recorded. The arguments go
	// through a shell's input line: they have no control characters, so no newlines.
	Launch() (env map[string]string, args []string)

	// Send returns when the child has accepted the prompt. It ends with its ctx. Errors are
	// those of lifecycle.Herdr.Submit: lifecycle.ErrAgentBusy, lifecycle.ErrOutcomeUnknown,
	// and with any other the text has not arrived.
	Send(ctx context.Context, s lifecycle.Submission) error

	// Stored returns the final signal that the child left on disk for the prompt, if there
	// is one. It reads a small file and does not wait.
	Stored(p lifecycle.PromptID) (lifecycle.Signal, bool)

	// Close stops listening, removes the directory and returns once on is called no more.
	// Closing twice is fine.
	Close() error
}

// Event is the child's whole level, not a change: the newest one alone is enough.
type Event struct {
	Up      bool             // the child is connected
	PID     int              // its process id, from the hello; kept when the link is lost
	Busy    bool             // a turn is running, ours or a human's
	Dialog  bool             // it waits for an answer of a human
	Turns   uint64           // turns it has begun; the child's count, which starts anew with the child
	Current lifecycle.Signal // the newest word about the prompt last sent
}

// Detacher is a [Link] that can be let go without being undone: Detach stops listening and
// leaves the directory, so that a child that works on finds its place and a later Reopen
// finds the child (ruling R13).
type Detacher interface{ Detach() error }

// Replier is a [Link] that can read the child's last message for a prompt out of what the
// child keeps itself (its session file). It returns "" when there is none to be had.
type Replier interface {
	Reply(ctx context.Context, p lifecycle.PromptID) (string, error)
}
