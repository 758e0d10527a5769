package aferofs

import (
	"io/fs"
	"path"

	"github.com/spf13/afero"
)

// Steps lets a test see every step that an FS asks of the disk, and refuse it: before is
// called with a verb and the names, temporary ones as "temp". It returns f.
func Steps(f *FS, before func(step string) error) *FS {
	f.tree = watchedTree{f.tree, before}
	return f
}

// TempName is a name as writes use it.
func TempName() string { return tempName() }

type watchedTree struct {
	tree
	before func(string) error
}

func (t watchedTree) open(name string) (dir, error) {
	d, err := t.tree.open(name)
	if err != nil {
		return nil, err
	}
	return watchedDir{d, t.before}, nil
}

type watchedDir struct {
	dir
	before func(string) error
}

func known(name string) string {
	if name == "." {
		return "directory"
	}
	if isTemp(path.Base(name)) {
		return "temp"
	}
	return name
}

func (d watchedDir) Mkdir(name string, perm fs.FileMode) error {
	if err := d.before("mkdir " + known(name)); err != nil {
		return err
	}
	return d.dir.Mkdir(name, perm)
}

func (d watchedDir) Open(name string) (afero.File, error) {
	file, err := d.dir.Open(name)
	return watchedFile{file, name, d.before}, err
}

func (d watchedDir) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	if err := d.before("make " + known(name)); err != nil {
		return nil, err
	}
	file, err := d.dir.OpenFile(name, flag, perm)
	return watchedFile{file, name, d.before}, err
}

func (d watchedDir) OpenRegular(name string) (afero.File, error) {
	if err := d.before("read " + known(name)); err != nil {
		return nil, err
	}
	return d.dir.OpenRegular(name)
}

func (d watchedDir) Link(oldname, newname string) error {
	if err := d.before("link " + known(oldname) + " " + known(newname)); err != nil {
		return err
	}
	return d.dir.Link(oldname, newname)
}

func (d watchedDir) Rename(oldname, newname string) error {
	if err := d.before("rename " + known(oldname) + " " + known(newname)); err != nil {
		return err
	}
	return d.dir.Rename(oldname, newname)
}

func (d watchedDir) Remove(name string) error {
	if err := d.before("remove " + known(name)); err != nil {
		return err
	}
	return d.dir.Remove(name)
}

type watchedFile struct {
	afero.File
	name   string
	before func(string) error
}

func (f watchedFile) Write(p []byte) (int, error) {
	if err := f.before("write " + known(f.name)); err != nil {
		n, _ := f.File.Write(p[:len(p)/2]) // as on a disk that fills up
		return n, err
	}
	return f.File.Write(p)
}

func (f watchedFile) Sync() error {
	if err := f.before("sync " + known(f.name)); err != nil {
		return err
	}
	return f.File.Sync()
}

// RenameExclusive is what Create does where there are no hard links.
var RenameExclusive = renameExclusive
