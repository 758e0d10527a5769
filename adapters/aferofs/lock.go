package aferofs

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// locks is how the locks of a tree exclude.
type locks interface {
	lock(ctx context.Context, f *FS, name string) (unlock func() error, err error)
}

// kernelLocks are flock(2), or what the system has like it: freed by the death of the
// holder, whatever is in the file. The goroutines of one FS take turns first, so that only
// one of them waits in the kernel. Two FS exclude each other like two processes.
type kernelLocks struct {
	mu    sync.Mutex
	turns map[string]*turn
}

func newKernelLocks() *kernelLocks { return &kernelLocks{turns: map[string]*turn{}} }

// turn is one lock name in one FS.
type turn struct {
	users  int           // who has the turn or waits for it; guarded by kernelLocks.mu
	token  chan struct{} // full while somebody has the turn; first come, first served
	parked *waiter       // left behind by a Lock that gave up; belongs to whoever has the turn
}

func (l *kernelLocks) lock(ctx context.Context, f *FS, name string) (func() error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := l.join(name)
	select {
	case t.token <- struct{}{}:
	case <-ctx.Done():
		l.leave(name, t)
		return nil, ctx.Err()
	}
	held, err := t.take(ctx, f, name)
	if err != nil {
		<-t.token
		l.leave(name, t)
		return nil, err
	}
	return sync.OnceValue(func() error {
		err := held.Unlock()
		<-t.token
		l.leave(name, t)
		return err
	}), nil
}

func (l *kernelLocks) join(name string) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.turns[name]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		l.turns[name] = t
	}
	t.users++
	return t
}

func (l *kernelLocks) leave(name string, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 && t.parked == nil {
		delete(l.turns, name)
	}
}

// take gets the kernel's lock. The file may have been taken away and made anew by somebody
// while we waited; only the lock of the one that is there now is worth something.
func (t *turn) take(ctx context.Context, f *FS, name string) (*flock.Flock, error) {
	for {
		want, err := f.lockFile(name)
		if err != nil {
			return nil, err
		}
		held, err := t.kernel(ctx, f.path(name))
		if err != nil {
			return nil, err
		}
		got, err := held.Stat()
		if err == nil && os.SameFile(got, want) {
			if now, err := f.lockFile(name); err == nil && os.SameFile(got, now) {
				return held, nil
			}
		}
		held.Unlock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// A wait that is to be this short only asks whether the lock is free, of a process that may
// hold it for its whole life. It is not worth a goroutine that cannot be called back.
const brief = 100 * time.Millisecond

func (t *turn) kernel(ctx context.Context, path string) (*flock.Flock, error) {
	if t.parked == nil || !t.parked.adopt() {
		t.parked = nil
		// Not to be created here, so that a link that has taken the file's place makes
		// nothing elsewhere.
		l := flock.New(path, flock.SetFlag(os.O_RDONLY|nofollow))
		if ok, err := l.TryLock(); ok || err != nil {
			return l, err
		}
		if end, bounded := ctx.Deadline(); bounded && time.Until(end) < brief {
			_, err := l.TryLockContext(ctx, time.Millisecond)
			return l, err
		}
		t.parked = park(l)
	}
	w := t.parked
	select {
	case <-w.returned:
	case <-ctx.Done():
		if w.giveUp() {
			return nil, ctx.Err()
		}
	}
	t.parked = nil
	return w.lock, w.err
}

// waiter is one goroutine that waits in the kernel. It cannot be called back, so it can only
// be told that nobody wants the lock any more.
type waiter struct {
	lock     *flock.Flock
	returned chan struct{} // closed when the kernel has answered
	err      error

	mu     sync.Mutex
	wanted bool
	over   bool // the kernel has answered
}

func park(l *flock.Flock) *waiter {
	w := &waiter{lock: l, returned: make(chan struct{}), wanted: true}
	go func() {
		err := l.Lock()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err, w.over = err, true
		if !w.wanted && err == nil {
			l.Unlock()
		}
		close(w.returned)
	}()
	return w
}

// adopt reports whether w still waits, and now does so for the caller.
func (w *waiter) adopt() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = !w.over
	return w.wanted
}

// giveUp leaves w behind, unless the kernel has answered: then the lock is the caller's.
func (w *waiter) giveUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = w.over
	return !w.over
}
