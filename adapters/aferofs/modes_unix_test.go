//go:build unix

package aferofs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

// C52: what is ours to write is never more readable than what it replaces.
func TestModes(t *testing.T) {
	is := is.New(t)
	dir := t.TempDir()
	f := aferofs.OS(dir)
	mode := func(name string) fs.FileMode {
		info, err := os.Stat(filepath.Join(dir, name))
		is.NoErr(err)
		return info.Mode().Perm()
	}
	change := func(old []byte) ([]byte, error) { return append(old, 'x'), nil }

	defer syscall.Umask(syscall.Umask(0o022))
	is.NoErr(f.Create("note", nil))
	is.NoErr(f.Mkdir("dir"))
	is.NoErr(f.Derive("derived", nil))
	is.Equal(mode("note"), fs.FileMode(0o644))
	is.Equal(mode("dir"), fs.FileMode(0o755))
	is.Equal(mode("derived"), fs.FileMode(0o644))

	for _, want := range []fs.FileMode{0o600, 0o640, 0o666, 0o400} {
		is.NoErr(os.Chmod(filepath.Join(dir, "note"), want))
		is.NoErr(f.Update("note", change))
		is.Equal(mode("note"), want) // kept, not widened and not narrowed
		is.NoErr(f.Derive("note", []byte("y")))
		is.Equal(mode("note"), want)
	}

	// At no moment is the temporary file more readable than the file.
	is.NoErr(os.Chmod(filepath.Join(dir, "note"), 0o600))
	watched := aferofs.Steps(aferofs.OS(dir), func(string) error {
		entries, err := os.ReadDir(dir)
		is.NoErr(err)
		for _, e := range entries {
			info, err := e.Info()
			is.NoErr(err)
			if strings.HasSuffix(e.Name(), ".tmp") && info.Mode().Perm() != 0o600 {
				t.Errorf("the temporary file has mode %v", info.Mode())
			}
		}
		return nil
	})
	is.NoErr(watched.Update("note", change))

	syscall.Umask(0o077) // whoever wants privacy for all files gets it for these
	is.NoErr(f.Create("private", nil))
	is.NoErr(f.Mkdir("secret"))
	is.Equal(mode("private"), fs.FileMode(0o600))
	is.Equal(mode("secret"), fs.FileMode(0o700))
}
