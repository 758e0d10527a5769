package lifecycle

import "time"

// Status is how a prompt ended. The first ending is final.
type Status string

// The endings of a prompt. Idle and done are the same ending, known in two ways.
const (
	StatusDone      Status = "done"      // the agent said so
	StatusIdle      Status = "idle"      // the agent came to rest after work; inferred (ruling R3)
	StatusBlocked   Status = "blocked"   // the agent waits for an answer of a human (ruling R5)
	StatusFailed    Status = "failed"    // the agent's error, its end, or a refused submission
	StatusTimeout   Status = "timeout"   // a deadline, a wait's limit, or no sign of a start (rulings R7, R12)
	StatusCancelled Status = "cancelled" // closed by us, or interrupted in the agent's own place (ruling R10)

	// StatusDetached is seen by notes only: the registry was closed while the prompt was in
	// flight, and its agent was left alone (ruling R13).
	StatusDetached Status = "detached"
	// StatusInterrupted is seen in resumed notes only: the process that owned the prompt
	// died, and so did its agent (ruling R14).
	StatusInterrupted Status = "interrupted"
)

// OK reports whether the status is a success.
func (s Status) OK() bool { return s == StatusDone || s == StatusIdle }

// ReturnCode is the status as a process would return it: 0 for done and idle, 1 failed,
// 2 blocked, 124 timeout, 129 interrupted, 130 cancelled, and -1 for what is no ending.
func (s Status) ReturnCode() int {
	switch s {
	case StatusDone, StatusIdle:
		return 0
	case StatusFailed:
		return 1
	case StatusBlocked:
		return 2
	case StatusTimeout:
		return 124
	case StatusInterrupted:
		return 129
	case StatusCancelled:
		return 130
	}
	return -1
}

// Result is what became of a prompt. A failed prompt is a result, not an error.
type Result struct {
	PromptID   PromptID
	AgentID    AgentID
	Agent      string // the agent's name
	Label      string // the agent's, possibly empty
	Status     Status
	ReturnCode int    // the agent's own, else the status's
	Text       string // the last assistant message, whole; "" when there is none
	Error      string // why, for everything that is not a success
	Inferred   bool   // settled by the agent's state, not by its word (ruling R3)
	At         time.Time

	NotePath string // the prompt's note, "" without one
	NoteErr  error  // why the note could not be finished or read; the result stands all the same

	Waited  bool // a wait had returned this result before
	Late    bool // given to notes only: the ending came after the prompt had been settled (ruling R12)
	Running bool // only from a wait that keeps: the time was up, and the prompt goes on (ruling R12)
}

// OK reports whether the prompt succeeded.
func (r Result) OK() bool { return r.Status.OK() }
