package lifecycle

import (
	"context"
	"sync/atomic"
	"time"
)

// prompt is one claim and what becomes of it. Until Submit it belongs to its Claim, then to
// one goroutine, own. Everybody else can only propose an end.
type prompt struct {
	id    PromptID
	agent *agent
	limit time.Duration // the deadline, from the submission

	proposal atomic.Pointer[proposal] // the first one; the others have no effect
	ending   context.Context          // ends with it, and its cause is the refusal
	end      context.CancelCauseFunc

	done chan struct{} // closed when result is published

	// Guarded by the registry's lock. The note is set before the id is known to anybody.
	note      Note
	submitted time.Time
	result    *Result  // nil until published
	dropped   bool     // its text is in the note only
	waited    bool     // a wait has returned it
	after     []func() // to be run once it is published
}

func newPrompt(id PromptID, a *agent, limit time.Duration) *prompt {
	p := &prompt{id: id, agent: a, limit: limit, done: make(chan struct{})}
	p.ending, p.end = context.WithCancelCause(context.Background())
	return p
}

// proposal is an end that somebody asks for.
type proposal struct {
	Result
	timeUp bool // only the time is up: an agent that has finished wins over it
}

// propose asks for an end. The first proposal wins; the others have no effect.
func (p *prompt) propose(end proposal) {
	if p.proposal.CompareAndSwap(nil, &end) {
		p.end(p.refusal())
	}
}

func timeUp(why string) proposal {
	return proposal{Result: Result{Status: StatusTimeout, Error: why}, timeUp: true}
}

// own is the one goroutine of a prompt in flight. It observes, lets the tracker decide, and
// alone ends the prompt.
func (r *Registry) own(p *prompt, t tracker) {
	deadline := r.options.Clock.After(p.limit)
	fresh := false
	for {
		o, changed := r.herdr.Observe(p.agent.target)
		var s step
		t, s = t.next(o, r.options.Clock.Now(), fresh)
		if s.end != nil {
			p.propose(proposal{Result: *s.end})
		}
		if end := p.proposal.Load(); end != nil {
			if end.timeUp {
				r.settle(p, r.lastLook(p, t, end.Result))
			} else {
				r.settle(p, end.Result)
			}
			return
		}
		if fresh = false; s.look {
			_, err := r.look(p.ending, p.agent)
			if fresh = err == nil; fresh {
				continue
			}
			s.wake = r.options.Clock.Now().Add(r.options.Rules.LookRetry)
		}
		var wake <-chan time.Time
		if !s.wake.IsZero() {
			wake = r.options.Clock.After(s.wake.Sub(r.options.Clock.Now()))
		}
		select {
		case <-changed:
		case <-wake:
		case <-p.ending.Done():
		case <-deadline:
			p.propose(timeUp("not done within its deadline of " + p.limit.String()))
		}
	}
}

// lastLook gives a prompt whose time is up one more chance: an agent that has finished wins
// over the clock.
func (r *Registry) lastLook(p *prompt, t tracker, end Result) Result {
	if _, err := r.look(context.Background(), p.agent); err != nil {
		r.options.Logger.Debug("last look", "prompt", p.id, "err", err)
	}
	o, _ := r.herdr.Observe(p.agent.target)
	if _, s := t.next(o, r.options.Clock.Now(), true); s.end != nil {
		return *s.end
	}
	return end
}

// look asks the source, bounded by ctx and Rules.LookLimit.
func (r *Registry) look(ctx context.Context, a *agent) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Rules.LookLimit)
	defer cancel()
	return r.herdr.Look(ctx, a.target)
}
