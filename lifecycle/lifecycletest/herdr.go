package lifecycletest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Herdr is a lifecycle.Herdr in memory. Its agents do what the test tells them to: see
// [Herdr.Agent]. The zero value is ready, its agents have a link and begin what they are
// given. Set its fields before it is used.
type Herdr struct {
	// NoLink makes agents of a kind that cannot say how their prompts end.
	NoLink bool
	// OnSubmit is what an agent does with a submission; default (*Agent).Begin. It is
	// called after the text is listed in Prompts, and its error is Submit's.
	OnSubmit func(a *Agent, s lifecycle.Submission) error
	// OnLaunch may refuse an agent.
	OnLaunch func(s lifecycle.Spec) error

	mu       sync.Mutex
	agents   []*Agent // as launched
	byTarget map[lifecycle.Target]*Agent
}

// Agent is one in-memory agent, and the hand that drives it.
type Agent struct {
	Spec   lifecycle.Spec
	Target lifecycle.Target

	level  lifecycle.Level
	mu     sync.Mutex
	got    []lifecycle.Submission
	reply  string
	closed int
}

// Launch makes an idle agent.
func (h *Herdr) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if h.OnLaunch != nil {
		if err := h.OnLaunch(s); err != nil {
			return "", err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &Agent{Spec: s, Target: lifecycle.Target(fmt.Sprintf("mem:%d", len(h.agents)+1))}
	a.Set(func(o *lifecycle.Observation) {
		o.State, o.Link = lifecycle.Idle, lifecycle.LinkUp
		if h.NoLink {
			o.Link = lifecycle.NoLink
		}
	})
	if h.byTarget == nil {
		h.byTarget = map[lifecycle.Target]*Agent{}
	}
	h.agents, h.byTarget[a.Target] = append(h.agents, a), a
	return a.Target, nil
}

// Agent is the agent with the id, or nil.
func (h *Herdr) Agent(id lifecycle.AgentID) *Agent {
	for _, a := range h.Agents() {
		if a.Spec.ID == id {
			return a
		}
	}
	return nil
}

// Agents are all agents, as launched.
func (h *Herdr) Agents() []*Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.agents)
}

func (h *Herdr) at(t lifecycle.Target) *Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byTarget[t]
}

// Submit hands the text to the agent, unless that is at work or gone.
func (h *Herdr) Submit(ctx context.Context, t lifecycle.Target, s lifecycle.Submission) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a := h.at(t)
	if a == nil {
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, t)
	}
	switch o, _ := a.level.Get(); o.State {
	case lifecycle.Gone:
		return fmt.Errorf("%w: %s: %s", lifecycle.ErrAgentGone, t, o.Detail)
	case lifecycle.Working:
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentBusy, t)
	}
	a.mu.Lock()
	a.got, a.reply = append(a.got, s), ""
	a.mu.Unlock()
	a.Set(func(o *lifecycle.Observation) { o.Signal = lifecycle.Signal{} })
	if h.OnSubmit != nil {
		return h.OnSubmit(a, s)
	}
	return a.Begin(s)
}

// Observe returns the agent's level.
func (h *Herdr) Observe(t lifecycle.Target) (lifecycle.Observation, <-chan struct{}) {
	if a := h.at(t); a != nil {
		return a.level.Get()
	}
	return lifecycle.Observation{State: lifecycle.Gone, Detail: "no such agent"}, nil
}

// Look returns the level: there is no other source.
func (h *Herdr) Look(ctx context.Context, t lifecycle.Target) (lifecycle.Observation, error) {
	o, _ := h.Observe(t)
	return o, ctx.Err()
}

// Reply returns what SetReply was given since the last submission.
func (h *Herdr) Reply(ctx context.Context, t lifecycle.Target, _ lifecycle.PromptID) (string, error) {
	a := h.at(t)
	if a == nil {
		return "", ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reply, ctx.Err()
}

// Close ends the agent.
func (h *Herdr) Close(ctx context.Context, t lifecycle.Target) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if a := h.at(t); a != nil {
		a.mu.Lock()
		a.closed++
		a.mu.Unlock()
		a.Exit("closed")
	}
	return nil
}

// Set edits the agent's level as it likes; the methods below are its usual edits.
func (a *Agent) Set(change func(*lifecycle.Observation)) { a.level.Set(time.Now(), change) }

// Prompts are the submissions that the agent was given.
func (a *Agent) Prompts() []lifecycle.Submission {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

// Closed counts the calls of Close.
func (a *Agent) Closed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// SetReply is what Reply returns until the next submission.
func (a *Agent) SetReply(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply = text
}

// Begin starts a turn on a submission. An agent without a link gives no signal.
func (a *Agent) Begin(s lifecycle.Submission) error {
	a.Set(func(o *lifecycle.Observation) {
		o.State, o.Turns = lifecycle.Working, o.Turns+1
		if o.Link == lifecycle.LinkUp {
			o.Signal = lifecycle.Signal{Prompt: s.Prompt, Kind: lifecycle.Started, At: time.Now()}
		}
	})
	return nil
}

// Finish settles the newest prompt with an answer.
func (a *Agent) Finish(text string) {
	a.Signal(lifecycle.Signal{Kind: lifecycle.Finished, Text: text})
}

// Fail settles the newest prompt with an error.
func (a *Agent) Fail(why string) { a.Signal(lifecycle.Signal{Kind: lifecycle.Failed, Error: why}) }

// Abort settles the newest prompt as interrupted in the agent's own place.
func (a *Agent) Abort() { a.Signal(lifecycle.Signal{Kind: lifecycle.Aborted}) }

// Signal gives any signal, about the newest prompt if it names none, and puts the agent at
// rest if it is final.
func (a *Agent) Signal(s lifecycle.Signal) {
	if s.Prompt == "" {
		a.mu.Lock()
		s.Prompt = a.got[len(a.got)-1].Prompt
		a.mu.Unlock()
	}
	if s.At.IsZero() {
		s.At = time.Now()
	}
	a.Set(func(o *lifecycle.Observation) {
		o.Signal = s
		if s.Final() && o.State != lifecycle.Gone {
			o.State = lifecycle.Idle
		}
	})
}

// Rest puts the agent at rest without a word.
func (a *Agent) Rest() { a.Set(func(o *lifecycle.Observation) { o.State = lifecycle.Idle }) }

// Block makes the agent wait for a human; Work takes that back.
func (a *Agent) Block() { a.Set(func(o *lifecycle.Observation) { o.State = lifecycle.Blocked }) }

// Work makes the agent work on, without a new turn.
func (a *Agent) Work() { a.Set(func(o *lifecycle.Observation) { o.State = lifecycle.Working }) }

// Human begins a turn that is not ours; Rest ends it.
func (a *Agent) Human() {
	a.Set(func(o *lifecycle.Observation) { o.State, o.Turns = lifecycle.Working, o.Turns+1 })
}

// Exit ends the agent.
func (a *Agent) Exit(how string) {
	a.Set(func(o *lifecycle.Observation) {
		if o.State != lifecycle.Gone {
			o.State, o.Detail = lifecycle.Gone, how
		}
	})
}
