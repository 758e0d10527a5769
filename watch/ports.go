package watch

import (
	"context"
	"errors"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Notifier tells the parent. It may be called from many goroutines at once, but never by two
// for one watcher, unless an earlier call did not end with its ctx.
type Notifier interface {
	// Notify takes a notification over: once it returns nil, delivery is the notifier's
	// business and the notification is never offered again. It should end with its ctx,
	// which ends when the watcher is stopped and after Options.Hang.
	//
	// An error that matches [ErrSessionOver] is final. After any other error, and after a
	// panic, the same notification is offered again a few times (ruling R9). A call that
	// was cut off may or may not have delivered; only a notifier that declares itself
	// [Idempotent] is offered such a notification again.
	Notify(ctx context.Context, n Notification) error
}

// NotifierFunc is a function as a [Notifier].
type NotifierFunc func(ctx context.Context, n Notification) error

// Notify calls f.
func (f NotifierFunc) Notify(ctx context.Context, n Notification) error { return f(ctx, n) }

// Idempotent is what a [Notifier] may declare as well: that it recognises a notification by
// its id, so that it can be offered one again of which nobody knows whether it was delivered.
type Idempotent interface{ Idempotent() bool }

// Reachability is what a [Notifier] may declare as well: why nothing can be delivered, or
// "". A host that has no later turns says so here, and nothing is registered (ruling R15).
type Reachability interface{ Unreachable() string }

// ErrSessionOver is for a [Notifier] to return: the parent session for which the
// notification is meant has ended. It is not offered again.
var ErrSessionOver = errors.New("watch: the parent session is over")

// Prompts is what watch needs of prompts: a *lifecycle.Registry has it.
type Prompts interface {
	// AfterDone runs f once the result can be read, at once if it can be read now. f does
	// not block. An unknown id is an error.
	AfterDone(id lifecycle.PromptID, f func()) error
	// Result is the published result.
	Result(id lifecycle.PromptID) (lifecycle.Result, bool)
}
