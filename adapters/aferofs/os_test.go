package aferofs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

func TestOS_BadRootIsNamedByEveryMethod(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for name, root := range map[string]string{
		"empty":           "",
		"relative":        "some/where",
		"missing":         filepath.Join(dir, "missing"),
		"not a directory": file,
		"in a file":       filepath.Join(file, "x"),
		"link to itself":  loop,
		"a zero byte":     dir + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			f := aferofs.OS(root)
			_, read := f.ReadFile("x")
			_, list := f.ReadDir(".")
			_, stamp := f.Stamp("x")
			_, lock := f.Lock(context.Background(), "x")
			for _, err := range []error{
				f.Err(), f.Mkdir("x"), f.MkdirAll("x"), f.Create("x", nil), f.Derive("x", nil),
				f.Update("x", func([]byte) ([]byte, error) { return []byte("x"), nil }), read, list, stamp, lock,
			} {
				if err == nil || err.Error() != f.Err().Error() {
					t.Errorf("told %v", err)
				}
			}
			is.True(strings.Contains(f.Err().Error(), strings.Trim(root, "\x00"))) // names it
			is.Equal(errors.Is(f.Err(), fs.ErrNotExist), name == "missing")
			t.Log(f.Err())
		})
	}
}

// C49: one place has one name, however it is spelt.
func TestOS_RootReachedInManyWays(t *testing.T) {
	is := is.New(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	is.NoErr(err)
	project := filepath.Join(base, "real", "project")
	is.NoErr(os.MkdirAll(filepath.Join(project, "inner"), 0o755))
	is.NoErr(os.Symlink(project, filepath.Join(base, "link")))
	is.NoErr(os.Symlink("real", filepath.Join(base, "parent")))
	is.NoErr(os.Symlink(filepath.Join(project, "inner"), filepath.Join(base, "deep")))

	for _, spelt := range []string{
		project, project + "/", project + "//", project + "/.", project + "/inner/..",
		filepath.Join(base, "link"), filepath.Join(base, "link") + "/", filepath.Join(base, "parent", "project"),
		base + "/deep/..", // the parent of what deep points to, not base
	} {
		f := aferofs.OS(spelt)
		is.NoErr(f.Err())
		is.Equal(f.Root(), project)
		is.NoErr(f.MkdirAll("a/b"))
	}
}

// A link that is pointed elsewhere later is another project: the value made before stays
// where it was.
func TestOS_RepointedLinkIsAnotherProject(t *testing.T) {
	is := is.New(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	is.NoErr(err)
	one, two, link := filepath.Join(base, "one"), filepath.Join(base, "two"), filepath.Join(base, "link")
	is.NoErr(os.Mkdir(one, 0o755))
	is.NoErr(os.Mkdir(two, 0o755))
	is.NoErr(os.Symlink(one, link))
	before := aferofs.OS(link)
	is.NoErr(os.Remove(link))
	is.NoErr(os.Symlink(two, link))
	after := aferofs.OS(link)

	is.NoErr(before.Create("file", []byte("one")))
	is.NoErr(after.Create("file", []byte("two")))
	is.Equal(before.Root(), one)
	is.Equal(after.Root(), two)
	got, err := os.ReadFile(filepath.Join(one, "file"))
	is.NoErr(err)
	is.Equal(string(got), "one")
}

// The project goes away while it is used, and something else comes in its place.
func TestOS_RootReplacedWhileInUse(t *testing.T) {
	is := is.New(t)
	base := t.TempDir()
	project := filepath.Join(base, "project")
	is.NoErr(os.Mkdir(project, 0o755))
	f := aferofs.OS(project)
	is.NoErr(f.Create("file", nil))

	is.NoErr(os.Rename(project, filepath.Join(base, "moved")))
	err := f.Create("new", nil)
	is.True(errors.Is(err, fs.ErrNotExist))
	is.True(strings.Contains(err.Error(), project))

	is.NoErr(os.Mkdir(project, 0o755))
	err = f.Create("new", nil)
	is.True(errors.Is(err, aferofs.ErrReplaced))
	entries, err := os.ReadDir(project)
	is.NoErr(err)
	is.Equal(len(entries), 0) // nothing was put into the other one
}
