// Package watchtest helps to test with package watch: a Notifier that remembers, and the
// suite that every Notifier has to pass.
package watchtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/watch"
)

// Recorder is a watch.Notifier that takes everything and remembers it. The zero value is
// ready. It may be used from many goroutines.
type Recorder struct {
	// Before is called first, with the count of the offer from 1; its error is Notify's.
	Before func(ctx context.Context, offer int, n watch.Notification) error

	mu     sync.Mutex
	offers int
	taken  []watch.Notification
	times  []time.Time
}

// Notify remembers a notification, unless Before refuses it.
func (r *Recorder) Notify(ctx context.Context, n watch.Notification) error {
	r.mu.Lock()
	r.offers++
	offer := r.offers
	r.mu.Unlock()
	if r.Before != nil {
		if err := r.Before(ctx, offer, n); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken, r.times = append(r.taken, n), append(r.times, time.Now())
	return nil
}

// Taken are the notifications taken so far, in order.
func (r *Recorder) Taken() []watch.Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.taken)
}

// Times say when each of Taken was.
func (r *Recorder) Times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.times)
}

// Offers is how often Notify was called.
func (r *Recorder) Offers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.offers
}

// Completions are those of all notifications taken so far, in order.
func (r *Recorder) Completions() []watch.Completion {
	var all []watch.Completion
	for _, n := range r.Taken() {
		all = append(all, n.Completions...)
	}
	return all
}
