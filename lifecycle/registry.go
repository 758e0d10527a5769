package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Options are a registry's settings; the zero value is good.
type Options struct {
	Clock         Clock         // default: [System]
	Logger        *slog.Logger  // default: discards
	Rules         Rules         // default: see there
	MaxAgents     int           // agents at once, those being started included; default 16
	PromptTimeout time.Duration // a prompt's deadline, from its submission; default 1 h
	WaitTimeout   time.Duration // the limit of a wait that names none; default 20 min (ruling R12)
	KeepTexts     int           // results whose texts stay in memory, the newest; default 1,000
}

func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Rules, err = o.Rules.withDefaults(); err != nil {
		return o, err
	}
	if o.PromptTimeout, err = duration("PromptTimeout", o.PromptTimeout, time.Hour); err != nil {
		return o, err
	}
	if o.WaitTimeout, err = duration("WaitTimeout", o.WaitTimeout, 20*time.Minute); err != nil {
		return o, err
	}
	if o.MaxAgents < 0 || o.KeepTexts < 0 {
		return o, fmt.Errorf("%w: MaxAgents and KeepTexts must not be negative: %d, %d", ErrInvalid, o.MaxAgents, o.KeepTexts)
	}
	if o.MaxAgents == 0 {
		o.MaxAgents = 16
	}
	if o.KeepTexts == 0 {
		o.KeepTexts = 1000
	}
	if o.Clock == nil {
		o.Clock = System{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Registry owns the agents that were started through it and their prompts. All methods may
// be called from many goroutines at once. Its lock is a leaf: no port is called while it is
// held. The clock decides about prompts; the limits of single port calls are contexts', and
// so the system's.
type Registry struct {
	herdr   Herdr
	options Options
	scope   string

	life context.Context // ends when Close begins
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // launches, claims, owners, note writers

	mu      sync.Mutex
	agents  map[AgentID]*agent
	order   []*agent // as started
	prompts map[PromptID]*prompt
	texts   []*prompt // those whose text is in memory, oldest first
}

// New makes a registry of agents that live in h. Errors match [ErrInvalid].
func New(h Herdr, o Options) (*Registry, error) {
	if h == nil {
		return nil, fmt.Errorf("%w: the Herdr is nil", ErrInvalid)
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancelCause(context.Background())
	return &Registry{
		herdr: h, options: o, scope: newScope(), life: life, stop: stop,
		agents: map[AgentID]*agent{}, prompts: map[PromptID]*prompt{},
	}, nil
}

// Scope is the eight hex digits in all ids of this registry. It is new in every process
// and must not be taken for a note session's identity.
func (r *Registry) Scope() string { return r.scope }

// Rules are the rules in force, defaults filled in.
func (r *Registry) Rules() Rules { return r.options.Rules }

// Close ends the registry: launches under way are cancelled, waits return [ErrClosed], and
// prompts in flight are detached: their notes say so and their agents are left alone
// (ruling R13). Results stay readable. It blocks until all of that is done or ctx ends;
// with ctx ended it returns an error and the rest goes on in the background. Calling it
// again waits again.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.stop(ErrClosed)
	var open []*prompt
	for _, a := range r.agents {
		if a.slot != nil {
			open = append(open, a.slot)
		}
	}
	r.mu.Unlock()
	for _, p := range open {
		p.propose(proposal{Result: Result{Status: StatusDetached, Error: "the parent ended; the agent was left alone"}})
	}
	idle := make(chan struct{})
	go func() { r.wg.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("lifecycle: closing is not complete: %w", ctx.Err())
	}
}

// enter is called with the lock held before work that Close has to wait for.
func (r *Registry) enter() error {
	if r.life.Err() != nil {
		return ErrClosed
	}
	r.wg.Add(1)
	return nil
}

// bind returns a context that ends with ctx or with also, whichever ends first.
func bind(ctx, also context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(also, func() { cancel(context.Cause(also)) })
	return ctx, func() { stop(); cancel(nil) }
}

// within runs f in a goroutine of its own and waits for it at most d. An f that takes longer
// goes on, and Close waits for it.
func (r *Registry) within(d time.Duration, what string, f func() error) error {
	errc := make(chan error, 1)
	r.wg.Go(func() { errc <- f() })
	select {
	case err := <-errc:
		return err
	case <-time.After(d):
		return fmt.Errorf("lifecycle: %s: not done within %v", what, d)
	}
}
