package lifecycletest

import (
	"context"
	"sync"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// TB is the part of testing.TB that Verify needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Verify wraps any Herdr and fails the test at the call that breaks a promise of package
// lifecycle: a prompt is submitted at most once, an agent is given one prompt at a time and
// none once its closing has begun, and only what was launched is touched.
type Verify struct {
	lifecycle.Herdr
	T TB

	mu        sync.Mutex
	submitted map[lifecycle.PromptID]bool
	busy      map[lifecycle.Target]bool
	closing   map[lifecycle.Target]bool
	known     map[lifecycle.Target]bool
	observed  int
}

// Observed is how often Observe was called: how often somebody woke up to look.
func (v *Verify) Observed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.observed
}

func (v *Verify) check(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.submitted, v.busy = map[lifecycle.PromptID]bool{}, map[lifecycle.Target]bool{}
		v.closing, v.known = map[lifecycle.Target]bool{}, map[lifecycle.Target]bool{}
	}
	f()
}

// Launch is Herdr.Launch.
func (v *Verify) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	t, err := v.Herdr.Launch(ctx, s)
	if err == nil {
		v.check(func() { v.known[t] = true })
	}
	return t, err
}

// Submit is Herdr.Submit.
func (v *Verify) Submit(ctx context.Context, t lifecycle.Target, s lifecycle.Submission) error {
	v.T.Helper()
	v.check(func() {
		switch {
		case !v.known[t]:
			v.T.Errorf("submit to %s, which was not launched", t)
		case v.closing[t]:
			v.T.Errorf("submit to %s, which is being closed", t)
		case v.submitted[s.Prompt]:
			v.T.Errorf("%s was submitted twice", s.Prompt)
		case v.busy[t]:
			v.T.Errorf("two submissions to %s at once", t)
		}
		v.submitted[s.Prompt], v.busy[t] = true, true
	})
	defer v.check(func() { v.busy[t] = false })
	return v.Herdr.Submit(ctx, t, s)
}

// Observe is Herdr.Observe.
func (v *Verify) Observe(t lifecycle.Target) (lifecycle.Observation, <-chan struct{}) {
	v.check(func() { v.observed++ })
	return v.Herdr.Observe(t)
}

// Close is Herdr.Close.
func (v *Verify) Close(ctx context.Context, t lifecycle.Target) error {
	v.T.Helper()
	v.check(func() {
		if !v.known[t] {
			v.T.Errorf("close of %s, which was not launched", t)
		}
		v.closing[t] = true
	})
	return v.Herdr.Close(ctx, t)
}
