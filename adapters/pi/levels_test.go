package pi

import (
	"sync"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// levels collects what a link tells.
type levels struct {
	mu      sync.Mutex
	all     []link.Event
	changed chan struct{}
}

func newLevels() *levels { return &levels{changed: make(chan struct{})} }

func (l *levels) add(e link.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *levels) newest() (e link.Event, n int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n = len(l.all); n > 0 {
		e = l.all[n-1]
	}
	return e, n, l.changed
}

// has reports whether any level so far was so.
func (l *levels) has(so func(link.Event) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if so(e) {
			return true
		}
	}
	return false
}

// until waits for the newest level to be so, and fails the test when it never is.
func (l *levels) until(t testing.TB, what string, so func(link.Event) bool) link.Event {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		e, n, changed := l.newest()
		if n > 0 && so(e) {
			return e
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("never %s; %d levels, the newest %+v", what, n, e)
		}
	}
}

func up(e link.Event) bool   { return e.Up }
func down(e link.Event) bool { return !e.Up }
func busy(e link.Event) bool { return e.Busy }
func rest(e link.Event) bool { return !e.Busy }

func settled(p lifecycle.PromptID) func(link.Event) bool {
	return func(e link.Event) bool { return e.Current.Prompt == p && e.Current.Final() && !e.Busy }
}

func started(p lifecycle.PromptID) func(link.Event) bool {
	return func(e link.Event) bool { return e.Current.Prompt == p && e.Current.Kind == lifecycle.Started }
}

// promptID returns an id like those that lifecycle mints, with the given end.
func promptID(end string) lifecycle.PromptID {
	const like = "shepherd-prompt-0a1b2c3d-6f9619ff-8b86-4d01-b42d-000000000000"
	return lifecycle.PromptID(like[:len(like)-len(end)] + end)
}
