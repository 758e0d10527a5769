package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

// rig is a registry on an in-memory Herdr that can be made to fail, inside a bubble.
type rig struct {
	*testing.T
	*is.I
	*lifecycle.Registry
	mem    *lifecycletest.Herdr
	faults *lifecycletest.Faults
	verify *lifecycletest.Verify
}

func bubble(t *testing.T, o lifecycle.Options, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, I: is.New(t), mem: &lifecycletest.Herdr{}}
		r.faults = &lifecycletest.Faults{Herdr: r.mem}
		r.verify = &lifecycletest.Verify{Herdr: r.faults, T: t}
		var err error
		r.Registry, err = lifecycle.New(r.verify, o)
		r.NoErr(err)
		defer r.close()
		f(r)
	})
}

// close ends the registry; the bubble then checks that no goroutine is left.
func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := r.Registry.Close(ctx); err != nil {
		r.Errorf("close: %v", err)
	}
}

func (r *rig) start(name string) (lifecycle.AgentID, *lifecycletest.Agent) {
	r.T.Helper()
	id, err := r.Registry.Start(r.Context(), lifecycle.Spec{Name: name})
	r.NoErr(err)
	return id, r.mem.Agent(id)
}

// prompt claims and submits, with a note that remembers.
func (r *rig) prompt(agent lifecycle.AgentID, o lifecycle.ClaimOptions) (lifecycle.PromptID, *note) {
	r.T.Helper()
	c, err := r.Registry.Claim(r.Context(), agent, o)
	r.NoErr(err)
	defer c.Release()
	n := &note{}
	c.Note(n)
	r.NoErr(c.Submit(r.Context(), "look around"))
	return c.ID(), n
}

// claimable tries the agent's slot and gives it back.
func (r *rig) claimable(agent lifecycle.AgentID) error {
	c, err := r.Registry.Claim(context.Background(), agent, lifecycle.ClaimOptions{})
	if err == nil {
		c.Release()
	}
	return err
}

func (r *rig) result(id lifecycle.PromptID) lifecycle.Result {
	r.T.Helper()
	got, err := r.Registry.Wait(r.Context(), id)
	r.NoErr(err)
	return got[0]
}

// note is a lifecycle.Note that remembers what it was given.
type note struct {
	before func(ctx context.Context) error // runs first in Finish

	mu   sync.Mutex
	ends []lifecycle.Result
}

func (n *note) Path() string { return "/project/note.md" }

func (n *note) Finish(ctx context.Context, r lifecycle.Result) error {
	if n.before != nil {
		if err := n.before(ctx); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends = append(n.ends, r)
	return nil
}

func (n *note) Text() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ends) == 0 {
		return "", errors.New("not finished")
	}
	return n.ends[0].Text, nil
}

// statuses are those of the endings so far.
func (n *note) statuses() []lifecycle.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []lifecycle.Status
	for _, e := range n.ends {
		all = append(all, e.Status)
	}
	return all
}
