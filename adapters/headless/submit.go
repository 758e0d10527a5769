package headless

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// submit sends one prompt; see lifecycle.Herdr. Until it is accepted the tracker of the
// prompt before stays in force: a refusal changes nothing.
func (a *agent) submit(ctx context.Context, s lifecycle.Submission) error {
	if err := a.try(s.Prompt); err != nil {
		return err
	}
	answer, err := a.ask(ctx, func(id string) []byte { return promptLine(id, turns.Wrap(s)) })
	a.tried(answer.Success || errors.Is(err, lifecycle.ErrOutcomeUnknown))
	switch {
	case err != nil:
		return fmt.Errorf("submit to %s: %w", a.target, err)
	case answer.Success && answer.Outcome == "handled":
		return fmt.Errorf("submit to %s: one of the agent's extensions took the prompt away; no turn has begun", a.target)
	case answer.Success:
		return nil
	case isBusy(answer.Error):
		return fmt.Errorf("%w: %s: %s", lifecycle.ErrAgentBusy, a.target, answer.Error)
	}
	return fmt.Errorf("submit to %s: refused: %s", a.target, answer.Error)
}

func (a *agent) try(p lifecycle.PromptID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trial != nil || a.turns.Busy {
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentBusy, a.target)
	}
	trial := a.turns.Expect(p)
	a.trial = &trial
	return nil
}

func (a *agent) tried(accepted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if accepted {
		a.turns = *a.trial
		a.show(time.Now())
	}
	a.trial = nil
}

// isBusy recognises what pi says when it refuses a prompt because it is at work.
func isBusy(refusal string) bool {
	return strings.Contains(refusal, "already processing") || strings.Contains(refusal, "compaction is in progress")
}

// ask sends a command and returns the answer to it. If it may have been sent and there is
// no answer when ctx ends, the error matches ErrOutcomeUnknown.
func (a *agent) ask(ctx context.Context, line func(id string) []byte) (record, error) {
	id, answer := a.expect()
	defer a.forget(id)
	if ctx.Err() != nil {
		return record{}, fmt.Errorf("not sent: %w", context.Cause(ctx))
	}
	select {
	case a.lines <- line(id):
	case <-a.ended:
		return record{}, lifecycle.ErrAgentGone
	case <-ctx.Done():
		return record{}, fmt.Errorf("not sent, the agent does not read its input: %w", context.Cause(ctx))
	}
	select {
	case rec := <-answer:
		return rec, nil
	case <-ctx.Done():
		return record{}, fmt.Errorf("%w: no answer yet: %w", lifecycle.ErrOutcomeUnknown, context.Cause(ctx))
	case <-a.done: // and not only ended: the answer may stand in the last of its output
	}
	select {
	case rec := <-answer:
		return rec, nil
	default:
		return record{}, fmt.Errorf("%w: the agent ended before it answered", lifecycle.ErrOutcomeUnknown)
	}
}

func (a *agent) expect() (id string, answer chan record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counter++
	id = "c" + strconv.Itoa(a.counter)
	answer = make(chan record, 1)
	a.asked[id] = answer
	return id, answer
}

func (a *agent) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, id)
}

func (a *agent) answered(rec record) {
	a.mu.Lock()
	answer := a.asked[rec.ID]
	delete(a.asked, rec.ID)
	a.mu.Unlock()
	if answer != nil {
		answer <- rec
		return
	}
	a.log.Debug("an answer that nobody waits for", "command", rec.ID, "success", rec.Success, "error", rec.Error)
}
