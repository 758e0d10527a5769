package notes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxTask  = 240  // bytes of a task that are kept
	maxError = 1000 // bytes of an error in session.json and the front matter; the section has it whole

	maxStrays = 10000 // files that are in the way of one agent's next note
)

// Reserve makes and indexes a note before its work is submitted. When it returns, the note
// survives a crash of the machine. See [Session] for ctx and errors; a bad plan is
// [ErrInvalid]. If it fails, a file without an entry may stay behind; its name is not used
// again.
func (s *Session) Reserve(ctx context.Context, p Plan) (*Note, error) {
	notes, err := s.ReserveAll(ctx, []Plan{p})
	if err != nil {
		return nil, err
	}
	return notes[0], nil
}

// ReserveAll reserves the notes of a fan-out in one transaction, all or none, and returns
// them in the order of the plans. It is otherwise like [Session.Reserve].
func (s *Session) ReserveAll(ctx context.Context, plans []Plan) ([]*Note, error) {
	plans = slices.Clone(plans)
	for i := range plans {
		if err := plans[i].check(); err != nil {
			return nil, err
		}
	}
	if len(plans) == 0 {
		return nil, nil
	}
	var entries []*entry
	err := s.transact(ctx, func() { s.doubt(entries) }, func(t *tx) (err error) {
		entries, err = t.reserve(plans)
		return err
	})
	if err != nil {
		return nil, err
	}
	notes := make([]*Note, len(entries))
	for i, e := range entries {
		notes[i] = s.note(e)
	}
	return notes, nil
}

// doubt has notes cancelled that were reserved for somebody who does not wait any more.
func (s *Session) doubt(entries []*entry) {
	for _, e := range entries {
		s.doubtful = append(s.doubtful, e.File)
	}
	s.enqueue(&job{done: make(chan struct{}), do: func(*tx) error { return nil }})
}

func (p *Plan) check() error {
	for _, text := range []*string{&p.Agent, &p.Label, &p.Task, &p.Mode, &p.Pane, &p.AgentID, &p.PromptID} {
		*text = strings.ToValidUTF8(*text, string(utf8.RuneError))
	}
	if strings.TrimSpace(p.Agent) == "" {
		return fmt.Errorf("%w: a plan without an agent", ErrInvalid)
	}
	if p.Mode == "" {
		p.Mode = defaultMode
	}
	p.Task = clip(p.Task, maxTask)
	return nil
}

// reserve writes the notes' files and stages their entries. The order is on purpose: a
// crash in between leaves a file without an entry, which was never given out.
func (t *tx) reserve(plans []Plan) ([]*entry, error) {
	owner, err := t.s.own()
	if err != nil {
		return nil, err
	}
	var entries []*entry
	names := make(map[string]*sequence) // what this call has given out, by agent
	for _, p := range plans {
		e := &entry{
			Agent: p.Agent, Label: p.Label, Task: p.Task, Mode: p.Mode, Status: Pending,
			PromptID: p.PromptID, AgentID: p.AgentID, Pane: p.Pane,
			Reserved: at(t.now), Step: t.rec.step + 1, Owner: owner, Seal: newSeal(),
		}
		if p.Start {
			e.Status, e.Started = Running, at(t.now)
		}
		if err := t.create(e, names); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	t.stage(func(r *record) {
		r.append(entries...)
		for _, e := range entries {
			if !slices.Contains(r.Modes, e.Mode) {
				r.Modes = append(r.Modes, e.Mode)
			}
			t.made = append(t.made, e.File)
		}
	})
	return entries, nil
}

// create writes the file of a new note under the agent's next free name.
func (t *tx) create(e *entry, names map[string]*sequence) error {
	seq := names[e.Agent]
	if seq == nil {
		seq = &sequence{slug: t.rec.slugFor(e.Agent, names)}
		if known := t.rec.seqs[e.Agent]; known != nil {
			seq.last = known.last
		}
		names[e.Agent] = seq
	}
	for range maxStrays {
		seq.last++
		e.Slug, e.Ordinal, e.File = seq.slug, seq.last, noteFile(seq.slug, seq.last)
		if t.rec.find(e.File) != nil {
			continue
		}
		err := t.s.fs.Create(t.s.rel(e.File), newNote(t.rec, e))
		switch {
		case err == nil:
			e.encode()
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s: %w", ErrSessionGone, t.s.dir, err)
		case !errors.Is(err, fs.ErrExist): // somebody's file: not ours, not touched
			return fmt.Errorf("notes: %s: %w", t.s.dir, err)
		}
	}
	return fmt.Errorf("notes: %s: %d files in the way of %s", t.s.dir, maxStrays, e.File)
}
