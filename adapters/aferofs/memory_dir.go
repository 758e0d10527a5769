package aferofs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// open opens a directory of the tree. That it must be there is asked here, because MemMapFs
// would make it.
func (p *Process) open(name string) (dir, error) {
	d := &memDir{Fs: p.mem.files, p: p, path: name}
	info, err := d.Lstat(".")
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.path(name), Err: cause(err)}
	}
	return d, nil
}

// memDir is a directory in memory. What it does not define is not used.
type memDir struct {
	afero.Fs
	p    *Process
	path string
}

// do runs one step of a process that is alive. key is the name's path in MemMapFs.
func (d *memDir) do(name string, step func(m *memory, key string) error) error {
	d.p.mem.mu.Lock()
	defer d.p.mem.mu.Unlock()
	if d.p.killed() {
		return ErrKilled
	}
	return step(d.p.mem, path.Join("/", d.path, name))
}

func (d *memDir) Close() error { return nil }

func (d *memDir) Lstat(name string) (info fs.FileInfo, err error) {
	err = d.do(name, func(m *memory, key string) error {
		info, err = m.stat(key)
		return err
	})
	return info, err
}

func (d *memDir) Mkdir(name string, perm fs.FileMode) error {
	return d.do(name, func(m *memory, key string) error { return m.files.Mkdir(key, perm) })
}

func (d *memDir) OpenRegular(name string) (afero.File, error) {
	info, err := d.Lstat(name)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, err
	}
	return d.Open(name)
}

func (d *memDir) Open(name string) (file afero.File, err error) {
	err = d.do(name, func(m *memory, key string) error {
		file, err = m.files.Open(key)
		return err
	})
	return file, err
}

func (d *memDir) OpenFile(name string, flag int, perm fs.FileMode) (file afero.File, err error) {
	err = d.do(name, func(m *memory, key string) error {
		file, err = m.files.OpenFile(key, flag, perm)
		return err
	})
	return memFile{file, d}, err
}

// memFile is a file that is being written.
type memFile struct {
	afero.File
	d *memDir
}

func (f memFile) Write(p []byte) (n int, err error) {
	err = f.d.do("", func(*memory, string) error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (d *memDir) Chmod(name string, mode fs.FileMode) error {
	return d.do(name, func(m *memory, key string) error { return m.files.Chmod(key, mode) })
}

func (d *memDir) Chtimes(name string, atime, mtime time.Time) error {
	return d.do(name, func(m *memory, key string) error { return m.files.Chtimes(key, atime, mtime) })
}

func (d *memDir) Remove(name string) error {
	return d.do(name, func(m *memory, key string) error { return m.files.Remove(key) })
}

func (d *memDir) Rename(oldname, newname string) error {
	return d.do(oldname, func(m *memory, old string) error {
		return m.move(old, path.Join(path.Dir(old), newname))
	})
}

func (d *memDir) Link(oldname, newname string) error {
	return d.do(oldname, func(m *memory, old string) error {
		key := path.Join(path.Dir(old), newname)
		if _, err := m.files.Stat(key); err == nil {
			return fs.ErrExist
		}
		return m.move(old, key)
	})
}

func (d *memDir) Stamp(name string) (stamp string, err error) {
	err = d.do(name, func(m *memory, key string) error {
		info, err := m.stat(key)
		if err == nil {
			err = regular(info)
		}
		stamp = strconv.FormatUint(m.gen[key], 10)
		return err
	})
	return stamp, err
}

// move gives the content of one file to a new one that replaces whatever has the key.
// Whoever reads the old one goes on reading it. MemMapFs could rename, but looks through the
// whole tree for it.
func (m *memory) move(old, key string) error {
	info, err := m.stat(old)
	if err != nil {
		return err
	}
	if there, err := m.files.Stat(key); err == nil && there.IsDir() {
		return syscall.EISDIR
	}
	data, err := afero.ReadFile(m.files, old)
	if err != nil {
		return err
	}
	file, err := m.files.Create(key)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close(), m.files.Chmod(key, info.Mode()), m.files.Chtimes(key, info.ModTime(), info.ModTime())); err != nil {
		return fmt.Errorf("move in memory: %w", err)
	}
	m.gen[key]++
	return m.files.Remove(old)
}

// stat takes a picture: the FileInfo of MemMapFs changes with the file.
func (m *memory) stat(key string) (fs.FileInfo, error) {
	i, err := m.files.Stat(key)
	if err != nil {
		return nil, err
	}
	return memInfo{path.Base(key), i.Size(), i.Mode() &^ fs.ModeTemporary, i.ModTime()}, nil
}

type memInfo struct {
	name string
	size int64
	mode fs.FileMode
	at   time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.at }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
