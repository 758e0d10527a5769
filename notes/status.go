package notes

import "time"

// Status is where a note's work stands.
type Status string

// The statuses of a note.
const (
	Pending     Status = "pending"     // reserved; nothing was submitted yet
	Running     Status = "running"     // handed to its agent
	Detached    Status = "detached"    // handed to its agent, and nobody is watching it now (ruling R13)
	Completed   Status = "completed"   // ended well
	Failed      Status = "failed"      // ended badly
	Blocked     Status = "blocked"     // the agent waits for a human
	TimedOut    Status = "timed-out"   // given up after its time
	Cancelled   Status = "cancelled"   // stopped on purpose, or never begun
	Interrupted Status = "interrupted" // its process died and its agent is gone (ruling R14)
)

// Final reports whether the status ends a note. The others can still change.
func (s Status) Final() bool {
	switch s {
	case Completed, Failed, Blocked, TimedOut, Cancelled, Interrupted:
		return true
	}
	return false
}

// Known reports whether the status is one of those above.
func (s Status) Known() bool {
	return s == Pending || s == Running || s == Detached || s.Final()
}

// Outcome is how a prompt ended.
type Outcome struct {
	// Status is a final one, or Detached: then nothing has ended, and the note can be
	// finalised later.
	Status Status
	// Text is the agent's final output. It is kept byte for byte; bytes that are not
	// UTF-8 are replaced.
	Text string
	// Error says what went wrong, in any number of lines.
	Error      string
	ReturnCode int
	// At is when it ended. Zero means now.
	At time.Time
	// Inferred: nobody said that it ended; it was concluded from the agent's state.
	Inferred bool
}

// Plan is one note to be reserved.
type Plan struct {
	Agent   string // required: which agent, "scout"; the note is named after it
	Label   string // what this one is for; any text
	Task    string // what it has to do, for human readers; cut where it is shown
	Mode    string // "" is "lifecycle"
	Pane    string // where the agent lives, once it is known: a pane, a process
	AgentID string // the agent's id, written as handle
	// PromptID is the prompt's id: what a later process needs to ask about it.
	PromptID string
	// Start also starts the note, in the same transaction: it is running from the first.
	Start bool
}

const defaultMode = "lifecycle"
