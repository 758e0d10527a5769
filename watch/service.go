package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Errors that a caller may branch on.
var (
	// ErrInvalid: the list of prompts is empty, or an option cannot be used.
	ErrInvalid = errors.New("watch: invalid argument")
	// ErrUnknownWatcher: no watcher has the id, or it has finished.
	ErrUnknownWatcher = errors.New("watch: unknown watcher")
	// ErrUnreachable: the parent cannot be told anything later. Wait instead (ruling R15).
	ErrUnreachable = errors.New("watch: the parent cannot be notified")
	// ErrClosed: the service was closed.
	ErrClosed = errors.New("watch: closed")
)

// Options are a service's settings; the zero value is good.
type Options struct {
	Clock    lifecycle.Clock // default: the system's
	Logger   *slog.Logger    // default: discards
	Scope    string          // in the ids of watchers; default: eight hex digits of its own
	Coalesce time.Duration   // how long a completion waits for others, from the first one; default 25 ms
	Hang     time.Duration   // the longest one call of the notifier may take; default 30 s
	// Retries are the pauses before a notification is offered again after an error.
	// Default 0.25, 1, 4, 8, 16 s (ruling R9).
	Retries []time.Duration
	// KeepUndelivered is how many undelivered notifications are kept, the newest; default 1,000.
	KeepUndelivered int
}

