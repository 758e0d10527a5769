package lifecycle

import (
	"sync"
	"time"
)

// Level keeps the newest [Observation] of one agent for a [Herdr]: the value, and a channel
// that is closed when it changes. The zero Level is ready and Unknown. All methods may be
// called from many goroutines at once; none blocks.
type Level struct {
	mu      sync.Mutex
	now     Observation
	changed chan struct{}
}

// Get returns the newest observation and the channel that the next change closes: what
// Herdr.Observe has to return.
func (l *Level) Get() (Observation, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.now, l.changed
}

// Set lets change edit the observation and wakes the observers if it made a difference. It
// stamps Since when the state changed, and Seen, both with at. change must not call l.
func (l *Level) Set(at time.Time, change func(*Observation)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.now
	change(&l.now)
	if l.now.State != before.State || before.Since.IsZero() {
		l.now.Since = at
	}
	l.now.Seen = before.Seen
	same := l.now == before
	l.now.Seen = at
	if same || l.changed == nil {
		return
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Touch notes a sign of life and wakes nobody.
func (l *Level) Touch(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Seen = at
}
