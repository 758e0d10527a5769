package shepherd

import (
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// What crosses the facade, so that a host imports one package.
type (
	AgentID  = lifecycle.AgentID
	PromptID = lifecycle.PromptID
	WatchID  = watch.ID

	Spec        = lifecycle.Spec
	AgentStatus = lifecycle.AgentStatus
	State       = lifecycle.State
	Status      = lifecycle.Status
	Result      = lifecycle.Result
	Rules       = lifecycle.Rules
	WaitOptions = lifecycle.WaitOptions

	Registration = watch.Registration
	Notification = watch.Notification
	Completion   = watch.Completion
	Undelivered  = watch.Undelivered
	NotifierFunc = watch.NotifierFunc

	Unfinished = notes.Unfinished
)

// How a prompt can end.
const (
	StatusDone      = lifecycle.StatusDone
	StatusIdle      = lifecycle.StatusIdle
	StatusBlocked   = lifecycle.StatusBlocked
	StatusFailed    = lifecycle.StatusFailed
	StatusTimeout   = lifecycle.StatusTimeout
	StatusCancelled = lifecycle.StatusCancelled
)

// What an agent can be doing.
const (
	Unknown = lifecycle.Unknown
	Idle    = lifecycle.Idle
	Working = lifecycle.Working
	Blocked = lifecycle.Blocked
	Gone    = lifecycle.Gone
)

// Errors that a caller may branch on; what each means is said where it is declared.
var (
	ErrInvalid       = lifecycle.ErrInvalid
	ErrUnknownAgent  = lifecycle.ErrUnknownAgent
	ErrUnknownPrompt = lifecycle.ErrUnknownPrompt
	ErrAgentBusy     = lifecycle.ErrAgentBusy
	ErrAgentBlocked  = lifecycle.ErrAgentBlocked
	ErrAgentClosed   = lifecycle.ErrAgentClosed
	ErrAgentGone     = lifecycle.ErrAgentGone
	ErrTooManyAgents = lifecycle.ErrTooManyAgents
	ErrLabelTaken    = lifecycle.ErrLabelTaken
	ErrClosed        = lifecycle.ErrClosed

	ErrUnknownWatcher = watch.ErrUnknownWatcher
	ErrUnreachable    = watch.ErrUnreachable
	ErrSessionOver    = watch.ErrSessionOver

	ErrNewerVersion = notes.ErrNewerVersion
	ErrSessionGone  = notes.ErrSessionGone
)

// Parent is a fixed identity of whoever gives the orders: any text that is the same after a
// restart and different from everybody else's in the project. It is stored as a hash.
func Parent(identity string) notes.ParentIdentity { return notes.Identity(identity) }

// EphemeralParent is an identity made up for a parent that has none of its own. Its note
// session is never resumed.
func EphemeralParent() notes.ParentIdentity { return notes.Ephemeral() }
