package headless

import (
	"fmt"
	"io"
	"log/slog"
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
	target     lifecycle.Target
	log        *slog.Logger
	level      lifecycle.Level
	complaints tail // the end of stderr
	recent     tail // the end of what it has said

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
		process:    p,
		target:     t,
		log:        o.Logger.With("target", string(t)),
		complaints: tail{limit: o.StderrLimit},
		recent:     tail{limit: recentLimit},
		lines:      make(chan []byte),
		dialogs:    make(chan []byte, 16),
		done:       make(chan struct{}),
		asked:      make(map[string]chan record),
	}
}

// run owns the agent's goroutines and returns when the process and they have ended. What
// the process said last is heard before it counts as gone.
func (a *agent) run() {
	defer close(a.done)
	var streams sync.WaitGroup
	streams.Go(a.read)
	streams.Go(func() { _, _ = io.Copy(&a.complaints, a.stderr) })
	streams.Go(a.write)

	how := a.wait()
	a.stdin.Close()
	// Somebody else may still hold the other ends: what can be read at once is read.
	drained := time.AfterFunc(drainLimit, func() { closeAll(a.stdout, a.stderr) })
	streams.Wait()
	drained.Stop()
	closeAll(a.stdout, a.stderr)
	a.bury(how)
}

// bury makes the agent gone.
func (a *agent) bury(how string) {
	a.mu.Lock()
	detail := fmt.Sprintf("process %d ended: %s", a.pid(), how)
	if a.closing {
		detail = fmt.Sprintf("process %d was closed", a.pid())
	} else if said := a.complaints.String(); said != "" {
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
