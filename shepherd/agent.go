package shepherd

import "context"

// Start launches an agent and blocks until it can take a prompt; ctx bounds that. It binds
// the note session and reserves nothing: an agent without work has no note. When it fails
// nothing of the agent is left. Errors match [ErrInvalid], [ErrTooManyAgents],
// [ErrLabelTaken], [ErrClosed], or are the Herdr's or those of notes.Open.
func (s *Shepherd) Start(ctx context.Context, spec Spec) (AgentID, error) {
	if _, err := s.bind(ctx); err != nil {
		return "", err
	}
	return s.agents.Start(ctx, spec)
}

// Status says where an agent stands. It reads memory and never blocks. Errors match
// [ErrUnknownAgent].
func (s *Shepherd) Status(agent AgentID) (AgentStatus, error) { return s.agents.Status(agent) }

// Agents is the status of all agents, closed ones included, in the order they were started.
func (s *Shepherd) Agents() []AgentStatus { return s.agents.Agents() }

// Recent returns the end of what an agent has been saying, some kilobytes of text for a look
// at it. It may block until ctx ends. Errors match [ErrUnknownAgent], errors.ErrUnsupported
// where the Herdr cannot do that, or are the Herdr's.
func (s *Shepherd) Recent(ctx context.Context, agent AgentID) (string, error) {
	return s.agents.Recent(ctx, agent)
}

// CloseAgent closes an agent. An unresolved prompt is cancelled first, and its note is
// finished before CloseAgent returns. Notes stay. Closing again is fine; an error of the
// Herdr is passed on, and closing can be tried again. ctx bounds the call. Errors match
// [ErrUnknownAgent], also for what this Shepherd did not start, and [ErrClosed].
func (s *Shepherd) CloseAgent(ctx context.Context, agent AgentID) error {
	return s.agents.CloseAgent(ctx, agent)
}
