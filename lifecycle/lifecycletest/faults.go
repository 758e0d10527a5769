package lifecycletest

import (
	"context"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Op is one method of a Herdr that can fail.
type Op string

// The operations.
const (
	Launch Op = "launch"
	Submit Op = "submit"
	Look   Op = "look"
	Reply  Op = "reply"
	Close  Op = "close"
)

// Fault is what goes wrong with a call. It waits for Delay, or for ever with Hang, both only
// until the call's ctx ends; then it returns Err. With Err nil the call goes on as usual.
type Fault struct {
	Delay time.Duration
	Hang  bool
	Deaf  bool  // Delay and Hang do not end with the ctx: against the contract, as real disks and servers do
	After bool  // the call is made first, then Err is returned: it worked, and its caller does not know
	Err   error // returned instead of the call's
}

// Faults wraps any Herdr and makes calls fail on purpose.
type Faults struct {
	lifecycle.Herdr
	// Choose says what goes wrong with the n-th call (from 1) of an operation.
	Choose func(op Op, n int) Fault

	mu    sync.Mutex
	calls map[Op]int
}

// Calls is how often an operation was called.
func (f *Faults) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *Faults) do(ctx context.Context, op Op, call func() error) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[Op]int{}
	}
	f.calls[op]++
	n, fault := f.calls[op], Fault{}
	f.mu.Unlock()
	if f.Choose != nil {
		fault = f.Choose(op, n)
	}
	if err := fault.wait(ctx); err != nil {
		return err
	}
	if fault.Err == nil {
		return call()
	}
	if fault.After {
		_ = call()
	}
	return fault.Err
}

func (f Fault) wait(ctx context.Context) error {
	var due <-chan time.Time
	switch {
	case f.Hang:
	case f.Delay > 0:
		due = time.After(f.Delay)
	default:
		return nil
	}
	done := ctx.Done()
	if f.Deaf {
		done = nil
	}
	select {
	case <-due:
		return nil
	case <-done:
		return ctx.Err()
	}
}

// Launch is Herdr.Launch with faults.
func (f *Faults) Launch(ctx context.Context, s lifecycle.Spec) (t lifecycle.Target, err error) {
	err = f.do(ctx, Launch, func() error { t, err = f.Herdr.Launch(ctx, s); return err })
	return t, err
}

// Submit is Herdr.Submit with faults.
func (f *Faults) Submit(ctx context.Context, t lifecycle.Target, s lifecycle.Submission) error {
	return f.do(ctx, Submit, func() error { return f.Herdr.Submit(ctx, t, s) })
}

// Look is Herdr.Look with faults.
func (f *Faults) Look(ctx context.Context, t lifecycle.Target) (o lifecycle.Observation, err error) {
	err = f.do(ctx, Look, func() error { o, err = f.Herdr.Look(ctx, t); return err })
	return o, err
}

// Reply is Herdr.Reply with faults.
func (f *Faults) Reply(ctx context.Context, t lifecycle.Target, p lifecycle.PromptID) (text string, err error) {
	err = f.do(ctx, Reply, func() error { text, err = f.Herdr.Reply(ctx, t, p); return err })
	return text, err
}

// Close is Herdr.Close with faults.
func (f *Faults) Close(ctx context.Context, t lifecycle.Target) error {
	return f.do(ctx, Close, func() error { return f.Herdr.Close(ctx, t) })
}