func (o Options) withDefaults() (Options, error) {
	for _, d := range append([]time.Duration{o.Coalesce, o.Hang}, o.Retries...) {
		if d < 0 {
			return o, fmt.Errorf("%w: a duration is negative: %v", ErrInvalid, d)
		}
	}
	if o.KeepUndelivered < 0 {
		return o, fmt.Errorf("%w: KeepUndelivered is negative: %d", ErrInvalid, o.KeepUndelivered)
	}
	if o.Clock == nil {
		o.Clock = lifecycle.System{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Scope == "" {
		o.Scope = uuid.NewString()[:8]
	}
	if o.Coalesce == 0 {
		o.Coalesce = 25 * time.Millisecond
	}
	if o.Hang == 0 {
		o.Hang = 30 * time.Second
	}
	if o.Retries == nil {
		o.Retries = []time.Duration{250 * time.Millisecond, time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
	}
	if o.KeepUndelivered == 0 {
		o.KeepUndelivered = 1000
	}
	return o, nil
}

// Service has the watchers of one parent. All methods may be called from many goroutines at
// once. Its lock is a leaf: neither prompts nor notifier are called while it is held.
type Service struct {
	prompts  Prompts
	notifier Notifier
	options  Options

	life context.Context // ends when Close begins
	stop context.CancelFunc
	wg   sync.WaitGroup // watchers and calls of the notifier

	mu          sync.Mutex
	watchers    map[ID]*watcher
	undelivered []Undelivered
}

// New makes a service. A nil notifier is allowed: then nothing can be watched. Errors match
// [ErrInvalid].
func New(p Prompts, n Notifier, o Options) (*Service, error) {
	if p == nil {
		return nil, fmt.Errorf("%w: the prompts are nil", ErrInvalid)
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{prompts: p, notifier: n, options: o, watchers: map[ID]*watcher{}}
	s.life, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Watch registers interest in one or more prompts and returns at once. Prompts that have
// settled are in Completed, and the notifier is never told of them; of each of the others
// it is told exactly once. A prompt that is named twice counts once, at its first place. If
// any id is not that of a prompt, nothing is registered (ruling R11).
//
// Errors match [ErrInvalid], [ErrUnreachable], [ErrClosed] and lifecycle.ErrUnknownPrompt.
func (s *Service) Watch(ids ...lifecycle.PromptID) (Registration, error) {
	if err := s.reachable(); err != nil {
		return Registration{}, err
	}
	ids, err := s.known(ids)
	if err != nil {
		return Registration{}, err
	}
	w := newWatcher(s, ids)
	reg := Registration{WatcherID: w.id, PromptIDs: ids}
	var open []int
	for i, id := range ids {
		if r, ok := s.prompts.Result(id); ok {
			reg.Completed = append(reg.Completed, Completion{WatcherID: w.id, Result: r})
			continue
		}
		open = append(open, i) // from here on its result is a notification, also if it is there by now
		reg.Pending = append(reg.Pending, id)
	}
	for i := range reg.Completed {
		reg.Completed[i].Pending = len(open)
	}
	return reg, s.begin(w, open)
}

// reachable says whether there is anybody to tell.
func (s *Service) reachable() error {
	if s.notifier == nil {
		return fmt.Errorf("%w: there is no notifier; use shepherd_wait", ErrUnreachable)
	}
	if r, ok := s.notifier.(Reachability); ok {
		if why := r.Unreachable(); why != "" {
			return fmt.Errorf("%w: %s; nothing was registered, use shepherd_wait", ErrUnreachable, why)
		}
	}
	return nil
}

// known folds duplicates and checks every id before anything is registered.
func (s *Service) known(ids []lifecycle.PromptID) ([]lifecycle.PromptID, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no prompt ids to watch", ErrInvalid)
	}
	seen := make(map[lifecycle.PromptID]bool, len(ids))
	unique := make([]lifecycle.PromptID, 0, len(ids))
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := s.prompts.AfterDone(id, func() {}); err != nil {
			return nil, fmt.Errorf("watch: nothing was registered: %w", err)
		}
		unique = append(unique, id)
	}
	return unique, nil
}

// begin starts the watcher's goroutine, unless everything has settled.
func (s *Service) begin(w *watcher, open []int) error {
	s.mu.Lock()
	if s.life.Err() != nil {
		s.mu.Unlock()
		return ErrClosed
	}
	if len(open) > 0 {
		s.watchers[w.id] = w
		s.wg.Go(func() { w.run(len(open)) })
	}
	s.mu.Unlock()
	for _, i := range open {
		if err := s.prompts.AfterDone(w.prompts[i], func() { w.settled(i) }); err != nil {
			w.stop() // cannot happen: the id was known, and prompts are kept
			return fmt.Errorf("watch: %w", err)
		}
	}
	return nil
}

// Unwatch ends a watcher: nothing further is offered, and a call in flight is cancelled. The
// results stay where they are. Errors match [ErrUnknownWatcher].
func (s *Service) Unwatch(id ID) error {
	s.mu.Lock()
	w := s.watchers[id]
	delete(s.watchers, id)
	s.mu.Unlock()
	if w == nil {
		return fmt.Errorf("%w: %q has finished, or never was one", ErrUnknownWatcher, id)
	}
	w.unwatch()
	return nil
}

// Watchers are the ids of the watchers that have not finished, in no order.
func (s *Service) Watchers() []ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]ID, 0, len(s.watchers))
	for id := range s.watchers {
		ids = append(ids, id)
	}
	return ids
}

// Undelivered lists the notifications that the notifier did not take, oldest first; after
// Close also those that were being gathered or offered then. At most Options.options.KeepUndelivered
// are kept.
func (s *Service) Undelivered() []Undelivered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.undelivered)
}

func (s *Service) keep(u Undelivered) {
	s.options.Logger.Error("notification not delivered", "watcher", u.Notification.WatcherID, "notification", u.Notification.ID, "offers", u.Offers, "unknown", u.Unknown, "err", u.Err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undelivered = append(s.undelivered, u)
	if n := len(s.undelivered) - s.options.KeepUndelivered; n > 0 {
		s.undelivered = slices.Delete(s.undelivered, 0, n)
	}
}

// Close ends all watchers. Once it was called no call of the notifier begins, and those in
// flight are cancelled. It blocks until the watchers and those calls have ended or ctx has;
// with ctx ended it returns an error. Calling it again waits again.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() { s.wg.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("watch: closing is not complete, the notifier does not return: %w", ctx.Err())
	}
}
