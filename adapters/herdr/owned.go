package herdr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// record writes down what is known of the agent: before its pane is made, after it, and when
// its program is known.
func (a *agent) record() error {
	a.mu.Lock()
	r := Record{
		Key: a.recordKey, Parent: a.h.o.Parent, Agent: a.spec.ID, Socket: a.h.client.socket,
		Pane: a.at.pane, Terminal: a.at.terminal, PID: a.pid, Kind: a.kind,
		Host: os.Getpid(), Made: a.made,
	}
	a.mu.Unlock()
	if a.link != nil {
		r.Dir = a.link.Dir()
	}
	if err := a.h.o.Store.Put(r); err != nil {
		return fmt.Errorf("record the agent: %w", err)
	}
	return nil
}

// Orphans are the records of this parent whose process has ended.
func (h *Herdr) Orphans() ([]Record, error) {
	all, err := h.o.Store.List()
	return slices.DeleteFunc(all, func(r Record) bool {
		return r.Parent != h.o.Parent || r.Socket != h.client.socket || processLives(r.Host)
	}), err
}

// Prune closes what processes of this parent have left behind when they died: the panes, as
// far as they are proved to be the recorded ones, and the private directories. It returns
// what it has tidied up; what could not be looked at is left for the next time, and is in the
// error. It blocks as long as ctx and Options.CallTimeout, for each, allow.
func (h *Herdr) Prune(ctx context.Context) ([]Record, error) {
	orphans, err := h.Orphans()
	if err != nil {
		return nil, err
	}
	var done []Record
	var errs []error
	for _, r := range orphans {
		if err := h.prune(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("prune %s: %w", r.Key, err))
			continue
		}
		done = append(done, r)
	}
	return done, errors.Join(errs...)
}

func (h *Herdr) prune(ctx context.Context, r Record) error {
	a := h.recorded(r)
	if r.Dir != "" && h.o.Links == nil {
		return fmt.Errorf("%w: its directory %s is for Options.Links to remove", lifecycle.ErrInvalid, r.Dir)
	}
	if r.Dir != "" {
		l, err := h.o.Links.Reopen(ctx, r.Dir, a.heard)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			a.mu.Lock()
			a.link = l
			a.mu.Unlock()
		}
	}
	return a.close(ctx)
}

// recorded returns the agent of a record.
func (h *Herdr) recorded(r Record) *agent {
	a := newAgent(h, lifecycle.Spec{ID: r.Agent, Name: r.Key}, r.Kind, r.Key)
	a.at = place{pane: r.Pane, terminal: r.Terminal}
	a.pid, a.made = r.PID, r.Made
	return a
}

// Adopt takes over the agent that another process has made and that target names, so that it
// is observed as if it had been launched here, with prompt p as the one last submitted
// (ruling R14). It returns once the pane is proved to be the recorded one.
//
// Errors: lifecycle.ErrAgentGone when it is not there any more; lifecycle.ErrUnknownAgent
// when the store knows no such agent of this parent.
func (h *Herdr) Adopt(ctx context.Context, id lifecycle.AgentID, t lifecycle.Target, p lifecycle.PromptID) error {
	ctx, done, err := h.begin(ctx)
	if err != nil {
		return fmt.Errorf("herdr: adopt %s: %w", id, err)
	}
	defer done()
	if err := h.adopt(ctx, id, t, p); err != nil {
		return fmt.Errorf("herdr: adopt %s: %w", id, err)
	}
	return nil
}

func (h *Herdr) adopt(ctx context.Context, id lifecycle.AgentID, t lifecycle.Target, p lifecycle.PromptID) error {
	all, err := h.o.Store.List()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(r Record) bool {
		return r.Agent == id && r.Parent == h.o.Parent && r.Socket == h.client.socket
	})
	if i < 0 {
		return fmt.Errorf("%w: no record of it", lifecycle.ErrUnknownAgent)
	}
	if err := h.reach(ctx); err != nil {
		return err
	}
	a := h.recorded(all[i])
	a.prompt = p
	if err := h.add(a, t); err != nil {
		return err
	}
	if err := a.resume(ctx, all[i].Dir); err != nil {
		_ = a.detach()
		h.remove(a)
		return err
	}
	return nil
}

// resume opens the link again and looks whether the agent is there.
func (a *agent) resume(ctx context.Context, dir string) error {
	if dir != "" && a.h.o.Links != nil {
		l, err := a.h.o.Links.Reopen(ctx, dir, a.heard)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.link, a.met = l, true
		a.mu.Unlock()
	}
	if err := a.check(ctx, true); err != nil {
		return err
	}
	if o, _ := a.level.Get(); o.State == lifecycle.Gone {
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentGone, o.Detail)
	}
	a.h.watchedSetChanged()
	return a.record()
}
