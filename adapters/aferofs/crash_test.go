//go:build unix

package aferofs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

// appendForEver does what notes do, back to back: under the lock it creates a file, enters
// its number in a record, and says so once that is acknowledged.
func appendForEver(args []string) {
	f := aferofs.OS(args[0])
	n, err := strconv.Atoi(args[1])
	must(err)
	for ; ; n++ {
		unlock, err := f.Lock(context.Background(), "lock")
		must(err)
		must(f.Create(fmt.Sprintf("file-%06d", n), bytes.Repeat([]byte(fmt.Sprintln(n)), 1000)))
		must(f.Update("record", func(old []byte) ([]byte, error) { return fmt.Appendln(old, n), nil }))
		must(f.Derive("derived", fmt.Appendln(nil, n)))
		must(unlock())
		say(n)
	}
}

// A process is killed at random instants while it writes: no file is ever half, nothing
// acknowledged is missing, and the next one goes on at once.
func TestCrash_KilledWhileWriting(t *testing.T) {
	is := is.New(t)
	kills := 200
	if testing.Short() {
		kills = 20
	}
	f := aferofs.OS(t.TempDir())
	next, acknowledged, leftovers := 0, map[int]bool{}, 0
	var waits []time.Duration
	for range kills {
		p := start(t, "append", f.Root(), strconv.Itoa(next))
		said := []string{p.line()} // it is writing by now
		time.Sleep(rand.N(8 * time.Millisecond))
		said = append(said, p.killAndReadOn()...)
		for _, line := range said {
			n, err := strconv.Atoi(line)
			is.NoErr(err)
			acknowledged[n] = true
			next = max(next, n+1)
		}

		began := time.Now()
		unlock, err := f.Lock(t.Context(), "lock")
		is.NoErr(err)
		waits = append(waits, time.Since(began))
		is.NoErr(unlock())
		next++ // what the killed one was at may exist
	}

	report(t, waits)

	record, err := f.ReadFile("record")
	is.NoErr(err)
	entered := map[int]bool{}
	for line := range strings.Lines(string(record)) {
		n, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
		is.NoErr(err)
		is.True(!entered[n] && strings.HasSuffix(line, "\n"))
		entered[n] = true
	}
	entries, err := f.ReadDir(".")
	is.NoErr(err)
	for _, e := range entries {
		number, isFile := strings.CutPrefix(e.Name(), "file-")
		if !isFile {
			is.True(e.Name() == "record" || e.Name() == "derived" || e.Name() == "lock") // no leftover is listed
			continue
		}
		n, err := strconv.Atoi(number)
		is.NoErr(err)
		data, err := f.ReadFile(e.Name())
		is.NoErr(err)
		is.True(bytes.Equal(data, bytes.Repeat([]byte(fmt.Sprintln(n)), 1000))) // whole
	}
	for n := range acknowledged {
		_, err := f.ReadFile(fmt.Sprintf("file-%06d", n))
		is.True(err == nil && entered[n])
	}
	all, err := os.ReadDir(f.Root())
	is.NoErr(err)
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ".tmp") {
			leftovers++
		}
	}
	t.Logf("%d kills, %d acknowledged, %d entered, %d leftovers", kills, len(acknowledged), len(entered), leftovers)
}

// What a dead process left is not listed, not read, not written, and not in the way.
func TestCrash_LeftoverIsNoFile(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	leftover := aferofs.TempName()
	is.NoErr(os.WriteFile(f.Root()+"/"+leftover, []byte("half"), 0o644))
	entries, err := f.ReadDir(".")
	is.NoErr(err)
	is.Equal(len(entries), 0)
	_, err = f.ReadFile(leftover)
	is.True(errors.Is(err, fs.ErrInvalid))
	is.True(errors.Is(f.Create(leftover, nil), fs.ErrInvalid))
	is.True(errors.Is(f.MkdirAll("a/"+leftover), fs.ErrInvalid))
	is.NoErr(f.Create("file", nil))
}

// writeBeyondLimit sets a limit on the size of files and says what it is told.
func writeBeyondLimit(args []string) {
	f := aferofs.OS(args[0])
	ignoreFileSizeSignal()
	limit := syscall.Rlimit{Cur: 10_000, Max: 10_000}
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	big := bytes.Repeat([]byte("x"), 20_000)
	for _, err := range []error{
		f.Create("new", big),
		f.Update("old", func([]byte) ([]byte, error) { return big, nil }),
		f.Derive("old", big),
	} {
		say(errors.Is(err, syscall.EFBIG), err)
	}
}

