package aferofs

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/spf13/afero"
)

// ErrKilled: the process that a [Process] stands for was killed.
var ErrKilled = errors.New("aferofs: process was killed")

// Process is one process' view of a tree in memory: an [FS], and what tests need to tell
// stories about several processes. Its locks are made of channels, so that a bubble of
// testing/synctest can see through them; make the tree inside the bubble.
type Process struct {
	*FS
	mem  *memory
	dead chan struct{} // closed by Kill
	held map[*hold]bool
}

// memory is the tree. Everything in it happens under one lock, because afero's MemMapFs lets
// two callers win an exclusive create.
type memory struct {
	mu    sync.Mutex
	files afero.Fs
	gen   map[string]uint64 // how often a name was given to a file; never goes down
	locks map[string]chan struct{}
}

// Memory is an empty tree in memory. It is lost with the last reference.
func Memory() *Process {
	m := &memory{
		files: afero.NewMemMapFs(),
		gen:   map[string]uint64{},
		locks: map[string]chan struct{}{},
	}
	return m.process()
}

func (m *memory) process() *Process {
	p := &Process{mem: m, dead: make(chan struct{}), held: map[*hold]bool{}}
	root, _ := filepath.Abs(string(filepath.Separator) + "memory")
	p.FS = &FS{root: root, tree: p, locks: p}
	return p
}

// View is another process over the same tree.
func (p *Process) View() *Process { return p.mem.process() }

// Kill is what SIGKILL does: the locks are free, whatever is under way stops before its next
// step and stays as it is, and everything fails from now on with [ErrKilled]. Killing twice
// is fine.
func (p *Process) Kill() {
	p.mem.mu.Lock()
	defer p.mem.mu.Unlock()
	if p.killed() {
		return
	}
	close(p.dead)
	for h := range p.held {
		h.free()
	}
}

func (p *Process) killed() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// hold is a lock that is held.
type hold struct {
	p    *Process
	lock chan struct{}
}

// free gives the lock back, once. It is called with the tree's lock.
func (h *hold) free() {
	if h.p.held[h] {
		delete(h.p.held, h)
		<-h.lock
	}
}

func (p *Process) lock(ctx context.Context, f *FS, name string) (func() error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := f.lockFile(name); err != nil {
		return nil, err
	}
	p.mem.mu.Lock()
	lock := p.mem.locks[name]
	if lock == nil {
		lock = make(chan struct{}, 1)
		p.mem.locks[name] = lock
	}
	p.mem.mu.Unlock()

	select {
	case lock <- struct{}{}: // first come, first served
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.dead:
		return nil, ErrKilled
	}
	p.mem.mu.Lock()
	defer p.mem.mu.Unlock()
	if p.killed() {
		<-lock
		return nil, ErrKilled
	}
	h := &hold{p, lock}
	p.held[h] = true
	return func() error {
		p.mem.mu.Lock()
		defer p.mem.mu.Unlock()
		h.free()
		return nil
	}, nil
}
