package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/watch"
	"github.com/pi-shepherd/go-shepherd/watch/watchtest"
)

// prompts is a watch.Prompts that a test settles by hand.
type prompts struct {
	mu      sync.Mutex
	results map[lifecycle.PromptID]*lifecycle.Result // nil: known, not settled
	after   map[lifecycle.PromptID][]func()
}

func newPrompts(ids ...lifecycle.PromptID) *prompts {
	p := &prompts{results: map[lifecycle.PromptID]*lifecycle.Result{}, after: map[lifecycle.PromptID][]func(){}}
	for _, id := range ids {
		p.results[id] = nil
	}
	return p
}

func (p *prompts) AfterDone(id lifecycle.PromptID, f func()) error {
	p.mu.Lock()
	r, known := p.results[id]
	if known && r == nil {
		p.after[id] = append(p.after[id], f)
	}
	p.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("%w: %s", lifecycle.ErrUnknownPrompt, id)
	case r != nil:
		f()
	}
	return nil
}

func (p *prompts) Result(id lifecycle.PromptID) (lifecycle.Result, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.results[id]; r != nil {
		return *r, true
	}
	return lifecycle.Result{}, false
}

func (p *prompts) settle(id lifecycle.PromptID, s lifecycle.Status) {
	p.mu.Lock()
	p.results[id] = &lifecycle.Result{
		PromptID: id, AgentID: "agent of " + lifecycle.AgentID(id), Agent: "scout", Label: "auth",
		Status: s, ReturnCode: s.ReturnCode(), Text: "text of " + string(id), NotePath: "/notes/" + string(id), At: time.Now(),
	}
	after := p.after[id]
	delete(p.after, id)
	p.mu.Unlock()
	for _, f := range after {
		f()
	}
}

type rig struct {
	*testing.T
	*is.I
	*watch.Service
	prompts *prompts
	told    *watchtest.Recorder
}

const a, b, c, d = lifecycle.PromptID("A"), lifecycle.PromptID("B"), lifecycle.PromptID("C"), lifecycle.PromptID("D")

type ids = []lifecycle.PromptID

// bubble runs f with the prompts A to D, none of which has settled.
func bubble(t *testing.T, o watch.Options, f func(r *rig)) {
	t.Helper()
	bubbleWith(t, o, func(r *watchtest.Recorder) watch.Notifier { return r }, f)
}

func bubbleWith(t *testing.T, o watch.Options, notifier func(*watchtest.Recorder) watch.Notifier, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, I: is.New(t), prompts: newPrompts(a, b, c, d), told: &watchtest.Recorder{}}
		var err error
		r.Service, err = watch.New(r.prompts, notifier(r.told), o)
		r.NoErr(err)
		f(r)
		r.close(time.Hour)
	})
}

func (r *rig) close(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	r.NoErr(r.Service.Close(ctx))
}

func (r *rig) watch(ids ...lifecycle.PromptID) watch.Registration {
	r.T.Helper()
	reg, err := r.Service.Watch(ids...)
	r.NoErr(err)
	return reg
}

func (r *rig) settle(ids ...lifecycle.PromptID) {
	for _, id := range ids {
		r.prompts.settle(id, lifecycle.StatusDone)
	}
}

// toldOf are the prompts of all completions so far, notification by notification.
func (r *rig) toldOf() []ids {
	var all []ids
	for _, n := range r.told.Taken() {
		var in ids
		for _, c := range n.Completions {
			in = append(in, c.PromptID)
		}
		all = append(all, in)
	}
	return all
}