// C43: the kernel refuses in the middle of a write.
func TestFullDisk_FileSizeLimit(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	is.NoErr(f.Create("old", []byte("old")))
	for i, line := range start(t, "full", f.Root()).rest() {
		is.True(strings.HasPrefix(line, "true ")) // matches the kernel's error
		is.True(strings.Contains(line, f.Root()+[]string{"/new", "/old", "/old"}[i]))
	}
	intact(t, f)
}

// C43: a disk that is really full.
func TestFullDisk_SmallMount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small disk needs root; the file size limit is tested in any case")
	}
	is := is.New(t)
	dir := t.TempDir()
	if err := mountSmall(dir); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { unmount(dir) })
	f := aferofs.OS(dir)
	is.NoErr(f.Create("old", []byte("old")))
	big := bytes.Repeat([]byte("x"), 1<<20)
	for name, err := range map[string]error{
		"new": f.Create("new", big),
		"old": f.Update("old", func([]byte) ([]byte, error) { return big, nil }),
	} {
		is.True(errors.Is(err, syscall.ENOSPC))
		is.True(strings.Contains(err.Error(), dir+"/"+name))
	}
	intact(t, f)
	is.NoErr(f.Create("small", []byte("fits"))) // nothing of the failed ones takes up room
}

// intact: the old file is as it was, and nothing else is there.
func intact(t *testing.T, f *aferofs.FS) {
	t.Helper()
	is := is.New(t)
	got, err := f.ReadFile("old")
	is.NoErr(err)
	is.Equal(string(got), "old")
	entries, err := os.ReadDir(f.Root())
	is.NoErr(err)
	is.Equal(len(entries), 1) // no new file, no temporary one
}

// writeAsNobody is a user who may read here, but not write.
func writeAsNobody(args []string) {
	if os.Getuid() == 0 {
		must(syscall.Setgroups(nil))
		must(syscall.Setgid(65534))
		must(syscall.Setuid(65534))
	}
	f := aferofs.OS(args[0])
	must(f.Err())
	_, lock := f.Lock(context.Background(), "lock")
	data, err := f.ReadFile("old")
	must(err)
	if string(data) != "old" {
		say("read", string(data))
	}
	for _, err := range []error{
		f.Mkdir("new"),
		f.MkdirAll("new/er"),
		f.Create("new", nil),
		f.Update("old", func([]byte) ([]byte, error) { return []byte("x"), nil }),
		f.Derive("old", nil),
		lock,
	} {
		say(errors.Is(err, fs.ErrPermission), err)
	}
}

// C43: a place where nothing can be written says so, and names the path.
func TestReadOnlyDirectory(t *testing.T) {
	is := is.New(t)
	dir, err := os.MkdirTemp("", "aferofs-readonly") // t.TempDir is closed to others
	is.NoErr(err)
	t.Cleanup(func() { os.Chmod(dir, 0o755); os.RemoveAll(dir) })
	f := aferofs.OS(dir)
	is.NoErr(f.Create("old", []byte("old")))
	is.NoErr(os.Chmod(f.Root()+"/old", 0o644))
	is.NoErr(os.Chmod(dir, 0o555))
	lines := start(t, "nobody", dir).rest()
	is.Equal(len(lines), 6)
	for _, line := range lines {
		is.True(strings.HasPrefix(line, "true ")) // matches fs.ErrPermission
		is.True(strings.Contains(line, dir))
	}
	intact(t, f)
}

// allocate takes the next numbers, each by the exclusive step alone.
func allocate(args []string) {
	f := aferofs.OS(args[0])
	n, err := strconv.Atoi(args[1])
	must(err)
	for got, next := 0, 0; got < n; next++ {
		switch err := f.Mkdir(fmt.Sprint("n", next)); {
		case err == nil:
			say(next)
			got++
		case !errors.Is(err, fs.ErrExist):
			must(err)
		}
	}
}

// C05: eight processes, one exclusive step each, no number twice and none left out.
func TestMkdir_ProcessesShareNoNumber(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir(), aferofs.WithDurability(aferofs.SyncFiles))
	const processes, each = 8, 50
	var all []*process
	for range processes {
		all = append(all, start(t, "allocate", f.Root(), strconv.Itoa(each)))
	}
	taken := map[string]int{}
	for _, p := range all {
		for _, line := range p.rest() {
			taken[line]++
		}
	}
	is.Equal(len(taken), processes*each)
	for i := range processes * each {
		is.Equal(taken[strconv.Itoa(i)], 1)
	}
}
