package shepherd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// Config is what a Shepherd works with. The first three have no default.
type Config struct {
	Herdr    lifecycle.Herdr      // where agents live
	FS       notes.FS             // rooted at the project that this parent works in
	Parent   notes.ParentIdentity // who gives the orders; see Parent
	Notifier watch.Notifier       // who is told; without one nothing can be watched

	Clock         lifecycle.Clock // default: the system's
	Logger        *slog.Logger    // default: discards
	SessionName   string          // the note session's name at its first allocation; default: from the identity's hash
	MaxAgents     int             // agents at once; default 16
	PromptTimeout time.Duration   // a prompt's deadline; default 1 h
	WaitTimeout   time.Duration   // the limit of a wait that names none; default 20 min (ruling R12)
	Coalesce      time.Duration   // how long a completion waits for others; default 25 ms
	Rules         Rules           // the durations by which prompts are settled; each has a default
}

// Shepherd is one parent's hold on its agents, in one project. All methods may be called
// from many goroutines at once.
type Shepherd struct {
	config  Config
	agents  *lifecycle.Registry
	watches *watch.Service

	// binding holds one: whoever opens the note session. A channel, since the disk may
	// block and the others must be able to give up.
	binding chan struct{}
	wg      sync.WaitGroup // reservations that were given up, and end by themselves

	mu      sync.Mutex
	session *notes.Session // nil until it is bound
	closed  bool
}

// New makes a Shepherd. It touches neither agents nor disk, except that an FS which knows
// already that it cannot work is refused here. Errors match [ErrInvalid] or are the FS's.
func New(c Config) (*Shepherd, error) {
	for name, port := range map[string]any{"Herdr": c.Herdr, "FS": c.FS, "Parent": c.Parent} {
		if port == nil || isNilPointer(port) {
			return nil, fmt.Errorf("%w: Config.%s is nil", ErrInvalid, name)
		}
	}
	if isNilPointer(c.Notifier) {
		return nil, fmt.Errorf("%w: Config.Notifier is a nil %T", ErrInvalid, c.Notifier)
	}
	if fs, ok := c.FS.(notes.Checker); ok {
		if err := fs.Err(); err != nil {
			return nil, fmt.Errorf("shepherd: the project cannot be used: %w", err)
		}
	}
	if c.Clock == nil {
		c.Clock = lifecycle.System{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	agents, err := lifecycle.New(c.Herdr, lifecycle.Options{
		Clock: c.Clock, Logger: c.Logger, Rules: c.Rules, MaxAgents: c.MaxAgents,
		PromptTimeout: c.PromptTimeout, WaitTimeout: c.WaitTimeout,
	})
	if err != nil {
		return nil, err
	}
	watches, err := watch.New(agents, c.Notifier, watch.Options{
		Clock: c.Clock, Logger: c.Logger, Scope: agents.Scope(), Coalesce: c.Coalesce,
	})
	if err != nil {
		return nil, err
	}
	return &Shepherd{config: c, agents: agents, watches: watches, binding: make(chan struct{}, 1)}, nil
}

// isNilPointer finds the typed nil that a plain comparison misses.
func isNilPointer(port any) bool {
	v := reflect.ValueOf(port)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Close ends the Shepherd, watches first: once it was called nothing more is delivered.
// Prompts in flight are detached: their notes say so, waits return [ErrClosed], and the
// agents are left alone (ruling R13). Close agents that are not wanted any more before, with
// CloseAgent; whoever built the Herdr closes it afterwards. Results and Undelivered stay
// readable. Close blocks until everything has ended or ctx has; then it says what has not.
func (s *Shepherd) Close(ctx context.Context) error {
	err := errors.Join(s.watches.Close(ctx), s.agents.Close(ctx), s.reservationsOver(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.session != nil {
		err = errors.Join(err, s.session.Close())
	}
	return err
}

func (s *Shepherd) reservationsOver(ctx context.Context) error {
	idle := make(chan struct{})
	go func() { s.wg.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shepherd: a note is still being reserved: %w", ctx.Err())
	}
}
