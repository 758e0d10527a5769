package herdr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Submit hands the prompt to the child through its link, byte for byte. Without a link it is
// typed into the pane, below a marker line that also keeps a leading "!" or "/" from being a
// command there; control characters are left out, and no more than Herdr's one line of 1 MiB
// fits (ErrTooLong). It blocks as long as ctx allows, and without a link as long as
// Options.CallTimeout does.
//
// Errors: see lifecycle.Herdr.
func (h *Herdr) Submit(ctx context.Context, t lifecycle.Target, s lifecycle.Submission) error {
	a, ok := h.agent(t)
	if !ok {
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, t)
	}
	if err := a.try(ctx, s.Prompt); err != nil {
		return fmt.Errorf("submit to %s: %w", t, err)
	}
	err := a.send(ctx, s)
	if errors.Is(err, ErrNoAnswer) || hasCode(err, "agent_prompt_stalled") {
		err = fmt.Errorf("%w: %w", lifecycle.ErrOutcomeUnknown, err) // C31: it may be on its way
	}
	accepted := err == nil || errors.Is(err, lifecycle.ErrOutcomeUnknown)
	a.tried(s.Prompt, accepted)
	if err != nil {
		err = fmt.Errorf("submit to %s: %w", t, err)
	}
	if accepted && a.link == nil {
		h.spawn(func() { a.nudge(s) })
	}
	return err
}

// try begins a submission. There is one at a time; until it is accepted the prompt before
// stays the one that signals are about.
func (a *agent) try(ctx context.Context, p lifecycle.PromptID) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.gone != "":
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, a.gone)
	case a.closing:
		return fmt.Errorf("%w: it is being closed", lifecycle.ErrAgentGone)
	case a.trial != "":
		return fmt.Errorf("%w: another prompt is being submitted", lifecycle.ErrAgentBusy)
	}
	a.trial = p
	return nil
}

func (a *agent) tried(p lifecycle.PromptID, accepted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trial != p {
		return // the child has already said that it has it
	}
	a.trial = ""
	if accepted {
		a.prompt, a.signal = p, lifecycle.Signal{}
		a.take(a.child.Current)
		a.show(time.Now())
	}
}

func (a *agent) send(ctx context.Context, s lifecycle.Submission) error {
	switch {
	case a.linkUp():
		return a.link.Send(ctx, s)
	case a.link != nil:
		return errors.New("herdr: the child's link is down; nothing was sent")
	}
	return a.typeIn(ctx, s)
}

// typeIn types the prompt into the pane of an agent without a link. The server's answer says
// that the text is on its way, and no more.
func (a *agent) typeIn(ctx context.Context, s lifecycle.Submission) error {
	const patience = 5 * time.Second // with an agent that is not quite ready, however short a call may take
	if err := a.check(ctx, false); err != nil {
		return err
	}
	switch o, _ := a.level.Get(); o.State {
	case lifecycle.Gone:
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, o.Detail)
	case lifecycle.Working:
		return lifecycle.ErrAgentBusy
	case lifecycle.Blocked:
		return lifecycle.ErrAgentBlocked
	}
	text := typed(turns.Wrap(s))
	ctx, cancel := context.WithTimeoutCause(ctx, max(patience, a.h.o.CallTimeout), errors.New("herdr: the agent was not ready"))
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		var r agentResult
		err := a.h.client.call(ctx, "agent.prompt", promptParams{a.place().pane, text}, &r)
		switch {
		case hasCode(err, "agent_not_ready", "pane_send_failed"): // nothing has happened yet
			if cause := sleep(ctx, pause); cause != nil {
				return fmt.Errorf("%w: %w", cause, err)
			}
		case isGone(err):
			return a.vanished(ctx, err)
		default:
			if err == nil {
				a.fold(r.Agent)
			}
			return err
		}
	}
}

// vanished: Herdr does not find the agent. Whether it is gone is for its pane to say.
func (a *agent) vanished(ctx context.Context, refusal error) error {
	if err := a.check(ctx, true); err != nil {
		return err
	}
	if a.isGone() {
		return refusal
	}
	return fmt.Errorf("herdr: the agent runs, and Herdr does not show it: %s", refusal.Error())
}

// nudge presses Enter once if the text has been typed into the pane and stands there
// (ruling R7). The text itself is never sent again.
func (a *agent) nudge(s lifecycle.Submission) {
	before, _ := a.level.Get()
	late := time.After(a.h.o.NudgeAfter)
	for {
		o, changed := a.level.Get()
		if o.State != lifecycle.Idle || o.Turns != before.Turns {
			return
		}
		select {
		case <-changed:
			continue
		case <-late:
		case <-a.h.life.Done():
			return
		}
		break
	}
	if err := a.check(a.h.life, false); err != nil {
		return
	}
	o, _ := a.level.Get()
	if o.State != lifecycle.Idle || o.Turns != before.Turns || !a.isCurrent(s.Prompt) {
		return
	}
	text, err := a.screen(a.h.life, "visible", 0)
	if err != nil || !standsInEditor(text, s.Text) {
		return
	}
	a.log.Warn("the prompt stands unsent in the pane; pressing Enter once", "prompt", string(s.Prompt))
	if err := a.h.client.call(a.h.life, "pane.send_keys", keysParams{a.place().pane, []string{"enter"}}, nil); err != nil {
		a.log.Warn("Enter was not pressed", "error", err)
	}
}

func (a *agent) isCurrent(p lifecycle.PromptID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.prompt == p && !a.closing
}

// standsInEditor reports whether the last rows of a screen show the end of the text, or what
// an editor shows in place of a long paste.
func standsInEditor(screen, text string) bool {
	const rows, enough = 8, 40
	var last []string
	for line := range strings.Lines(screen) {
		if line = strings.TrimSpace(line); line != "" {
			last = append(last, line)
		}
	}
	bottom := strings.Join(last[max(0, len(last)-rows):], "\n")
	lines := strings.Split(strings.TrimSpace(typed(text)), "\n")
	end := []rune(strings.TrimSpace(lines[len(lines)-1]))
	end = end[:min(enough, len(end))]
	return strings.Contains(bottom, "[paste #") || len(end) > 0 && strings.Contains(bottom, string(end))
}
