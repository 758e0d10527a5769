package notestest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// View is the file system as one process sees it: a [notes.FS] that can be killed.
type View struct {
	d    *Disk
	mu   sync.Mutex
	held map[int]func() // frees a lock
	next int
	dead bool
}

var (
	_ notes.FS      = (*View)(nil)
	_ notes.Deriver = (*View)(nil)
	_ notes.Stamper = (*View)(nil)
)

// Kill ends the process: its locks are free and its operations fail with ErrKilled.
func (v *View) Kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
	for _, free := range v.held {
		free()
	}
	v.held = nil
}

// step asks the hook, and notes the step if it may happen.
func (v *View) step(op, name, part string) error {
	s := Step{op, name, part}
	if !v.alive() {
		return &fs.PathError{Op: op, Path: name, Err: ErrKilled}
	}
	var err error
	if v.d.Fault != nil {
		err = v.d.Fault(s)
	}
	switch {
	case errors.Is(err, ErrKill):
		v.Kill()
	case errors.Is(err, ErrPowerCut):
		v.d.PowerCut()
	}
	if !v.alive() { // also if it was killed while the hook had it
		err = ErrKilled
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	if v.d.Tracing {
		v.d.mu.Lock()
		defer v.d.mu.Unlock()
		v.d.trace = append(v.d.trace, s)
	}
	return nil
}

func (v *View) alive() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.dead
}

func begin(v *View, op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return v.step(op, name, "")
}

// Root returns the path of the project.
func (v *View) Root() string { return v.d.Root }

// Mkdir is [notes.FS.Mkdir].
func (v *View) Mkdir(name string) error {
	if err := begin(v, "mkdir", name); err != nil {
		return err
	}
	err := v.change("mkdir", name, func(dir *inode, base string) error {
		if dir.names[base] != nil {
			return fs.ErrExist
		}
		dir.names[base] = v.d.dir()
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.syncDir("mkdir", name); err != nil {
		return err
	}
	return v.step("mkdir", name, "ack")
}

// MkdirAll is [notes.FS.MkdirAll].
func (v *View) MkdirAll(name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrInvalid}
	}
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		v.d.mu.Lock()
		n, err := v.d.find(name[:i])
		v.d.mu.Unlock()
		switch {
		case err == nil && n.isDir(): // whoever made it may have died before it was synced
			if err := v.syncDir("mkdir", name[:i]); err != nil {
				return err
			}
			continue
		case err == nil:
			err = errNotDir
		case errors.Is(err, fs.ErrNotExist):
			if err := v.Mkdir(name[:i]); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			continue
		}
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

// change edits the directory that a name is in.
func (v *View) change(op, name string, f func(dir *inode, base string) error) error {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	dir, err := v.d.find(path.Dir(name))
	if err == nil && !dir.isDir() {
		err = errNotDir
	}
	if err == nil {
		if n := dir.names[path.Base(name)]; n != nil && n.isLink() && op != "mkdir" {
			err = errSymlink
		} else {
			err = f(dir, path.Base(name))
		}
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (v *View) syncDir(op, name string) error {
	if err := v.step(op, name, "dirsync"); err != nil {
		return err
	}
	return v.change(op, name, func(dir *inode, _ string) error {
		dir.syncedNames = maps.Clone(dir.names)
		return nil
	})
}

// Stamp is [notes.Stamper].
func (v *View) Stamp(name string) (string, error) {
	var stamp string
	err := v.read("stamp", name, func(n *inode) { stamp = fmt.Sprint(n.version) })
	return stamp, err
}

// ReadFile is [notes.FS.ReadFile].
func (v *View) ReadFile(name string) ([]byte, error) {
	var data []byte
	err := v.read("read", name, func(n *inode) { data = append([]byte{}, n.data...) })
	return data, err
}

func (v *View) read(op, name string, f func(*inode)) error {
	if err := begin(v, op, name); err != nil {
		return err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	n, err := v.d.find(name)
	if err == nil && n.isDir() {
		err = errIsDir
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	f(n)
	return nil
}

// ReadDir is [notes.FS.ReadDir].
func (v *View) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := begin(v, "readdir", name); err != nil {
		return nil, err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	dir, err := v.d.find(name)
	if err == nil && !dir.isDir() {
		err = errNotDir
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	var entries []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(dir.names)) {
		if !strings.HasPrefix(base, tempPrefix) {
			n := dir.names[base]
			entries = append(entries, fs.FileInfoToDirEntry(info{base, int64(len(n.data)), n.mode}))
		}
	}
	return entries, nil
}

// info is a file's [fs.FileInfo].
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
