package aferofs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Durability says what a write waits for before it is acknowledged.
type Durability int

const (
	// SyncAll waits until the content and the name are on the disk. The default.
	SyncAll Durability = iota
	// SyncFiles waits until the content is on the disk, but not for the name: after a
	// crash of the machine a new file may be missing and a replaced one be the old one. That
	// no file names one that is missing is then left to the file system, which must keep
	// names in their order, as journaling ones do.
	SyncFiles
)

// Create writes a new file, whole or not at all.
func (f *FS) Create(name string, data []byte) error {
	return f.in("create", name, func(d dir, base string) error { return f.create(d, base, data) })
}

func (f *FS) create(d dir, base string, data []byte) error {
	if _, err := d.Lstat(base); err == nil {
		return fs.ErrExist // spares the disk the work; the link below decides
	}
	temp := tempName()
	err := fill(d, temp, data, nil, true)
	if err == nil {
		err = d.Link(temp, base)
	}
	_ = d.Remove(temp) // before the sync, so that a crash of the machine leaves no second name
	if err != nil {
		return err
	}
	return f.settle(d)
}

// tries bounds how often Update reads a file that keeps changing.
const tries = 100

// Update replaces a file by what change makes of its content.
func (f *FS) Update(name string, change func(old []byte) ([]byte, error)) error {
	var refused error
	err := f.in("update", name, func(d dir, base string) error {
		for range tries {
			again, err := f.update(d, base, func(old []byte) (new []byte, err error) {
				new, refused = change(old)
				return new, refused
			})
			if !again {
				return err
			}
		}
		return ErrUnstable
	})
	if refused != nil {
		return refused
	}
	return err
}

// update is one try. It asks for another when the file is no longer what change was given.
func (f *FS) update(d dir, base string, change func([]byte) ([]byte, error)) (again bool, err error) {
	old, info, err := read(d, base)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return false, err
	}
	data, err := change(bytes.Clone(old)) // change may write into what it is given
	switch {
	case err != nil:
		return false, err
	case missing && data == nil, !missing && bytes.Equal(data, old):
		return false, nil
	case missing:
		err := f.create(d, base, data)
		return errors.Is(err, fs.ErrExist), err
	}
	temp := tempName()
	if err := fill(d, temp, data, info, true); err != nil {
		_ = d.Remove(temp)
		return false, err
	}
	if !holds(d, base, old) {
		_ = d.Remove(temp)
		return true, nil // if it cannot be read the next try says so
	}
	if err := d.Rename(temp, base); err != nil {
		_ = d.Remove(temp)
		return false, err
	}
	return false, f.settle(d)
}

// Derive replaces a file whole, for readers, and waits for no disk.
func (f *FS) Derive(name string, data []byte) error {
	return f.in("derive", name, func(d dir, base string) error {
		info, err := d.Lstat(base)
		if errors.Is(err, fs.ErrNotExist) {
			info = nil
		} else if err != nil {
			return err
		} else if err := regular(info); err != nil {
			return err
		}
		temp := tempName()
		err = fill(d, temp, data, info, false)
		if err == nil {
			err = d.Rename(temp, base)
		}
		if err != nil {
			_ = d.Remove(temp)
		}
		return err
	})
}

// fill makes a temporary file with the content, and the mode bits of the file it is to
// replace, if any: at no moment can more people read the one than the other.
func fill(d dir, temp string, data []byte, like fs.FileInfo, sync bool) (err error) {
	mode := fileMode
	if like != nil {
		mode = like.Mode().Perm()
	}
	file, err := d.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if like != nil {
		if err := d.Chmod(temp, mode); err != nil { // what the umask took away
			return err
		}
	}
	// Most kernels stamp files with the time of their last tick, and inode numbers are given
	// out again at once: two writes within some milliseconds could look like none. The exact
	// time tells them apart.
	now := time.Now()
	if err := d.Chtimes(temp, now, now); err != nil {
		return err
	}
	if sync {
		return file.Sync()
	}
	return nil
}

// settle waits until the names in a directory are on the disk.
func (f *FS) settle(d dir) error {
	if f.durability == SyncFiles {
		return nil
	}
	return syncDir(d)
}

// read returns the content of a regular file and what the file was.
func read(d dir, base string) ([]byte, fs.FileInfo, error) {
	file, err := d.OpenRegular(base)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	var data bytes.Buffer
	data.Grow(int(min(info.Size(), 1<<24)) + bytes.MinRead)
	if _, err := io.Copy(&data, file); err != nil {
		return nil, nil, err
	}
	return data.Bytes(), info, nil
}

// holds reports whether a file still has the content. It does not trust size and time: a
// child's tool may set the one and keep the other.
func holds(d dir, base string, content []byte) bool {
	file, err := d.OpenRegular(base)
	if err != nil {
		return false
	}
	defer file.Close()
	chunk := make([]byte, min(32<<10, len(content)+1))
	for {
		n, err := file.Read(chunk)
		if n > len(content) || !bytes.Equal(chunk[:n], content[:n]) {
			return false
		}
		content = content[n:]
		if err != nil {
			return err == io.EOF && len(content) == 0
		}
	}
}

func regular(info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return ErrLink
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	return nil
}
