package notestest

import (
	"context"
	"io/fs"
)

// Lock is [notes.FS.Lock].
func (v *View) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	if err := begin(v, "lock", name); err != nil {
		return nil, err
	}
	err = v.change("lock", name, func(dir *inode, base string) error {
		if dir.names[base] == nil {
			dir.names[base] = &inode{mode: 0o644}
		}
		if dir.names[base].isDir() {
			return errIsDir
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	lock := v.d.lock(name)
	select {
	case lock <- struct{}{}:
	case <-ctx.Done():
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ctx.Err()}
	}
	return v.hold(name, lock)
}

func (d *Disk) lock(name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.locks[name]
	if c == nil {
		c = make(chan struct{}, 1)
		d.locks[name] = c
	}
	return c
}

// hold keeps a lock for the process until it is unlocked or the process dies.
func (v *View) hold(name string, lock chan struct{}) (unlock func() error, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead {
		<-lock
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrKilled}
	}
	if v.held == nil {
		v.held = make(map[int]func())
	}
	v.next++
	id := v.next
	v.held[id] = func() { <-lock }
	return func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if free := v.held[id]; free != nil {
			delete(v.held, id)
			free()
		}
		return nil
	}, nil
}
