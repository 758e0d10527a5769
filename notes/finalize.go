package notes

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Finalize writes how the note's prompt ended: the front matter, and one marked section at
// the end with the final output. What the child wrote stays byte for byte. The first
// finalisation is final; another one changes nothing and returns nil.
//
// With the status Detached nothing has ended: only session.json and the index say that
// nobody is watching, and the note can be finalised later. A note that was not started
// stays pending.
func (n *Note) Finalize(ctx context.Context, o Outcome) error {
	o, err := o.checked()
	if err != nil {
		return err
	}
	return n.s.transact(ctx, nil, func(t *tx) error {
		e, err := t.entry(n.file)
		if err != nil || e.Status.Final() {
			return err
		}
		if o.At.IsZero() {
			o.At = t.now
		}
		switch {
		case o.Status != Detached:
			return t.finalize(n.file, o)
		case e.Status == Running:
			t.stage(func(r *record) { r.change(n.file, func(e *entry) { e.Status = Detached }) })
		}
		return nil
	})
}

func (o Outcome) checked() (Outcome, error) {
	if !o.Status.Final() && o.Status != Detached {
		return o, fmt.Errorf("%w: a note cannot end as %q", ErrInvalid, o.Status)
	}
	o.Text = strings.ToValidUTF8(o.Text, string(utf8.RuneError))
	o.Error = strings.ToValidUTF8(o.Error, string(utf8.RuneError))
	return o, nil
}

// finalize writes the note and stages its entry. The note comes first: a crash in between
// leaves a note that says how it ended, and the section's seal proves that it is true.
func (t *tx) finalize(file string, o Outcome) error {
	e, err := t.entry(file)
	if err != nil {
		return err
	}
	stands := o
	err = t.s.fs.Update(t.s.rel(file), func(old []byte) ([]byte, error) {
		if found := findSection(old, mainSection, e.Seal); found.ok {
			stands = found.outcome(old) // written before, but not indexed
			return old, nil
		}
		stands = o
		return finished(t.rec, e, o, old), nil
	})
	if err != nil {
		return t.s.noteError(file, err)
	}
	t.stage(func(r *record) { r.change(file, func(e *entry) { e.finish(stands) }) })
	return nil
}

// finished is the note with its ending. old is nil if the child removed it.
func finished(r *record, e *entry, o Outcome, old []byte) []byte {
	done := e.with(func(e *entry) { e.finish(o) })
	out := frontMatter(r, done)
	if old == nil {
		old = newNote(r, e)
	}
	out = append(out, written(old, r, e)...)
	return append(out, section(done, r.before(e), o)...)
}

func (e *entry) finish(o Outcome) {
	code := o.ReturnCode
	e.Status, e.ReturnCode, e.Completed, e.Inferred = o.Status, &code, at(o.At), o.Inferred
	e.Error, e.Owner = clip(o.Error, maxError), "" // nobody has to look after it any more
}

// outcome reads from a finished note what its entry has to say.
func (s sealed) outcome(file []byte) Outcome {
	return Outcome{
		Status: s.Status, ReturnCode: s.Code, At: s.At,
		Error: frontValue(file, "error"), Inferred: frontValue(file, "inferred") != "",
	}
}

// before is the note that was reserved before e, if there is one.
func (r *record) before(e *entry) *entry {
	if i := r.files[e.File]; i > 0 {
		return r.notes[i-1]
	}
	return nil
}

// Late adds an ending that came after the note had been given up as timed out or blocked.
// It stands at the end of the section, marked late; the status stays (ruling R12). Only the
// first one counts, and one for a note that ended otherwise changes nothing; neither is an
// error.
func (n *Note) Late(ctx context.Context, o Outcome) error {
	o, err := o.checked()
	if err != nil {
		return err
	}
	if o.Status == Detached {
		return fmt.Errorf("%w: a note cannot end as %q", ErrInvalid, o.Status)
	}
	return n.s.transact(ctx, nil, func(t *tx) error {
		e, err := t.entry(n.file)
		if err != nil {
			return err
		}
		if !e.Status.Final() {
			return fmt.Errorf("%w: %s has not ended, so nothing can be late", ErrInvalid, n.RelPath())
		}
		if e.LateStatus != "" || e.Status != TimedOut && e.Status != Blocked {
			return nil
		}
		if o.At.IsZero() {
			o.At = t.now
		}
		err = t.s.fs.Update(n.RelPath(), func(old []byte) ([]byte, error) {
			main := findSection(old, mainSection, e.Seal)
			if findSection(old, lateSection, e.Seal).ok {
				return old, nil
			}
			front := frontMatter(t.rec, e.with(func(e *entry) { e.finishLate(o) }))
			if !main.ok { // somebody removed it; the late ending is kept all the same
				return append(append(front, written(old, t.rec, e)...), late(e, o)...), nil
			}
			return append(front, written(main.withLate(old, late(e, o), e.Seal), t.rec, e)...), nil
		})
		if err != nil {
			return t.s.noteError(n.file, err)
		}
		t.stage(func(r *record) { r.change(n.file, func(e *entry) { e.finishLate(o) }) })
		return nil
	})
}

func (e *entry) finishLate(o Outcome) {
	code := o.ReturnCode
	e.LateStatus, e.LateCode, e.LateAt = o.Status, &code, at(o.At)
}

// Text reads the final output back, exactly as it was given to Finalize (but for bytes that
// were not UTF-8); "" if there was none or the note has not ended. It takes no lock.
// ErrEdited: somebody changed it.
func (n *Note) Text() (string, error) { return n.output(mainSection) }

// LateText is Text for what was given to Late.
func (n *Note) LateText() (string, error) { return n.output(lateSection) }

func (n *Note) output(what string) (string, error) {
	file, err := n.s.fs.ReadFile(n.RelPath())
	if err != nil {
		return "", fmt.Errorf("notes: %s: %w", n.RelPath(), err)
	}
	text, err := findSection(file, what, n.seal).output(file, n.seal)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, n.RelPath())
	}
	return text, nil
}
