package notes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Unfinished is a note that was left before its prompt had ended: by a process that died,
// or by one that closed (ruling R13). The fields are what is needed to look at its agent
// again; then [Note.Adopt] or [Note.Finalize], with Interrupted if the agent is gone, or
// Cancelled if the status is Pending: then nothing was submitted.
type Unfinished struct {
	*Note
	Status   Status // Pending or Detached
	Agent    string
	Label    string
	Task     string
	PromptID string
	AgentID  string
	Pane     string
	Reserved time.Time
	Started  time.Time
}

// Unfinished lists the notes that nobody looks after, in the order of their reservation. A
// note is looked after as long as the Session that reserved or adopted it lives, in
// whatever process, and is not closed, and as long as it is not detached.
//
// It also makes the record true: notes that were left running are detached from here on,
// and a note whose ending was written but not indexed, because the process died in
// between, is indexed now and not listed. Besides ctx, each other living process costs up
// to 20 ms.
func (s *Session) Unfinished(ctx context.Context) ([]Unfinished, error) {
	var list []Unfinished
	err := s.transact(ctx, nil, func(t *tx) error {
		left, err := t.left()
		if err != nil {
			return err
		}
		list = nil
		for _, e := range left {
			done, err := t.recover(e)
			if err != nil {
				return err
			}
			if !done {
				list = append(list, s.unfinished(t.rec.find(e.File)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (s *Session) unfinished(e *entry) Unfinished {
	return Unfinished{
		Note: s.note(e), Status: e.Status, Agent: e.Agent, Label: e.Label, Task: e.Task,
		PromptID: e.PromptID, AgentID: e.AgentID, Pane: e.Pane,
		Reserved: e.Reserved.Time, Started: e.Started.Time,
	}
}

// left returns the unfinished entries whose owner is neither this Session nor alive.
func (t *tx) left() ([]*entry, error) {
	t.s.owner.mu.Lock()
	self := t.s.owner.id
	t.s.owner.mu.Unlock()
	lives := map[string]bool{"": false}
	if self != "" {
		lives[self] = true
	}
	var left []*entry
	for _, e := range t.rec.notes {
		switch e.Status {
		case Detached:
			left = append(left, e)
			continue
		case Pending, Running:
		default:
			continue
		}
		if _, asked := lives[e.Owner]; !asked {
			is, err := alive(context.Background(), t.s.fs, t.s.dir, e.Owner)
			if err != nil {
				return nil, err
			}
			lives[e.Owner] = is
		}
		if !lives[e.Owner] {
			left = append(left, e)
		}
	}
	return left, nil
}

// recover indexes an ending that only the note has, and detaches what is still open.
func (t *tx) recover(e *entry) (done bool, err error) {
	file, err := t.s.fs.ReadFile(t.s.rel(e.File))
	if err == nil { // a note that cannot be read is open
		if found := findSection(file, mainSection, e.Seal); found.ok {
			o := found.outcome(file)
			t.stage(func(r *record) { r.change(e.File, func(e *entry) { e.finish(o) }) })
			return true, nil
		}
	}
	if e.Status == Running {
		t.stage(func(r *record) { r.change(e.File, func(e *entry) { e.Status = Detached }) })
	}
	return false, nil
}

// Adopt says that this Session looks after the note again: it is running. A note that has
// ended stays as it is. ErrOwned: another living process looks after it.
func (n *Note) Adopt(ctx context.Context) error {
	return n.s.transact(ctx, nil, func(t *tx) error {
		e, err := t.entry(n.file)
		if err != nil || e.Status.Final() {
			return err
		}
		owner, err := t.s.own()
		if err != nil {
			return err
		}
		if e.Status != Detached && e.Owner != "" && e.Owner != owner {
			if is, err := alive(context.Background(), t.s.fs, t.s.dir, e.Owner); err != nil || is {
				return errors.Join(fmt.Errorf("%w: %s", ErrOwned, n.RelPath()), err)
			}
		}
		t.stage(func(r *record) {
			r.change(n.file, func(e *entry) {
				e.Status, e.Owner = Running, owner
				if e.Started.IsZero() {
					e.Started = at(t.now)
				}
			})
		})
		return nil
	})
}
