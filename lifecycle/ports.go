package lifecycle

import (
	"context"
	"time"
)

// Herdr is what lifecycle needs of the place where agents live. All methods may be called
// from many goroutines at once, also for one target.
//
// An implementation keeps one level for each target (see [Level]) and reports levels, not
// edges: a reader that comes late sees what an early one saw.
type Herdr interface {
	// Launch makes a background place for the agent and returns once it can take a
	// prompt. It steals no focus. On error, and when ctx ends first, nothing of it is left.
	Launch(ctx context.Context, s Spec) (Target, error)

	// Submit returns when the text has been accepted, not when the agent has answered. It
	// sends at most once and ends with its ctx.
	//
	// Errors: [ErrAgentBusy] when the agent refused because it is at work; [ErrAgentGone]
	// when there is no agent any more; [ErrOutcomeUnknown] when the text may or may not
	// have arrived. With any other error the text has not arrived.
	Submit(ctx context.Context, t Target, s Submission) error

	// Observe never blocks. It returns the newest level and a channel that is closed when
	// the level changes. Lost connections are the implementation's to mend; while it
	// cannot see, State is Unknown. A target that it does not know is Gone.
	Observe(t Target) (o Observation, changed <-chan struct{})

	// Look asks the source and folds what it finds into the level, which it returns.
	// Finding nothing new wakes nobody. It ends with its ctx. An error means that the
	// source could not be asked; it says nothing about the agent.
	Look(ctx context.Context, t Target) (Observation, error)

	// Reply returns the agent's last message for the prompt, or "" when there is none to
	// be had. It ends with its ctx.
	Reply(ctx context.Context, t Target, p PromptID) (string, error)

	// Close closes what Launch made, and nothing else. Closing twice is fine, and so is
	// closing what is gone already.
	Close(ctx context.Context, t Target) error
}

// OutputReader is what a [Herdr] may have as well: a look at what an agent has been saying.
type OutputReader interface {
	// Recent returns the end of the agent's output, some kilobytes at most, as text for
	// people. It ends with its ctx. A target that is not known is [ErrAgentGone].
	Recent(ctx context.Context, t Target) (string, error)
}

// Clock is time as lifecycle needs it. [System] is the default.
type Clock interface {
	Now() time.Time
	// After is like time.After: its channel gets one value once d has passed.
	After(d time.Duration) <-chan time.Time
}

// System is the system's clock.
type System struct{}

// Now is time.Now.
func (System) Now() time.Time { return time.Now() }

// After is time.After.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Target names a place that a Herdr made, in the adapter's own words: opaque here, short,
// printable and storable ("pid:4711", "w8:pY"). It is shown in notes as their pane.
type Target string

// Spec says which agent to start.
type Spec struct {
	ID    AgentID           // set by the registry, before Launch
	Name  string            // required: which agent, "scout"; at most 64 printable characters
	Label string            // optional: what this one is for; at most 64 printable characters
	Kind  string            // the program: "" is the adapter's default (pi)
	Dir   string            // the agent's working directory, absolute; "" is the adapter's default
	Env   map[string]string // added to the agent's environment
	Args  []string          // added to the program's arguments
}

// Submission is one prompt on its way to an agent. The adapter may put a line around the
// text by which it knows the prompt again; the text itself arrives byte for byte.
type Submission struct {
	Prompt PromptID
	Text   string
}

// Observation is the level of one agent: what is true of it now, as far as can be seen.
type Observation struct {
	State  State
	Since  time.Time // when State became what it is
	Seen   time.Time // the last sign of life; a newer one alone wakes nobody
	Turns  uint64    // turns seen to begin, also those a human began; never goes down
	Link   Link
	Signal Signal // the newest word about the prompt last submitted; kept until the next Submit
	Detail string // Gone: how ("pane closed", "exit status 137")
}

// State is what an agent is doing.
type State uint8

// The states of an agent. Unknown also stands for "cannot be seen at the moment".
const (
	Unknown State = iota
	Idle
	Working
	Blocked // waits for an answer of a human
	Gone    // the agent or its place does not exist any more
)

var stateNames = [...]string{"unknown", "idle", "working", "blocked", "gone"}

func (s State) String() string { return nameOf(stateNames[:], uint8(s)) }

// Link says whether the agent itself tells us how its prompts end.
type Link uint8

// The states of a link.
const (
	NoLink   Link = iota // this kind of agent has none: its state is all there is
	LinkUp               // its signals alone settle (ruling R2)
	LinkLost             // it had one, and the connection is down
)

var linkNames = [...]string{"no link", "link up", "link lost"}

func (l Link) String() string { return nameOf(linkNames[:], uint8(l)) }

// Signal is the agent's own word about one of our prompts. Whatever else happens in the
// agent's place, a turn that a human began for example, moves State and Turns only.
type Signal struct {
	Prompt PromptID
	Kind   SignalKind
	Text   string    // the last assistant message that belongs to the prompt
	Error  string    // Failed: the provider's or the agent's message
	Code   *int      // the return code that the agent chose; nil: the one of the status
	At     time.Time // when it was given
}

// SignalKind is what a signal says.
type SignalKind uint8

// The kinds of signals. Finished, Failed and Aborted are final.
const (
	NoSignal SignalKind = iota
	Started             // the prompt's own turn has begun
	Finished            // the agent has settled, with an answer
	Failed              // the agent has settled, with an error
	Aborted             // the turn was interrupted, in the agent's own place
)

var signalNames = [...]string{"none", "started", "finished", "failed", "aborted"}

func (k SignalKind) String() string { return nameOf(signalNames[:], uint8(k)) }

// Final reports whether the signal ends its prompt.
func (s Signal) Final() bool { return s.Kind >= Finished }

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "invalid"
}
