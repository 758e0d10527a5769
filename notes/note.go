package notes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// Note is a handle on one note. All methods may be called from many goroutines at once; see
// [Session] for ctx and errors.
type Note struct {
	s    *Session
	file string
	seal string
}

func (s *Session) note(e *entry) *Note { return &Note{s, e.File, e.Seal} }

// Path returns the note's absolute path.
func (n *Note) Path() string { return absolute(n.s.fs, n.RelPath()) }

// RelPath returns the note's path relative to the project, slash-separated.
func (n *Note) RelPath() string { return n.s.rel(n.file) }

// Start says that the work is about to be handed to its agent, in the given pane ("" keeps
// the one of the plan). From here until it is finalised the note's file is the child's.
// Starting a note that is no longer pending changes nothing.
func (n *Note) Start(ctx context.Context, pane string) error {
	return n.s.transact(ctx, nil, func(t *tx) error {
		e, err := t.entry(n.file)
		if err != nil || e.Status != Pending {
			return err
		}
		started := e.with(func(e *entry) { e.start(t.now, pane) })
		err = t.s.fs.Update(n.RelPath(), func(old []byte) ([]byte, error) {
			if old == nil {
				return newNote(t.rec, started), nil
			}
			return append(frontMatter(t.rec, started), written(old, t.rec, started)...), nil
		})
		if err != nil {
			return t.s.noteError(n.file, err)
		}
		t.stage(func(r *record) { r.change(n.file, func(e *entry) { e.start(t.now, pane) }) })
		return nil
	})
}

func (e *entry) start(now time.Time, pane string) {
	e.Status, e.Started = Running, at(now)
	if pane != "" {
		e.Pane = strings.ToValidUTF8(pane, string(utf8.RuneError))
	}
}

// entry returns the entry of a note.
func (t *tx) entry(file string) (*entry, error) {
	if e := t.rec.find(file); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownNote, t.s.rel(file))
}

func (s *Session) noteError(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w", ErrSessionGone, s.dir, err)
	}
	return fmt.Errorf("notes: %s: %w", s.rel(file), err)
}
