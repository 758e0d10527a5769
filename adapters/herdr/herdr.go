package herdr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Herdr runs agents in panes of a Herdr server. It implements [lifecycle.Herdr]; all methods
// may be called from many goroutines at once. It connects when the first agent is launched.
type Herdr struct {
	o      Options
	client *client
	noSock error // why there is no socket to connect to

	launching sync.WaitGroup // launches under way
	work      sync.WaitGroup // goroutines that look after agents
	stop      context.CancelCauseFunc
	life      context.Context // ends with CloseAll or Detach

	mu      sync.Mutex
	closed  bool
	agents  map[lifecycle.Target]*agent
	names   map[lifecycle.Target]int // how often each was given out: pane ids come again
	watcher *watcher                 // while there are agents

	serverMu  sync.Mutex // one look for a server, and one start of one, at a time
	serverOK  atomic.Bool
	ownMu     sync.Mutex // making the workspace for agents of a plain terminal
	workspace string
}

var (
	_ lifecycle.Herdr        = (*Herdr)(nil)
	_ lifecycle.OutputReader = (*Herdr)(nil)
)

// New returns a Herdr. It connects to nothing and starts nothing. Whoever has called New ends
// it with CloseAll or Detach.
func New(o Options) *Herdr {
	o = o.withDefaults()
	socket, err := o.find()
	life, stop := context.WithCancelCause(context.Background())
	return &Herdr{
		o:      o,
		client: newClient(socket, o.CallTimeout),
		noSock: err,
		life:   life,
		stop:   stop,
		agents: make(map[lifecycle.Target]*agent),
		names:  make(map[lifecycle.Target]int),
	}
}

// Observe never blocks. With a link the child's own word is the level; without one it is
// Herdr's status of the pane. An agent that was closed is Gone.
func (h *Herdr) Observe(t lifecycle.Target) (lifecycle.Observation, <-chan struct{}) {
	if a, ok := h.agent(t); ok {
		return a.level.Get()
	}
	return lifecycle.Observation{State: lifecycle.Gone, Detail: "no agent of this program, or closed"}, make(chan struct{})
}

// Look asks the server what is in the agent's pane, whether its program still runs there
// included (ruling R3). While the agent's link is up there is nothing to ask: the child
// tells every change by itself. It blocks as long as ctx and Options.CallTimeout allow.
func (h *Herdr) Look(ctx context.Context, t lifecycle.Target) (lifecycle.Observation, error) {
	a, ok := h.agent(t)
	if !ok {
		o, _ := h.Observe(t)
		return o, nil
	}
	err := context.Cause(ctx)
	if err == nil && !a.linkUp() {
		err = a.check(ctx, true)
	}
	o, _ := a.level.Get()
	if err != nil {
		return o, fmt.Errorf("look at %s: %w", t, err)
	}
	return o, nil
}

// Close closes the agent's pane, provided that it is proved to be ours still, and what
// belonged to the agent outside of it. It returns when the server says that the pane is
// closed, as long as ctx and Options.CallTimeout allow. A pane that is gone or has become
// somebody else's is fine, and left alone.
func (h *Herdr) Close(ctx context.Context, t lifecycle.Target) error {
	a, ok := h.agent(t)
	if !ok {
		return nil
	}
	if err := a.close(ctx); err != nil {
		return fmt.Errorf("close %s: %w", t, err)
	}
	h.remove(a)
	return nil
}

// CloseAll closes all agents, those that are being launched too, and ends h: nothing of it
// is left, here or in Herdr, but what the error names.
func (h *Herdr) CloseAll(ctx context.Context) error {
	h.end()
	errs := make([]error, 0)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, a := range h.all() {
		all.Go(func() {
			if err := h.Close(ctx, a.target); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	h.letGo()
	return errors.Join(errs...)
}

// Detach ends h and leaves the agents, their panes and their directories alone (ruling R13):
// what they do is theirs, and a later process may [Herdr.Adopt] them. Launches under way are
// cancelled and leave nothing.
func (h *Herdr) Detach() error {
	h.end()
	errs := make([]error, 0)
	for _, a := range h.all() {
		errs = append(errs, a.detach())
		h.remove(a)
	}
	h.letGo()
	return errors.Join(errs...)
}

// end refuses new launches and waits for the end of those under way.
func (h *Herdr) end() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop(fmt.Errorf("%w: herdr", lifecycle.ErrClosed))
	h.launching.Wait()
}

// letGo ends all goroutines.
func (h *Herdr) letGo() {
	h.mu.Lock()
	w := h.watcher
	h.watcher = nil
	h.mu.Unlock()
	if w != nil {
		w.end()
	}
	h.work.Wait()
}

// spawn runs f unless h has ended. f ends with h.life.
func (h *Herdr) spawn(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Go(f)
	}
}

// add gives the agent its target, and begins to watch if it is the first.
func (h *Herdr) add(a *agent, t lifecycle.Target) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("%w: herdr", lifecycle.ErrClosed)
	}
	h.names[t]++
	if n := h.names[t]; n > 1 {
		t = lifecycle.Target(fmt.Sprintf("%s#%d", t, n))
	}
	a.target = t
	a.log = a.log.With("target", string(t))
	h.agents[t] = a
	if h.watcher == nil {
		h.watcher = watch(h)
	}
	h.watcher.setChanged()
	return nil
}

// remove forgets the agent, and stops watching after the last.
func (h *Herdr) remove(a *agent) {
	h.mu.Lock()
	delete(h.agents, a.target)
	var w *watcher
	if len(h.agents) == 0 {
		w, h.watcher = h.watcher, nil
	} else if h.watcher != nil {
		h.watcher.setChanged()
	}
	h.mu.Unlock()
	if w != nil {
		w.end()
	}
}

// watchedSetChanged: an agent has begun or ceased to need Herdr's status.
func (h *Herdr) watchedSetChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watcher != nil {
		h.watcher.setChanged()
	}
}

func (h *Herdr) agent(t lifecycle.Target) (*agent, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.agents[t]
	return a, ok
}

func (h *Herdr) all() []*agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*agent, 0, len(h.agents))
	for _, a := range h.agents {
		all = append(all, a)
	}
	return all
}

// cleaning returns a context for what has to be tidied up although ctx may have ended.
func (h *Herdr) cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*h.o.CallTimeout)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
