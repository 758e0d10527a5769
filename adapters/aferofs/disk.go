package aferofs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/natefinch/atomic"
	"github.com/spf13/afero"
)

// disk is a directory on disk, known by path and identity.
type disk struct {
	path string
	info fs.FileInfo
}

// open walks to a directory. os.Root keeps each step below the one before; it would follow
// a link that stays below, so each step is compared with the name in its parent as well.
// The root is opened anew each time, so that no handle is held when nothing happens.
func (k disk) open(name string) (dir, error) {
	root, err := os.OpenRoot(k.path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: k.path, Err: cause(err)}
	}
	d := &diskDir{rootFs{root}, k.path}
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, k.info) {
		d.Close()
		return nil, &fs.PathError{Op: "open", Path: k.path, Err: ErrReplaced}
	}
	if name == "." {
		return d, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		next, err := d.down(part)
		d.Close()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: d.abs(part), Err: cause(err)}
		}
		d = next
	}
	return d, nil
}

// diskDir is a directory on disk. Its handle stays with it wherever it is moved to; path is
// where it was found.
type diskDir struct {
	rootFs
	path string
}

func (d *diskDir) abs(name string) string { return filepath.Join(d.path, name) }

// down opens a directory in d that is no link.
func (d *diskDir) down(part string) (*diskDir, error) {
	info, err := d.Lstat(part)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, ErrLink
	case !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	root, err := d.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		root.Close()
		return nil, ErrReplaced
	}
	return &diskDir{rootFs{root}, d.abs(part)}, nil
}

// OpenRegular looks before it opens, because opening a pipe or a device can block or do
// something, and looks again at what it got, because the name may have been given to
// another file in between. That happens whenever a reader meets a writer.
func (d *diskDir) OpenRegular(name string) (afero.File, error) {
	for range tries {
		info, err := d.Lstat(name)
		if err == nil {
			err = regular(info)
		}
		if err != nil {
			return nil, err
		}
		file, err := d.Root.OpenFile(name, os.O_RDONLY|nonblock, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if opened, err := file.Stat(); err == nil && os.SameFile(info, opened) {
			return file, nil
		}
		file.Close()
	}
	return nil, ErrUnstable
}

// Rename replaces newname. natefinch/atomic does it on every system, and on Windows waits
// for the disk. It takes paths, so afterwards the old name must be gone from here: had the
// path led elsewhere in the meantime, it would still be there.
func (d *diskDir) Rename(oldname, newname string) error {
	if err := atomic.ReplaceFile(d.abs(oldname), d.abs(newname)); err != nil {
		return err
	}
	if _, err := d.Lstat(oldname); !errors.Is(err, fs.ErrNotExist) {
		return ErrReplaced
	}
	return nil
}

// Link gives a file a second name, or its only one where there are no hard links.
func (d *diskDir) Link(oldname, newname string) error {
	err := d.Root.Link(oldname, newname)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if e := renameExclusive(d.Root, oldname, newname); !errors.Is(e, errors.ErrUnsupported) {
		return e
	}
	return err
}

// Stamp is identity, size and time.
func (d *diskDir) Stamp(name string) (string, error) {
	info, err := d.Lstat(name)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return "", err
	}
	at := info.ModTime()
	if at.Nanosecond()%1e6 == 0 { // a disk with coarse times: this says too little
		return tempName(), nil
	}
	return fmt.Sprintf("%s-%d-%d", inode(info), info.Size(), at.UnixNano()), nil
}

// rootFs is an afero.Fs that cannot be left. afero's own follow links: OsFs anywhere,
// BasePathFs out of its base path.
type rootFs struct{ *os.Root }

var _ afero.Fs = rootFs{}

func (r rootFs) Create(name string) (afero.File, error) { return opened(r.Root.Create(name)) }
func (r rootFs) Open(name string) (afero.File, error)   { return opened(r.Root.Open(name)) }
func (r rootFs) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	return opened(r.Root.OpenFile(name, flag, perm))
}

// opened keeps a nil file a nil interface.
func opened(f *os.File, err error) (afero.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}
