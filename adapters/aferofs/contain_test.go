//go:build unix

package aferofs_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

// C52: somebody swaps a directory for a link and back, over and over, while we write. What
// the link points to stays as it is, be it outside or one of our own directories.
func TestContain_DirectorySwappedForALinkWhileWriting(t *testing.T) {
	t.Run("to outside", func(t *testing.T) {
		outside := t.TempDir()
		swap(t, aferofs.OS(t.TempDir(), loose), outside, outside)
	})
	t.Run("to inside", func(t *testing.T) {
		f := aferofs.OS(t.TempDir(), loose)
		if err := f.Mkdir("victim"); err != nil {
			t.Fatal(err)
		}
		swap(t, f, f.Root()+"/victim", "victim")
	})
}

// loose makes for more tries in the same time.
var loose = aferofs.WithDurability(aferofs.SyncFiles)

func swap(t *testing.T, f *aferofs.FS, victim, target string) {
	is := is.New(t)
	is.NoErr(os.WriteFile(filepath.Join(victim, "file"), []byte("safe"), 0o644))
	dir, aside, link := f.Root()+"/dir", f.Root()+"/aside", f.Root()+"/link"
	is.NoErr(f.Mkdir("dir"))
	is.NoErr(f.Create("dir/file", []byte("0")))
	is.NoErr(os.Symlink(target, link))

	stop, swaps := make(chan struct{}), 0
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if os.Rename(dir, aside) == nil && os.Rename(link, dir) == nil {
				swaps++
			}
			_ = os.Rename(dir, link)
			_ = os.Rename(aside, dir)
			if rand.N(4) == 0 { // so that some calls meet the directory
				time.Sleep(rand.N(500 * time.Microsecond))
			}
		}
	})
	written, refused := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		for _, err := range []error{
			f.Update("dir/file", func(old []byte) ([]byte, error) {
				if string(old) == "safe" {
					t.Error("read through the link")
				}
				return append(old, 'x'), nil
			}),
			f.Derive("dir/file", []byte("0")),
			f.Create("dir/new", nil),
			f.Mkdir("dir/sub"),
			lockOnce(f, "dir/lock"),
		} {
			if err == nil {
				written++
			} else {
				refused++
			}
		}
	}
	close(stop)
	attacker.Wait()
	t.Logf("%d swaps: %d calls went through, %d were refused", swaps, written, refused)
	is.True(swaps > 0 && written > 0 && refused > 0) // else nothing was tried
	entries, err := os.ReadDir(victim)
	is.NoErr(err)
	is.Equal(len(entries), 1)
	got, err := os.ReadFile(filepath.Join(victim, "file"))
	is.NoErr(err)
	is.Equal(string(got), "safe")
}

func lockOnce(f *aferofs.FS, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unlock, err := f.Lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}

// The directory is moved away between two steps of one write: the write either goes with it,
// or says that it did not happen. It is never acknowledged for a place where it is not.
func TestContain_DirectoryMovedDuringAWrite(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	is.NoErr(f.Mkdir("dir"))
	is.NoErr(f.Create("dir/file", []byte("old")))
	is.NoErr(os.Mkdir(f.Root()+"/decoy", 0o755))
	aferofs.Steps(f, func(step string) error {
		if strings.HasPrefix(step, "rename") {
			is.NoErr(os.Rename(f.Root()+"/dir", f.Root()+"/moved"))
			is.NoErr(os.Symlink("decoy", f.Root()+"/dir"))
		}
		return nil
	})
	err := f.Update("dir/file", func([]byte) ([]byte, error) { return []byte("new"), nil })
	is.True(err != nil)
	for dir, want := range map[string]int{"moved": 1, "decoy": 0} { // and no temporary file anywhere
		entries, err := os.ReadDir(f.Root() + "/" + dir)
		is.NoErr(err)
		is.Equal(len(entries), want)
	}
}

// A decoy that holds a file of our temporary name would be renamed there, but is not
// acknowledged.
func TestContain_RenameElsewhereIsNotAcknowledged(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	is.NoErr(f.Mkdir("dir"))
	is.NoErr(f.Create("dir/file", []byte("old")))
	is.NoErr(os.Mkdir(f.Root()+"/decoy", 0o755))
	aferofs.Steps(f, func(step string) error {
		if strings.HasPrefix(step, "rename") {
			temps, err := filepath.Glob(f.Root() + "/dir/.shepherd-*.tmp")
			is.NoErr(err)
			is.Equal(len(temps), 1)
			is.NoErr(os.WriteFile(f.Root()+"/decoy/"+filepath.Base(temps[0]), nil, 0o644))
			is.NoErr(os.Rename(f.Root()+"/dir", f.Root()+"/moved"))
			is.NoErr(os.Rename(f.Root()+"/decoy", f.Root()+"/dir"))
		}
		return nil
	})
	err := f.Update("dir/file", func([]byte) ([]byte, error) { return []byte("new"), nil })
	is.True(errors.Is(err, aferofs.ErrReplaced))
}

// A pipe where a file should be would hold up whoever opens it.
func TestContain_PipeIsRefusedNotWaitedFor(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	is.NoErr(syscall.Mkfifo(f.Root()+"/pipe", 0o644))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, read := f.ReadFile("pipe")
		_, stamp := f.Stamp("pipe")
		_, list := f.ReadDir("pipe")
		for _, err := range []error{
			read, stamp, list, f.Derive("pipe", nil), lockOnce(f, "pipe"), f.Mkdir("pipe/x"),
			f.Update("pipe", func([]byte) ([]byte, error) { return nil, nil }),
		} {
			if err == nil || !strings.Contains(err.Error(), f.Root()+"/pipe") {
				t.Errorf("told %v", err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("somebody waits for the pipe")
	}
}

// C52: the target is a link to a victim. It is refused, and stays the link it was.
func TestContain_LinkStaysALink(t *testing.T) {
	is := is.New(t)
	victim := filepath.Join(t.TempDir(), "victim")
	is.NoErr(os.WriteFile(victim, []byte("safe"), 0o600))
	f := aferofs.OS(t.TempDir())
	is.NoErr(os.Symlink(victim, f.Root()+"/note"))
	for _, err := range []error{
		f.Update("note", func([]byte) ([]byte, error) { return []byte("x"), nil }),
		f.Derive("note", []byte("x")),
		lockOnce(f, "note"),
	} {
		is.True(errors.Is(err, aferofs.ErrLink))
	}
	target, err := os.Readlink(f.Root() + "/note")
	is.NoErr(err)
	is.Equal(target, victim)
	got, err := os.ReadFile(victim)
	is.NoErr(err)
	is.Equal(string(got), "safe")
}

// Where there are no hard links a file is renamed into place, and never over another.
func TestCreate_WithoutHardLinksStaysExclusive(t *testing.T) {
	is := is.New(t)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	is.NoErr(err)
	defer root.Close()
	for _, name := range []string{"a", "b", "taken"} {
		is.NoErr(os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	err = aferofs.RenameExclusive(root, "a", "taken")
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system cannot, so Create needs hard links here")
	}
	is.True(errors.Is(err, fs.ErrExist))
	is.NoErr(aferofs.RenameExclusive(root, "b", "free"))
	for name, want := range map[string]string{"taken": "taken", "free": "b", "a": "a"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		is.NoErr(err)
		is.Equal(string(got), want)
	}
}
