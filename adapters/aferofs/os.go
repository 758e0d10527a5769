package aferofs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Option changes what [OS] makes.
type Option func(*FS)

// WithDurability says what a write waits for. The default is [SyncAll].
func WithDurability(d Durability) Option { return func(f *FS) { f.durability = d } }

// OS is the directory root on disk: an absolute path of a directory that exists. Links in
// the path are resolved once, now; a link that is pointed elsewhere later, or a directory
// that takes the place of this one, is another project and is not touched. If root cannot be
// used, every method says why, and so does [FS.Err].
//
// Any number of values over one root, in one process or many, work together.
func OS(root string, opts ...Option) *FS {
	f := &FS{root: root}
	for _, o := range opts {
		o(f)
	}
	d, err := resolve(root)
	if err != nil {
		f.err = fmt.Errorf("aferofs: root %q: %w", root, err)
		return f
	}
	f.root, f.tree, f.locks = d.path, d, newKernelLocks()
	return f
}

func resolve(root string) (disk, error) {
	if !filepath.IsAbs(root) {
		return disk{}, fmt.Errorf("%w: not an absolute path", fs.ErrInvalid)
	}
	real, err := filepath.EvalSymlinks(root) // not cleaned before: link/.. is not what it looks like
	if err != nil {
		return disk{}, cause(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return disk{}, cause(err)
	}
	if !info.IsDir() {
		return disk{}, syscall.ENOTDIR
	}
	d := disk{path: real, info: info}
	open, err := d.open(".")
	if err != nil {
		return disk{}, cause(err)
	}
	return d, open.Close()
}

// cause takes the path from an error that is about to be told with another spelling of it.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
