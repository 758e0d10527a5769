package herdr

import (
	"context"
	"fmt"
	"strings"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Reply returns the agent's last message for the prompt: what it has said itself, else what
// stands in the session file that it keeps, else what its pane shows below the prompt, which
// is a picture of the answer and not its text. An answer that cannot be read is "", never an
// error of the prompt. It blocks as long as ctx and Options.CallTimeout allow.
func (h *Herdr) Reply(ctx context.Context, t lifecycle.Target, p lifecycle.PromptID) (string, error) {
	a, ok := h.agent(t)
	if !ok {
		return "", nil
	}
	a.takeStored()
	a.mu.Lock()
	s := a.signal
	a.mu.Unlock()
	if s.Prompt == p && s.Text != "" {
		return s.Text, nil
	}
	if r, ok := a.link.(link.Replier); ok {
		return r.Reply(ctx, p)
	}
	if a.link != nil {
		return "", nil
	}
	if text := a.fromSession(ctx, p); text != "" {
		return text, nil
	}
	screen, err := a.screen(ctx, "recent_unwrapped", 1000)
	if isGone(err) {
		return "", nil
	}
	return below(screen, turns.Wrap(lifecycle.Submission{Prompt: p})), err
}

// Recent returns the end of what the agent's pane shows, for a look at it. It blocks as long
// as ctx and Options.CallTimeout allow. An unknown or closed agent is an error that matches
// ErrAgentGone.
func (h *Herdr) Recent(ctx context.Context, t lifecycle.Target) (string, error) {
	a, ok := h.agent(t)
	if !ok {
		return "", fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, t)
	}
	return a.recent(ctx, 200)
}

// recent returns the pane's last lines, without blank ones at the end.
func (a *agent) recent(ctx context.Context, lines int) (string, error) {
	text, err := a.screen(ctx, "recent_unwrapped", lines)
	return strings.TrimRight(text, " \n"), err
}

func (a *agent) screen(ctx context.Context, source string, lines int) (string, error) {
	var r readResult
	err := a.h.client.call(ctx, "pane.read", readParams{a.place().pane, source, lines, "text", true}, &r)
	return r.Read.Text, err
}

// fromSession reads the session file that Herdr's own integration has named, or returns "".
func (a *agent) fromSession(ctx context.Context, p lifecycle.PromptID) string {
	var r agentResult
	if err := a.h.client.call(ctx, "agent.get", targetParams{a.place().pane}, &r); err != nil {
		return ""
	}
	s := r.Agent.AgentSession
	if s == nil || s.Kind != "path" {
		return ""
	}
	text, err := transcriptReply(s.Value, turns.Wrap(lifecycle.Submission{Prompt: p}))
	if err != nil {
		a.log.Warn("the agent's session file cannot be read", "error", err)
	}
	return text
}

// below returns what stands below the marker's last appearance.
func below(screen, marker string) string {
	marker = strings.TrimSpace(marker)
	i := strings.LastIndex(screen, marker)
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(screen[i+len(marker):])
}
