package aferofs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pi-shepherd/go-shepherd/notes"
)

var (
	// ErrLink: a component of the name is a symbolic link.
	ErrLink = errors.New("aferofs: symbolic link refused")
	// ErrNotRegular: the name is there, but it is no regular file.
	ErrNotRegular = errors.New("aferofs: not a regular file")
	// ErrUnstable: the file was changed again each time it had been read.
	ErrUnstable = errors.New("aferofs: file keeps changing")
	// ErrReplaced: a directory was replaced by another while it was in use.
	ErrReplaced = errors.New("aferofs: directory was replaced")
)

// Modes of what is made here, less the umask; see the package comment.
const (
	fileMode fs.FileMode = 0o644
	dirMode  fs.FileMode = 0o755
)

// FS is [notes.FS], and its optional abilities [notes.Deriver], [notes.Stamper] and
// [notes.Checker]. Make one with [OS] or [Memory]. There is nothing to close: no file stays
// open between two calls, except that of a lock while it is held.
type FS struct {
	root       string
	err        error // why root cannot be used
	durability Durability
	tree       tree
	locks      locks
}

var (
	_ notes.FS      = (*FS)(nil)
	_ notes.Deriver = (*FS)(nil)
	_ notes.Stamper = (*FS)(nil)
	_ notes.Checker = (*FS)(nil)
)

// Root is the real path of the root, or the path given to [OS] if that cannot be used.
func (f *FS) Root() string { return f.root }

// Err says why the root cannot be used, or is nil. Every method fails with the same error.
func (f *FS) Err() error { return f.err }

// Mkdir makes one directory.
func (f *FS) Mkdir(name string) error { return f.in("mkdir", name, f.mkdir) }

func (f *FS) mkdir(d dir, base string) error {
	if err := d.Mkdir(base, dirMode); err != nil {
		return err
	}
	return f.settle(d)
}

// MkdirAll makes a directory and what is missing above it.
func (f *FS) MkdirAll(name string) error {
	if err := f.check("mkdir", name); err != nil {
		return err
	}
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if err := f.in("mkdir", name[:i], f.mkdirUnlessThere); err != nil {
			return f.failed("mkdir", name, err)
		}
	}
	return nil
}

func (f *FS) mkdirUnlessThere(d dir, base string) error {
	err := f.mkdir(d, base)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, statErr := d.Lstat(base)
	switch {
	case statErr != nil:
		return statErr
	case info.Mode()&fs.ModeSymlink != 0:
		return ErrLink
	case !info.IsDir():
		return err
	}
	return f.settle(d) // whoever made it may have died before this
}

// ReadFile returns a file's content.
func (f *FS) ReadFile(name string) (data []byte, err error) {
	err = f.in("read", name, func(d dir, base string) (err error) {
		data, _, err = read(d, base)
		return err
	})
	return data, err
}

// Stamp is a cheap version of a file: equal stamps of one name mean equal content. On a disk
// that keeps coarse times no two stamps are equal.
func (f *FS) Stamp(name string) (stamp string, err error) {
	err = f.in("stat", name, func(d dir, base string) (err error) {
		stamp, err = d.Stamp(base)
		return err
	})
	return stamp, err
}

// ReadDir lists a directory, sorted by name, without temporary files.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.check("readdir", name); err != nil {
		return nil, err
	}
	d, err := f.tree.open(name)
	if err != nil {
		return nil, f.failed("readdir", name, err)
	}
	defer d.Close()
	entries, err := list(d)
	if err != nil {
		return nil, f.failed("readdir", name, err)
	}
	listed := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		if !isTemp(e.Name()) {
			listed = append(listed, entry{e, f, path.Join(name, e.Name())})
		}
	}
	slices.SortFunc(listed, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return listed, nil
}

func list(d dir) ([]fs.DirEntry, error) {
	file, err := d.Open(".")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if f, ok := file.(fs.ReadDirFile); ok {
		return f.ReadDir(-1) // asks the disk for names and kinds only
	}
	infos, err := file.Readdir(-1)
	entries := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		entries[i] = fs.FileInfoToDirEntry(info)
	}
	return entries, err
}

// entry asks for more than name and kind by way of the FS, so that this too follows no link.
type entry struct {
	fs.DirEntry
	fs   *FS
	name string
}

func (e entry) Info() (info fs.FileInfo, err error) {
	err = e.fs.in("stat", e.name, func(d dir, base string) (err error) {
		info, err = d.Lstat(base)
		return err
	})
	return info, err
}

// Lock takes an exclusive lock. It is held until unlock is called or the process dies. The
// error matches ctx's if that ended first.
func (f *FS) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	if err := f.check("lock", name); err != nil {
		return nil, err
	}
	unlock, err = f.locks.lock(ctx, f, name)
	return unlock, f.failed("lock", name, err)
}

// lockFile makes the file of a lock if it is not there, and returns what it is.
func (f *FS) lockFile(name string) (info fs.FileInfo, err error) {
	err = f.in("lock", name, func(d dir, base string) error {
		for {
			if info, err = d.Lstat(base); err == nil {
				return regular(info)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			file, err := d.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
			if err == nil {
				err = file.Close()
			}
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	})
	return info, err
}

// in runs one step in the directory of name, which it opens for that time.
func (f *FS) in(op, name string, step func(d dir, base string) error) error {
	if err := f.check(op, name); err != nil {
		return err
	}
	d, err := f.tree.open(path.Dir(name))
	if err != nil {
		return f.failed(op, name, err)
	}
	defer d.Close()
	return f.failed(op, name, step(d, path.Base(name)))
}

// check refuses what is no name here, in every method and before anything is touched.
func (f *FS) check(op, name string) error {
	if f.err != nil {
		return f.err
	}
	_, err := filepath.Localize(name) // fs.ValidPath, and what this system cannot express
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: not a name below %s", fs.ErrInvalid, f.root)}
	}
	for part := range strings.SplitSeq(name, "/") {
		if isTemp(part) {
			return &fs.PathError{Op: op, Path: f.path(name), Err: fmt.Errorf("%w: reserved for temporary files", fs.ErrInvalid)}
		}
	}
	return nil
}

// failed names the whole path in an error, and the component it is about if that is another.
func (f *FS) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	whole := f.path(name)
	var at *fs.PathError
	if errors.As(err, &at) && at.Path != whole && filepath.IsAbs(at.Path) {
		return &fs.PathError{Op: op, Path: whole, Err: at}
	}
	if at != nil {
		err = at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	return &fs.PathError{Op: op, Path: whole, Err: err}
}

// path is for showing only.
func (f *FS) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }
