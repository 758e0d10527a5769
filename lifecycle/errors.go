package lifecycle

import "errors"

// Errors that a caller may branch on, always wrapped with the id they are about.
var (
	// ErrUnknownAgent: no agent of this registry has the id.
	ErrUnknownAgent = errors.New("lifecycle: unknown agent")
	// ErrUnknownPrompt: no prompt of this registry has the id.
	ErrUnknownPrompt = errors.New("lifecycle: unknown prompt")
	// ErrAgentBusy: the agent has an unresolved prompt, or works on something a human
	// began. Try again when it is idle (ruling R8).
	ErrAgentBusy = errors.New("lifecycle: agent is busy")
	// ErrAgentBlocked: the agent waits for an answer in its place; a human has to give it.
	ErrAgentBlocked = errors.New("lifecycle: agent is blocked")
	// ErrAgentClosed: the agent was closed by us. Start another one.
	ErrAgentClosed = errors.New("lifecycle: agent is closed")
	// ErrAgentGone: the agent ended by itself or by somebody else's hand.
	ErrAgentGone = errors.New("lifecycle: agent is gone")
	// ErrTooManyAgents: the limit on agents at once is reached. Close one first.
	ErrTooManyAgents = errors.New("lifecycle: too many agents")
	// ErrLabelTaken: a living agent has the same name and label.
	ErrLabelTaken = errors.New("lifecycle: label is taken")
	// ErrInvalid: an argument cannot be used as it is; the message says which and why.
	ErrInvalid = errors.New("lifecycle: invalid argument")
	// ErrOutcomeUnknown: the text may or may not have reached the agent. Only a [Herdr]
	// returns it; the registry observes on and never sends twice (ruling R7).
	ErrOutcomeUnknown = errors.New("lifecycle: outcome unknown")
	// ErrClosed: the registry was closed.
	ErrClosed = errors.New("lifecycle: closed")
)
