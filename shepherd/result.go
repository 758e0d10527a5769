package shepherd

import "context"

// Wait blocks until all prompts have a result and returns the results in the order of the
// ids: one for each, duplicates and failures included; an id that is not known has a failed
// result in its place (ruling R11). When Config.WaitTimeout is over, the prompts still open
// are settled as timed out; [Shepherd.WaitFor] can let them go on. A ctx that ends only stops
// the waiting. Errors match ctx's, [ErrInvalid] for an empty list, and [ErrClosed].
func (s *Shepherd) Wait(ctx context.Context, prompts ...PromptID) ([]Result, error) {
	return s.agents.Wait(ctx, prompts...)
}

// WaitFor is [Shepherd.Wait] with options. When the time is up it returns within the limits
// of [Rules] for a last look, the reply and the note.
func (s *Shepherd) WaitFor(ctx context.Context, o WaitOptions, prompts ...PromptID) ([]Result, error) {
	return s.agents.WaitFor(ctx, o, prompts...)
}

// Result is a prompt's result, if it has one. It never waits for the agent; the text of an
// old result is read from its note.
func (s *Shepherd) Result(prompt PromptID) (Result, bool) { return s.agents.Result(prompt) }

// Watch registers interest in one or more prompts and returns at once. What has settled is
// in Completed; the notifier is told of each of the others exactly once, when it settles.
// Duplicates are folded; one id that is not known, and nothing is registered (ruling R11).
// Errors match [ErrInvalid], [ErrUnknownPrompt], [ErrUnreachable], [ErrClosed] and ctx's,
// if that has ended already.
func (s *Shepherd) Watch(ctx context.Context, prompts ...PromptID) (Registration, error) {
	if err := ctx.Err(); err != nil {
		return Registration{}, err
	}
	return s.watches.Watch(prompts...)
}

// Unwatch ends a watcher: nothing further is offered, and a call of the notifier in flight
// is cancelled. Errors match [ErrUnknownWatcher], also for one that has finished.
func (s *Shepherd) Unwatch(watcher WatchID) error { return s.watches.Unwatch(watcher) }

// Undelivered lists the notifications that the notifier did not take, oldest first; after
// Close also those that were being gathered or offered then (ruling R9).
func (s *Shepherd) Undelivered() []Undelivered { return s.watches.Undelivered() }
