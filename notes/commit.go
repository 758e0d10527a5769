package notes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// queue is the group commit: what several callers want at the same time is done in one
// transaction. The first caller starts a goroutine, which ends when nothing is left to do;
// no transaction runs under the context of any caller.
type queue struct {
	mu   sync.Mutex
	jobs []*job // waiting, in order
	busy bool   // a goroutine is at work
}

// job is one caller's part of a transaction.
type job struct {
	do   func(*tx) error
	lost func()        // called once if it was carried out and nobody waits any more; may be nil
	done chan struct{} // closed when err is set
	err  error
	gone bool // under queue.mu: its caller has left
}

// maxBatch bounds a transaction, so that other processes do not wait too long for the lock.
const maxBatch = 128

// transact carries do out in a transaction. While the transaction has not begun, the end
// of ctx withdraws it and nothing has happened. Once it has begun its outcome is waited
// for, but after the end of ctx no longer than patience: then the error is
// ErrOutcomeUnknown, and lost, if there is one, learns if it comes through after all.
func (s *Session) transact(ctx context.Context, lost func(), do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{do: do, lost: lost, done: make(chan struct{})}
	s.enqueue(j)
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
	}
	if s.withdraw(j) {
		return ctx.Err()
	}
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	select {
	case <-j.done:
		return j.err
	case <-patience.C:
	}
	if s.leave(j) {
		return fmt.Errorf("%w: %s: %w", ErrOutcomeUnknown, s.dir, ctx.Err())
	}
	return j.err
}

func (s *Session) enqueue(j *job) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.jobs = append(s.queue.jobs, j)
	if !s.queue.busy {
		s.queue.busy = true
		go s.commitAll()
	}
}

// withdraw takes a job back. It is false if the job was taken already.
func (s *Session) withdraw(j *job) bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	for i, waiting := range s.queue.jobs {
		if waiting == j {
			s.queue.jobs = append(s.queue.jobs[:i:i], s.queue.jobs[i+1:]...)
			return true
		}
	}
	return false
}

// leave gives a taken job up. It is false if the outcome is there after all.
func (s *Session) leave(j *job) bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	select {
	case <-j.done:
		return false
	default:
		j.gone = true
		return true
	}
}

// commitAll runs transactions until nobody waits.
func (s *Session) commitAll() {
	for {
		s.queue.mu.Lock()
		waiting := len(s.queue.jobs)
		s.queue.busy = waiting > 0
		early := append([]*job(nil), s.queue.jobs...)
		s.queue.mu.Unlock()
		if waiting == 0 {
			return
		}
		unlock, err := s.lock()
		if err != nil {
			for _, j := range early { // those who came meanwhile have not waited long enough
				if s.withdraw(j) {
					s.settle(j, err)
				}
			}
			continue
		}
		s.commit(s.take())
		if err := unlock(); err != nil {
			s.log.Warn("notes: unlock failed", "session", s.dir, "error", err)
		}
	}
}

func (s *Session) lock() (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.lockTimeout)
	defer cancel()
	return lock(ctx, s.fs, s.rel(lockFile), s.dir)
}

// lock takes a lock and says what it means when that fails.
func lock(ctx context.Context, fsys FS, name, session string) (func() error, error) {
	unlock, err := fsys.Lock(ctx, name)
	switch {
	case err == nil:
		return unlock, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrLocked, name, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s: %w", ErrSessionGone, session, err)
	}
	return nil, fmt.Errorf("notes: lock %s: %w", name, err)
}

func (s *Session) take() []*job {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	n := min(len(s.queue.jobs), maxBatch)
	batch := s.queue.jobs[:n:n]
	s.queue.jobs = s.queue.jobs[n:]
	return batch
}

func (s *Session) settle(j *job, err error) {
	s.queue.mu.Lock()
	j.err = err
	close(j.done)
	gone := j.gone
	s.queue.mu.Unlock()
	if gone && err == nil && j.lost != nil {
		j.lost()
	}
}

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
	made    []string // notes reserved
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

// cancelDoubtful ends notes whose reservation failed although it may have reached the disk
// (a directory that could not be synced, say): nobody has them, nothing was submitted.
func (t *tx) cancelDoubtful() {
	doubtful := t.s.doubtful
	t.s.doubtful = nil
	for _, file := range doubtful {
		if e := t.rec.find(file); e == nil || e.Status.Final() {
			continue
		}
		if err := t.finalize(file, Outcome{Status: Cancelled, Error: "the reservation failed", ReturnCode: 130, At: t.now}); err != nil {
			t.s.doubtful = append(t.s.doubtful, file)
		}
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
	rec, err := decode(data, s.cached)
	if err == nil && rec.Parent.Identity != hashPrefix+s.hash {
		err = errForeign
	}
	if err == nil && sessionDir(rec.Number, rec.Slug) != s.name() {
		err = fmt.Errorf("it says that it is %s", sessionDir(rec.Number, rec.Slug))
	}
	switch {
	case errors.Is(err, ErrNewerVersion):
		return nil, fmt.Errorf("%s: %w", s.rel(recordFile), err)
	case err != nil:
		return nil, &CorruptError{s.rel(recordFile), err}
	}
	return rec, nil
}

var errForeign = errors.New("it belongs to another parent")
