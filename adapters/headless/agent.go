package headless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/jsonl"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

const (
	recentLimit = 8 << 10     // bytes of what the agent has said lately
	drainLimit  = time.Second // between the end of a process and the end of its output
)

// agent is one child process and the level that its events make.
type agent struct {
	*process
	target lifecycle.Target
	log    *slog.Logger
	level  lifecycle.Level
	stderr tail
	recent tail

	lines   chan []byte   // to the writer; who has handed a line over has sent it
	dialogs chan []byte   // to the writer, from the reader, which must not wait
	done    chan struct{} // closed when all goroutines of the agent have ended

	mu      sync.Mutex
	turns   turns.Tracker
	asked   map[string]chan record // by the id of the command that waits for an answer
	counter int
	trial   *turns.Tracker // while a prompt is being submitted: turns, if it is accepted
	closing bool
}

func newAgent(p *process, t lifecycle.Target, o Options) *agent {
	return &agent{
		process: p,
		target:  t,
		log:     o.Logger.With("target", string(t)),
		stderr:  tail{limit: o.StderrLimit},
		recent:  tail{limit: recentLimit},
		lines:   make(chan []byte),
		dialogs: make(chan []byte, 16),
		done:    make(chan struct{}),
		asked:   make(map[string]chan record),
	}
}

// run owns the agent's goroutines and returns when the process and they have ended. What
// the process said last is heard before it counts as gone.
func (a *agent) run() {
	defer close(a.done)
	var streams sync.WaitGroup
	streams.Go(a.read)
	streams.Go(func() { _, _ = io.Copy(&a.stderr, a.process.stderr) })
	streams.Go(a.write)

	how := a.wait()
	a.stdin.Close()
	// Somebody else may still hold the other ends: what can be read at once is read.
	drained := time.AfterFunc(drainLimit, func() { closeAll(a.stdout, a.process.stderr) })
	streams.Wait()
	drained.Stop()
	closeAll(a.stdout, a.process.stderr)
	a.bury(how)
}

// bury makes the agent gone.
func (a *agent) bury(how string) {
	a.mu.Lock()
	detail := fmt.Sprintf("process %d ended: %s", a.pid(), how)
	if a.closing {
		detail = fmt.Sprintf("process %d was closed", a.pid())
	} else if said := a.stderr.String(); said != "" {
		detail += "; stderr: " + said
	}
	a.mu.Unlock()
	a.log.Debug("agent gone", "how", how)
	a.level.Set(time.Now(), func(o *lifecycle.Observation) {
		o.State, o.Link, o.Detail = lifecycle.Gone, lifecycle.LinkLost, detail
	})
}

// read follows stdout to its end. An agent that cannot be heard any more is no use to
// anybody: if its process lives on, it is stopped.
func (a *agent) read() {
	lines := jsonl.NewReader(a.stdout)
	for lines.Next() == nil {
		for more := true; more; more = lines.More() {
			rec, err := readRecord(lines)
			if err != nil {
				a.log.Warn("a line of the agent's output is not JSON; ignored", "error", err)
				break
			}
			a.hear(rec)
		}
	}
	if !a.endsWithin(drainLimit, nil) {
		a.log.Warn("the agent has closed its output; killing it")
		a.kill()
	}
}

// write hands lines to stdin. A child that does not read holds up the writer and nobody
// else.
func (a *agent) write() {
	for {
		var line []byte
		select {
		case line = <-a.lines:
		case line = <-a.dialogs:
		case <-a.ended:
			return
		}
		if _, err := a.stdin.Write(line); err != nil {
			a.log.Debug("the agent's input is closed", "error", err)
		}
	}
}

// hear folds one record into the agent.
func (a *agent) hear(rec record) {
	now := time.Now()
	switch rec.Type {
	case "response":
		a.level.Touch(now)
		a.answered(rec)
	case "extension_ui_request":
		a.level.Touch(now)
		a.cancel(rec)
	case "agent_start", "agent_settled", "message_end":
		if rec.Message.Role == "assistant" && rec.Message.Text != "" {
			_, _ = io.WriteString(&a.recent, rec.Message.Text+"\n")
		}
		a.mu.Lock()
		a.turns = a.turns.Next(rec.Event)
		if a.trial != nil {
			*a.trial = a.trial.Next(rec.Event)
		}
		a.show(now)
		a.mu.Unlock()
	default:
		a.level.Touch(now)
	}
}

// show makes the level what the tracker says. Gone is for good. Callers hold mu.
func (a *agent) show(now time.Time) {
	a.level.Set(now, func(o *lifecycle.Observation) {
		o.Turns = a.turns.Turns
		switch {
		case o.State == lifecycle.Gone:
		case a.turns.Busy:
			o.State, o.Link = lifecycle.Working, lifecycle.LinkUp
		default:
			o.State, o.Link = lifecycle.Idle, lifecycle.LinkUp
		}
		if s := a.turns.Signal; s.Kind != o.Signal.Kind || s.Prompt != o.Signal.Prompt {
			o.Signal = s
			if s.Kind != lifecycle.NoSignal {
				o.Signal.At = now
			}
		}
	})
}

// cancel answers a dialog that one of pi's extensions has opened: nobody is there to do it,
// and until it is answered the agent would wait.
func (a *agent) cancel(rec record) {
	switch rec.Method {
	case "select", "confirm", "input", "editor":
	default:
		return // tells, and does not ask
	}
	select {
	case a.dialogs <- cancelLine(rec.ID):
		a.log.Warn("a dialog was cancelled; nobody is there to answer it", "method", rec.Method)
	default:
		a.log.Warn("a dialog stays open; the agent does not read its input", "method", rec.Method)
	}
}

// submit sends one prompt; see lifecycle.Herdr. Until it is accepted the tracker of the
// prompt before stays in force: a refusal changes nothing.
func (a *agent) submit(ctx context.Context, s lifecycle.Submission, timeout time.Duration) error {
	if err := a.try(s.Prompt); err != nil {
		return err
	}
	answer, err := a.ask(ctx, timeout, func(id string) []byte { return promptLine(id, turns.Wrap(s)) })
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
// no answer, the error matches ErrOutcomeUnknown.
func (a *agent) ask(ctx context.Context, timeout time.Duration, line func(id string) []byte) (record, error) {
	id, answer := a.expect()
	defer a.forget(id)
	timer := time.NewTimer(timeout)
	defer timer.Stop()

	if ctx.Err() != nil {
		return record{}, fmt.Errorf("not sent: %w", context.Cause(ctx))
	}
	select {
	case a.lines <- line(id):
	case <-a.ended:
		return record{}, lifecycle.ErrAgentGone
	case <-ctx.Done():
		return record{}, fmt.Errorf("not sent, the agent does not read its input: %w", context.Cause(ctx))
	case <-timer.C:
		return record{}, fmt.Errorf("not sent, the agent does not read its input for %v", timeout)
	}
	select {
	case rec := <-answer:
		return rec, nil
	case <-a.done: // and not only ended: the answer may stand in the last output
		select {
		case rec := <-answer:
			return rec, nil
		default:
			return record{}, fmt.Errorf("%w: the agent ended before it answered", lifecycle.ErrOutcomeUnknown)
		}
	case <-ctx.Done():
		return record{}, fmt.Errorf("%w: no answer yet: %w", lifecycle.ErrOutcomeUnknown, context.Cause(ctx))
	case <-timer.C:
		return record{}, fmt.Errorf("%w: no answer within %v", lifecycle.ErrOutcomeUnknown, timeout)
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
