package lifecycle

import (
	"context"
	"fmt"
	"time"
)

// WaitOptions are what may vary from wait to wait; the zero value is good.
type WaitOptions struct {
	// Timeout is the longest to wait for all the prompts; default Options.WaitTimeout.
	Timeout time.Duration
	// Keep lets prompts go on when the time is up. Without it they are settled as timed
	// out, for everybody (ruling R12).
	Keep bool
}

// Wait blocks until all prompts have a result, in any order, and returns the results in the
// order of the ids: one for each id, duplicates and failures included. An id that is not
// known has a failed result in its place, which says so (ruling R11). When Options.WaitTimeout
// is over the prompts still open are settled as timed out; see [Registry.WaitFor].
//
// A ctx that ends only stops the waiting. Errors match ctx's, [ErrInvalid] for an empty
// list, and [ErrClosed] when the registry was closed before all prompts had a result.
func (r *Registry) Wait(ctx context.Context, ids ...PromptID) ([]Result, error) {
	return r.WaitFor(ctx, WaitOptions{}, ids...)
}

// WaitFor is [Registry.Wait] with options. When the time is up it returns within the limits
// of [Rules] for a last look, the reply and the note.
func (r *Registry) WaitFor(ctx context.Context, o WaitOptions, ids ...PromptID) ([]Result, error) {
	limit, err := duration("the wait's timeout", o.Timeout, r.options.WaitTimeout)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no prompt ids to wait for", ErrInvalid)
	}
	w := wait{r: r, limit: limit, keep: o.Keep, prompts: make([]*prompt, len(ids)), timer: r.options.Clock.After(limit)}
	results := make([]Result, len(ids))
	for i, id := range ids {
		if w.prompts[i], err = r.prompt(id); err != nil {
			results[i] = Result{PromptID: id, Status: StatusFailed, ReturnCode: StatusFailed.ReturnCode(), Error: err.Error(), At: r.options.Clock.Now()}
		}
	}
	for i, p := range w.prompts {
		if p == nil {
			continue
		}
		if results[i], err = w.result(ctx, p); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// wait is one call of WaitFor. Its prompts end side by side, so it can ask for one after
// the other.
type wait struct {
	r       *Registry
	limit   time.Duration
	keep    bool
	prompts []*prompt // nil where the id is unknown
	timer   <-chan time.Time
	over    bool
}

func (w *wait) result(ctx context.Context, p *prompt) (Result, error) {
	for {
		select {
		case <-p.done:
			return w.take(p), nil
		default:
		}
		if w.over && w.keep {
			return w.r.complete(p, Result{Status: StatusTimeout, Running: true, Error: fmt.Sprintf("not done after %v; the prompt goes on", w.limit)}), nil
		}
		select {
		case <-p.done:
		case <-w.timer:
			w.expire()
		case <-ctx.Done():
			return Result{}, fmt.Errorf("lifecycle: wait for %s: %w", p.id, ctx.Err())
		case <-w.r.life.Done():
			return Result{}, fmt.Errorf("%w: %s has no result", ErrClosed, p.id)
		}
	}
}

func (w *wait) expire() {
	w.over, w.timer = true, nil
	if w.keep {
		return
	}
	for _, p := range w.prompts {
		if p != nil {
			p.propose(timeUp(fmt.Sprintf("not done after %v", w.limit)))
		}
	}
}

func (w *wait) take(p *prompt) Result {
	res, _ := w.r.Result(p.id)
	w.r.mu.Lock()
	p.waited = true
	w.r.mu.Unlock()
	return res
}
