package notes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// commit carries a batch out, under the session's lock. A job that fails takes no other
// with it; if session.json cannot be written, all that changed it have failed.
func (s *Session) commit(batch []*job) {
	t, err := s.begin()
	if err != nil {
		for _, j := range batch {
			s.settle(j, err)
		}
		return
	}
	errs := make([]error, len(batch))
	changed := make([]bool, len(batch))
	for i, j := range batch {
		before := len(t.changes)
		errs[i] = j.do(t)
		changed[i] = len(t.changes) > before
	}
	all := s.unsure // then even who finds nothing to do depends on this write
	err = t.write()
	for i, j := range batch {
		if errs[i] == nil && (changed[i] || all) {
			errs[i] = err
		}
		s.settle(j, errs[i])
	}
}

// tx is a transaction: the record as it is under the lock, and what is to become of it.
type tx struct {
	s       *Session
	rec     *record
	now     time.Time
	changes []func(*record)
	made    []string // notes that are doubtful if it fails
}

// begin reads the record.
func (s *Session) begin() (*tx, error) {
	rec, err := s.load()
	if err != nil {
		return nil, err
	}
	t := &tx{s: s, rec: rec, now: s.now()}
	t.cancelDoubtful()
	return t, nil
}

// cancelDoubtful ends notes that reached the disk and that nobody has: their reservation
// was reported as failed (the directory could not be synced, say), or was given up while the
// disk hung. Nothing was submitted for them.
func (t *tx) cancelDoubtful() {
	o := Outcome{Status: Cancelled, Error: "the reservation failed or was given up", ReturnCode: 130, At: t.now}
	doubtful := t.s.doubtful
	t.s.doubtful = nil
	for _, file := range doubtful {
		if e := t.rec.find(file); e == nil || e.Status.Final() {
			continue
		}
		if err := t.finalize(file, o); err != nil {
			t.s.doubtful = append(t.s.doubtful, file)
			continue
		}
		t.made = append(t.made, file) // doubtful again if this transaction fails
	}
}

// stage changes the record. The change may be applied again to a record that was read anew.
func (t *tx) stage(change func(*record)) {
	t.changes = append(t.changes, change)
	change(t.rec)
}

// write makes the staged changes durable: session.json first, which is the truth, and then
// the index, which can be derived from it at any time.
func (t *tx) write() error {
	s, base := t.s, t.rec.raw
	switch {
	case len(t.changes) > 0:
	case !s.unsure:
		return nil
	default: // something, so that it is written
		t.stage(func(r *record) { r.Updated.Time = r.Updated.Add(time.Millisecond) })
	}
	s.cached, s.unsure = nil, true // until it is known what is on disk
	t.rec.touch(t.now)
	t.turnPages()
	err := s.fs.Update(s.rel(recordFile), func(old []byte) ([]byte, error) {
		if !bytes.Equal(old, base) { // somebody without our lock, an editor say
			rec, err := s.decode(old)
			if err != nil {
				return nil, err
			}
			for _, change := range t.changes {
				change(rec)
			}
			rec.touch(t.now)
			t.rec = rec
		}
		t.rec.raw = t.rec.encode()
		return t.rec.raw, nil
	})
	if err != nil {
		s.doubtful = append(s.doubtful, t.made...)
		return fmt.Errorf("notes: %s: %w", s.dir, err)
	}
	s.unsure = false
	s.keep(t.rec)
	s.derive(t.rec)
	return nil
}

// touch brings up to date what follows from the notes and the time.
func (r *record) touch(now time.Time) {
	r.Status = r.follow()
	if now := at(now); now.After(r.Updated.Time) {
		r.Updated = now
	}
}

// derive writes the index. The session is whole without it, so an error is only logged;
// the next transaction or the next opening writes it again.
func (s *Session) derive(rec *record) {
	if err := derive(s.fs, s.rel(indexFile), rec.fieldnotes()); err != nil {
		s.log.Warn("notes: index not written", "session", s.dir, "error", err)
	}
}

func derive(fsys FS, name string, data []byte) error {
	if d, ok := fsys.(Deriver); ok {
		return d.Derive(name, data)
	}
	return fsys.Update(name, func([]byte) ([]byte, error) { return data, nil })
}

// load returns the record as it is on disk, decoded anew only where it changed.
func (s *Session) load() (*record, error) {
	stamp := s.stamp()
	if s.cached != nil && stamp != "" && stamp == s.cachedStamp {
		return s.cached, nil
	}
	data, err := s.fs.ReadFile(s.rel(recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: %w", ErrSessionGone, s.dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("notes: %s: %w", s.dir, err)
	}
	rec, err := s.decode(data)
	if err != nil {
		return nil, err
	}
	s.cached, s.cachedStamp = rec, stamp
	return rec, nil
}

// keep remembers a record that was just written.
func (s *Session) keep(rec *record) { s.cached, s.cachedStamp = rec, s.stamp() }

func (s *Session) stamp() string {
	if st, ok := s.fs.(Stamper); ok {
		if stamp, err := st.Stamp(s.rel(recordFile)); err == nil {
			return stamp
		}
	}
	return ""
}

// decode reads the session's own record and refuses any other.
func (s *Session) decode(data []byte) (*record, error) {
	if data == nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSessionGone, s.dir, fs.ErrNotExist)
	}
	rec, err := decode(data, s.cached, pagesIn(s.fs, s.dir))
	if err == nil && rec.Parent.Identity != hashPrefix+s.hash {
		err = errForeign
	}
	if err == nil && sessionDir(rec.Number, rec.Slug) != s.name() {
		err = fmt.Errorf("it says that it is %s", sessionDir(rec.Number, rec.Slug))
	}
	switch {
	case errors.Is(err, ErrNewerVersion):
		return nil, fmt.Errorf("%s: %w", s.rel(recordFile), err)
	case errors.As(err, new(unreadable)):
		return nil, fmt.Errorf("notes: %s: %w", s.dir, err)
	case err != nil:
		return nil, &CorruptError{s.rel(recordFile), err}
	}
	return rec, nil
}

var errForeign = errors.New("it belongs to another parent")
