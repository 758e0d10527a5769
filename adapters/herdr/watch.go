package herdr

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// watcher is what all agents of a Herdr share while there are any: one subscription for the
// ends and moves of panes, one for the status of those panes that have nothing better, and a
// reading of everything now and then. However many observers there are, it stays at that.
type watcher struct {
	h       *Herdr
	ctx     context.Context
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	set     chan struct{} // the panes whose status is wanted may have changed
	rebuild [2]chan struct{}
}

const (
	lifecycleStream = iota
	statusStream
)

// watch starts the goroutines of a watcher; end stops them.
func watch(h *Herdr) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{h: h, ctx: ctx, cancel: cancel, set: make(chan struct{}, 1)}
	for i := range w.rebuild {
		w.rebuild[i] = make(chan struct{}, 1)
	}
	w.loops.Go(w.followLifecycle)
	w.loops.Go(w.followStatus)
	w.loops.Go(w.reconcileAgain)
	return w
}

func (w *watcher) end() {
	w.cancel()
	w.loops.Wait()
}

func (w *watcher) setChanged() { signal(w.set) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// followLifecycle keeps the subscription for the ends and moves of panes. Each new one begins
// with everything that the server still remembers, about whatever panes.
func (w *watcher) followLifecycle() {
	var pause backoff
	for w.ctx.Err() == nil {
		s, err := w.h.client.subscribe(w.ctx, lifecycleEvents)
		if err != nil {
			w.blind(err)
			_ = sleep(w.ctx, pause.next(err))
			continue
		}
		since, drained := time.Now(), w.drain(s)
		_, _ = w.h.reconcile(w.ctx) // nothing was heard before the acknowledgement
		select {
		case <-drained:
			_, _ = w.h.reconcile(w.ctx)
			_ = sleep(w.ctx, pause.after(since))
		case <-w.rebuild[lifecycleStream]:
		case <-w.ctx.Done():
		}
		s.close()
		<-drained
		w.h.lost()
	}
}

// followStatus keeps the subscription for the status of panes. When their set changes, a new
// one is made before the old one is closed.
func (w *watcher) followStatus() {
	const settle = 100 * time.Millisecond // several changes make one rebuilding
	var (
		pause   backoff
		current *stream
		drained <-chan struct{} // nil blocks
		since   time.Time
		have    []string
		retry   <-chan time.Time
	)
	drop := func() {
		if current != nil {
			current.close()
			<-drained
		}
		current, drained, have = nil, nil, nil
	}
	defer drop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.set:
			_ = sleep(w.ctx, settle)
		case <-drained:
			drop()
			retry = time.After(pause.after(since))
			continue
		case <-w.rebuild[statusStream]:
			have = nil
		case <-retry:
		}
		retry = nil
		want := w.h.statusPanes()
		if len(want) == 0 {
			drop()
			continue
		}
		if current != nil && slices.Equal(want, have) {
			continue
		}
		next, err := w.subscribeStatus(want)
		if err != nil {
			retry = time.After(pause.next(err))
			continue
		}
		fresh := w.drain(next)
		_, _ = w.h.reconcile(w.ctx)
		drop()
		current, drained, have, since = next, fresh, want, time.Now()
	}
}

// deadEntry is the id of the answer that rejects a whole subscription because of one pane.
var deadEntry = regexp.MustCompile(`:sub:(\d+):probe$`)

// subscribeStatus subscribes to the status of the panes, without those that are gone.
func (w *watcher) subscribeStatus(panes []string) (*stream, error) {
	panes = slices.Clone(panes)
	for {
		subs := make([]subscription, len(panes))
		for i, p := range panes {
			subs[i] = subscription{Type: statusEvent, PaneID: p}
		}
		s, err := w.h.client.subscribe(w.ctx, subs)
		var refused *Error
		if err == nil || !errors.As(err, &refused) || !refused.gone() {
			return s, err
		}
		m := deadEntry.FindStringSubmatch(refused.ID)
		if m == nil {
			return nil, err
		}
		i, _ := strconv.Atoi(m[1])
		if i >= len(panes) {
			return nil, err
		}
		w.h.hint(func(at place) bool { return at.pane == panes[i] })
		panes = slices.Delete(panes, i, i+1)
	}
}

// drain reads a subscription to its end and turns what it says into readings.
func (w *watcher) drain(s *stream) <-chan struct{} {
	ended := make(chan struct{})
	unhook := context.AfterFunc(w.ctx, s.close)
	go func() {
		defer close(ended)
		defer unhook()
		for {
			e, err := s.next()
			if err != nil {
				return
			}
			w.h.heard(e)
		}
	}()
	return ended
}

// blind: the server cannot be reached.
func (w *watcher) blind(err error) {
	w.h.o.Logger.Debug("no subscription", "error", err)
	for _, a := range w.h.all() {
		if !a.linkUp() {
			a.unseen()
			a.buryWithServer(err)
		}
	}
}

// statusPanes are the panes of agents that only Herdr can tell about.
func (h *Herdr) statusPanes() []string {
	var panes []string
	for _, a := range h.all() {
		if at := a.place(); at.pane != "" && a.needsStatus() {
			panes = append(panes, at.pane)
		}
	}
	slices.Sort(panes)
	return panes
}

// backoff spreads attempts to connect again.
type backoff struct{ n int }

// after is the pause when a connection made at since has ended: none if it had held.
func (b *backoff) after(since time.Time) time.Duration {
	if time.Since(since) > time.Second {
		b.n = 0
		return 0
	}
	return b.next(nil)
}

func (b *backoff) next(err error) time.Duration {
	const first = 100 * time.Millisecond
	longest := 5 * time.Second
	if errors.Is(err, ErrNotRunning) {
		longest = 30 * time.Second
	}
	d := min(first<<min(b.n, 20), longest)
	b.n++
	return d/2 + rand.N(d/2)
}
