package agentdir

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxFile  = 256 << 10 // bytes
	maxFiles = 128       // of one directory
)

//go:embed bundled/*.md
var bundled embed.FS

// place is one directory that may have definitions.
type place struct {
	path  string // as errors and Definition.Source name it
	level Level
	open  func() (fs.FS, io.Closer, error)
}

// contents is what was found in a place.
type contents struct {
	definitions []Definition
	broken      []*FileError
}

// names are all names that the contents take, those of broken files too.
func (c contents) names() []string {
	var names []string
	for _, d := range c.definitions {
		names = append(names, d.Name)
	}
	for _, b := range c.broken {
		if b.name != "" && !slices.Contains(names, b.name) {
			names = append(names, b.name)
		}
	}
	return names
}

// userPlace follows links: the user made them.
func userPlace(dir string) place {
	return place{dir, LevelUser, func() (fs.FS, io.Closer, error) { return os.DirFS(dir), io.NopCloser(nil), nil }}
}

// projectPlace is sub below root. Neither a link in it nor it itself leads out.
func projectPlace(root, sub string) place {
	return place{filepath.Join(root, sub), LevelProject, func() (fs.FS, io.Closer, error) {
		project, err := os.OpenRoot(root)
		if err != nil {
			return nil, nil, err
		}
		defer project.Close()
		dir, err := project.OpenRoot(sub)
		if err != nil {
			return nil, nil, fmt.Errorf("not a directory of the project: %w", err)
		}
		return dir.FS(), dir, nil
	}}
}

func bundledPlace() place {
	return place{"bundled", LevelBundled, func() (fs.FS, io.Closer, error) {
		dir, err := fs.Sub(bundled, "bundled")
		return dir, io.NopCloser(nil), err
	}}
}

// read reads a place. A place that is not there has no contents; the error is ctx's.
func (p place) read(ctx context.Context) (c contents, err error) {
	fail := func(err error) (contents, error) {
		if !errors.Is(err, fs.ErrNotExist) {
			c.broken = append(c.broken, &FileError{Path: p.path, Level: p.level, Err: err})
		}
		return c, nil
	}
	fsys, closer, err := p.open()
	if err != nil {
		return fail(err)
	}
	defer closer.Close()
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return fail(err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() || strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), ".md")
	})
	if len(entries) > maxFiles {
		_, _ = fail(fmt.Errorf("%d files; only the first %d are read", len(entries), maxFiles))
		entries = entries[:maxFiles]
	}
	for _, e := range entries { // in the order of their names
		if err := context.Cause(ctx); err != nil {
			return c, err
		}
		c.add(p, fsys, e)
	}
	return c, nil
}

// add reads one file into the contents.
func (c *contents) add(p place, fsys fs.FS, e fs.DirEntry) {
	source := p.path
	if p.level != LevelBundled {
		source = filepath.Join(p.path, e.Name())
	}
	stem, isAgent := strings.CutSuffix(e.Name(), ".agent.md")
	if !isAgent {
		stem = strings.TrimSuffix(stem, ".md")
	}
	d, err := load(fsys, e, stem)
	if errors.Is(err, errNoHeader) && !isAgent {
		return // a README
	}
	if err != nil {
		c.broken = append(c.broken, &FileError{Path: source, Level: p.level, Err: err, name: d.Name})
		return
	}
	if slices.ContainsFunc(c.definitions, func(o Definition) bool { return o.Name == d.Name }) {
		err := fmt.Errorf("another file of this directory defines %q too; this one is left out", d.Name)
		c.broken = append(c.broken, &FileError{Path: source, Level: p.level, Err: err})
		return
	}
	d.Level, d.Source = p.level, source
	c.definitions = append(c.definitions, d)
}

// load reads one file. The definition has its name also where there is an error.
func load(fsys fs.FS, e fs.DirEntry, stem string) (Definition, error) {
	unread := Definition{Name: stem}
	info, err := fs.Stat(fsys, e.Name()) // before it is opened: a pipe would never answer
	switch {
	case err != nil && e.Type()&fs.ModeSymlink != 0:
		return unread, fmt.Errorf("a link that leads out of the directory or to nothing: %w", err)
	case err != nil:
		return unread, err
	case !info.Mode().IsRegular():
		return unread, errors.New("not a regular file")
	}
	f, err := fsys.Open(e.Name())
	if err != nil {
		return unread, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return unread, err
	}
	if len(data) > maxFile {
		return unread, fmt.Errorf("more than %d bytes", maxFile)
	}
	return parse(data, stem)
}
