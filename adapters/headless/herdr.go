package headless

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Herdr runs agents as child processes of this one. It implements [lifecycle.Herdr]; all
// methods may be called from many goroutines at once.
type Herdr struct {
	o Options

	mu     sync.Mutex
	closed bool
	agents map[lifecycle.Target]*agent
	names  map[lifecycle.Target]int // how often each was given out: process ids come again
}

var _ lifecycle.Herdr = (*Herdr)(nil)

// New returns a Herdr. It starts nothing; whoever has called New calls Close.
func New(o Options) *Herdr {
	return &Herdr{
		o:      o.withDefaults(),
		agents: make(map[lifecycle.Target]*agent),
		names:  make(map[lifecycle.Target]int),
	}
}

// Submit sends the text below a marker line and waits until the agent has accepted it or ctx
// ends. A busy agent refuses, or is refused for it. An agent that does not read its input
// gets nothing more once ctx has ended.
func (h *Herdr) Submit(ctx context.Context, t lifecycle.Target, s lifecycle.Submission) error {
	a, ok := h.agent(t)
	if !ok || a.hasEnded() {
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, t)
	}
	return a.submit(ctx, s)
}

// Observe never blocks. An agent is Working from the start of a run until pi has settled,
// retries included, and never Blocked (see the package comment). One that was closed is Gone.
func (h *Herdr) Observe(t lifecycle.Target) (lifecycle.Observation, <-chan struct{}) {
	if a, ok := h.agent(t); ok {
		return a.level.Get()
	}
	return lifecycle.Observation{State: lifecycle.Gone, Detail: "no agent of this program, or closed"}, make(chan struct{})
}

// Look returns the level as Observe does and does not block: the agent's output is read as
// it comes and the end of its process is noticed when it happens, so there is nothing to ask.
func (h *Herdr) Look(_ context.Context, t lifecycle.Target) (lifecycle.Observation, error) {
	o, _ := h.Observe(t)
	return o, nil
}

// Reply returns the last text of the agent that belongs to the prompt last submitted, also
// before its end. It does not block.
func (h *Herdr) Reply(_ context.Context, t lifecycle.Target, p lifecycle.PromptID) (string, error) {
	a, ok := h.agent(t)
	if !ok {
		return "", nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turns.Reply(p), nil
}

// Recent returns the end of what the agent has said, at most 8 KiB, for a look at it. It
// does not block. An unknown or closed agent is an error that matches ErrAgentGone.
func (h *Herdr) Recent(_ context.Context, t lifecycle.Target) (string, error) {
	a, ok := h.agent(t)
	if !ok {
		return "", fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, t)
	}
	return a.recent.String(), nil
}

// Close stops the agent and everything it has started, and returns when they have ended:
// its input is closed, then its process group gets SIGTERM and at last SIGKILL, with
// Options.StopGrace between. When ctx ends, no more time is given. A target that is not
// known, or closed already, is fine. The error says which process is still there.
func (h *Herdr) Close(ctx context.Context, t lifecycle.Target) error {
	a, ok := h.agent(t)
	if !ok {
		return nil
	}
	if err := a.close(ctx.Done(), h.o.StopGrace); err != nil {
		return fmt.Errorf("close %s: %w", t, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.agents, t)
	return nil
}

// CloseAll stops all agents, those that are being launched too, each as Close does, and
// refuses new ones.
func (h *Herdr) CloseAll(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	targets := slices.Collect(maps.Keys(h.agents))
	h.mu.Unlock()

	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() { errs[i] = h.Close(ctx, t) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (h *Herdr) agent(t lifecycle.Target) (*agent, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.agents[t]
	return a, ok
}
