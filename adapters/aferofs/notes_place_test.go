//go:build unix

package aferofs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// Where the notes of a project are, when links and moves are about.

// C49: one project in several spellings is one binding and one directory.
func TestNotes_ProjectReachedInManyWays(t *testing.T) {
	is := is.New(t)
	base := t.TempDir()
	project := filepath.Join(base, "project")
	is.NoErr(os.MkdirAll(filepath.Join(project, "inner"), 0o755))
	is.NoErr(os.Symlink(project, filepath.Join(base, "link")))
	is.NoErr(os.Symlink(base, filepath.Join(base, "above")))
	want := ""
	for _, root := range []string{
		project, project + "/", project + "/inner/..", base + "/link", base + "/link/", base + "/above/project",
	} {
		s, err := open(t.Context(), root, "parent")
		is.NoErr(err)
		note, err := s.Reserve(t.Context(), notes.Plan{Agent: "scout"})
		is.NoErr(err)
		if want == "" {
			want = s.Path()
		}
		is.Equal(s.Path(), want)
		is.Equal(filepath.Dir(note.Path()), want)
	}
	entries, err := os.ReadDir(filepath.Dir(want))
	is.NoErr(err)
	sessions := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			sessions++
		}
	}
	is.Equal(sessions, 1)

	// Pointed elsewhere the link is another project.
	other := filepath.Join(base, "other")
	is.NoErr(os.Mkdir(other, 0o755))
	is.NoErr(os.Remove(filepath.Join(base, "link")))
	is.NoErr(os.Symlink(other, filepath.Join(base, "link")))
	s, err := open(t.Context(), filepath.Join(base, "link"), "parent")
	is.NoErr(err)
	is.Equal(s.Path(), filepath.Join(realPath(t, other), s.RelPath()))
}

// A project that is moved takes its sessions along.
func TestNotes_ProjectMovedWithItsSessions(t *testing.T) {
	is := is.New(t)
	base := t.TempDir()
	is.NoErr(os.Mkdir(filepath.Join(base, "before"), 0o755))
	s, err := open(t.Context(), filepath.Join(base, "before"), "parent")
	is.NoErr(err)
	_, err = s.Reserve(t.Context(), notes.Plan{Agent: "scout"})
	is.NoErr(err)
	is.NoErr(os.Rename(filepath.Join(base, "before"), filepath.Join(base, "after")))

	moved, err := open(t.Context(), filepath.Join(base, "after"), "parent")
	is.NoErr(err)
	is.Equal(moved.RelPath(), s.RelPath())
	note, err := moved.Reserve(t.Context(), notes.Plan{Agent: "scout"})
	is.NoErr(err)
	is.Equal(filepath.Base(note.Path()), "scout-02.md")
	is.True(strings.HasPrefix(note.Path(), realPath(t, filepath.Join(base, "after"))))
}

// C52: a link stands where one of our directories or files should be, pointing to a copy of
// it outside. Whatever is tried then, nothing outside is created or changed, and no other
// file of the project either.
func TestNotes_LinksAreRefusedAtEveryComponent(t *testing.T) {
	for _, component := range []string{
		".shepherd", ".shepherd/sessions", "SESSION", "SESSION/session.json", "SESSION/shepherd.md",
		"SESSION/scout-01.md", "SESSION/.lock", ".shepherd/sessions/.lock", ".shepherd/sessions/.bindings",
	} {
		t.Run(component, func(t *testing.T) {
			is := is.New(t)
			root, outside := realPath(t, t.TempDir()), t.TempDir()
			s, err := open(t.Context(), root, "parent")
			is.NoErr(err)
			note, err := s.Reserve(t.Context(), notes.Plan{Agent: "scout", Start: true})
			is.NoErr(err)
			at := filepath.Join(root, strings.Replace(component, "SESSION", s.RelPath(), 1))
			away := filepath.Join(outside, "away")
			if err := os.Rename(at, away); err != nil {
				t.Skipf("there is no such file: %v", err)
			}
			is.NoErr(os.Symlink(away, at))
			before := tree(t, outside)

			// The one who was there before, and one who comes after.
			ending := notes.Outcome{Status: notes.Completed, Text: "text"}
			finalErr := note.Finalize(t.Context(), ending)
			_, reserveErr := s.Reserve(t.Context(), notes.Plan{Agent: "scout"})
			again, openErr := open(t.Context(), root, "parent")
			if openErr == nil {
				_, err := again.Reserve(t.Context(), notes.Plan{Agent: "other"})
				t.Logf("opened again as %s; reserve: %v", again.RelPath(), err)
			}
			t.Logf("finalize: %v; reserve: %v; open: %v", finalErr, reserveErr, openErr)

			is.Equal(tree(t, outside), before)
			info, err := os.Lstat(at)
			is.NoErr(err)
			if info.Mode()&fs.ModeSymlink == 0 {
				t.Error("the link was replaced")
			}
		})
	}
}

// tree is everything below a directory: names, modes, times and content, in one string.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			b.Write(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}
