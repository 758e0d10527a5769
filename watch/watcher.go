package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// watcher is one subscription. Its goroutine gathers and offers; everybody else only says
// that a prompt has settled, or that the watcher is to stop.
type watcher struct {
	s       *Service
	id      ID
	prompts []lifecycle.PromptID

	ctx  context.Context // ends with the watcher, by Unwatch or by Close
	stop context.CancelFunc
	wake chan struct{} // holds one: something is in got

	mu        sync.Mutex
	got       []int // positions that have settled and were not yet gathered
	unwatched bool
}

func newWatcher(s *Service, ids []lifecycle.PromptID) *watcher {
	w := &watcher{s: s, id: ID("shepherd-watch-" + s.options.Scope + "-" + uuid.NewString()), prompts: ids, wake: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(s.life)
	return w
}

// settled is called by whoever publishes the prompt at position i; it does not block.
func (w *watcher) settled(i int) {
	w.mu.Lock()
	w.got = append(w.got, i)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) unwatch() {
	w.mu.Lock()
	w.unwatched = true
	w.mu.Unlock()
	w.stop()
}

// run offers what settles until nothing is open any more.
func (w *watcher) run(open int) {
	defer w.end()
	n := 0
	for more := true; more && open > 0; {
		more = w.gather()
		if batch := w.take(); len(batch) > 0 {
			n++
			open -= len(batch)
			w.offer(w.notification(n, batch, open))
		}
	}
}

func (w *watcher) end() {
	w.stop()
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watchers, w.id)
}

// gather waits for a settled prompt and then for its company. It reports whether the
// watcher goes on.
func (w *watcher) gather() bool {
	select {
	case <-w.wake:
	case <-w.ctx.Done():
		return false
	}
	select {
	case <-w.s.options.Clock.After(w.s.options.Coalesce):
		return true
	case <-w.ctx.Done():
		return false
	}
}

// take empties what was gathered, in the order in which the prompts were named.
func (w *watcher) take() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := w.got
	w.got = nil
	select { // whoever filled wake is in batch
	case <-w.wake:
	default:
	}
	slices.Sort(batch)
	return batch
}

func (w *watcher) notification(n int, batch []int, pending int) Notification {
	note := Notification{ID: NotificationID(fmt.Sprintf("%s/%d", w.id, n)), WatcherID: w.id, Pending: pending}
	for _, i := range batch {
		r, _ := w.s.prompts.Result(w.prompts[i])
		note.Completions = append(note.Completions, Completion{WatcherID: w.id, Result: r, Pending: pending})
	}
	return note
}

// offer offers a notification until it is taken, or given up (ruling R9).
func (w *watcher) offer(n Notification) {
	u := Undelivered{Notification: n, Err: ErrClosed}
	for {
		if w.ctx.Err() != nil {
			break
		}
		u.Offers++
		u.Unknown, u.Err = w.call(n)
		if u.Err == nil {
			return
		}
		w.s.options.Logger.Warn("notification not taken", "watcher", w.id, "notification", n.ID, "offer", u.Offers, "err", u.Err)
		final := errors.Is(u.Err, ErrSessionOver) || (u.Unknown && !w.s.idempotent())
		if final || u.Offers > len(w.s.options.Retries) || !w.pause(w.s.options.Retries[u.Offers-1]) {
			break
		}
	}
	w.mu.Lock()
	unwatched := w.unwatched
	w.mu.Unlock()
	if !unwatched {
		w.s.keep(u)
	}
}

func (w *watcher) pause(d time.Duration) bool {
	select {
	case <-w.s.options.Clock.After(d):
		return true
	case <-w.ctx.Done():
		return false
	}
}

// call calls the notifier once, in a goroutine of its own: it may panic, or hang although
// its ctx has ended. unknown says that the call was cut off.
func (w *watcher) call(n Notification) (unknown bool, err error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	errc := make(chan error, 1)
	n.Completions = slices.Clone(n.Completions) // the notifier's own
	w.s.wg.Go(func() { errc <- w.s.notify(ctx, n) })
	select {
	case err := <-errc:
		return false, err
	case <-w.s.options.Clock.After(w.s.options.Hang):
		return true, fmt.Errorf("watch: the notifier did not return within %v", w.s.options.Hang)
	case <-w.ctx.Done():
	}
	select { // a notifier that obeys its ctx says how it ended
	case err := <-errc:
		return false, err
	case <-w.s.options.Clock.After(grace):
		return true, fmt.Errorf("watch: the notifier did not return when it was cancelled")
	}
}

// grace is what a cancelled call of the notifier has left to say how it ended.
const grace = time.Second

// notify turns a panic into an error, and does not call under a ctx that has ended.
func (s *Service) notify(ctx context.Context, n Notification) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("watch: the notifier panicked: %v", p)
		}
	}()
	if ctx.Err() != nil {
		return ErrClosed
	}
	return s.notifier.Notify(ctx, n)
}

func (s *Service) idempotent() bool {
	i, ok := s.notifier.(Idempotent)
	return ok && i.Idempotent()
}
