package notes

import (
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
	lost func()        // called, by the committing goroutine, if it was carried out and nobody waits; may be nil
	done chan struct{} // closed when err is set
	err  error
	gone bool // under queue.mu: its caller has left
}

// maxBatch bounds a transaction, so that other processes do not wait too long for the lock.
const maxBatch = 128

// transact carries do out in a transaction. While the transaction has not begun, the end
// of ctx withdraws it and nothing has happened. Once it has begun its outcome is waited
// for, but after the end of ctx no longer than patience: then the error is
// ErrOutcomeUnknown, and lost is called if it comes through after all.
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
