package notestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// TestFS holds an implementation of [notes.FS] against the port's contract, a subtest for
// each sentence. open is called once for each subtest and gives a constructor of values over
// one and the same new, empty tree.
//
// What is optional ([notes.Deriver], [notes.Stamper], symbolic links) is tested where it is
// there and skipped, with the reason, where it is not.
func TestFS(t *testing.T, open func(t *testing.T) func() notes.FS) {
	for _, c := range contract {
		t.Run(c.sentence, func(t *testing.T) { c.test(fsTest{t}, open(t)) })
	}
}

var contract = []struct {
	sentence string
	test     func(t fsTest, open func() notes.FS)
}{
	{"the root is absolute and the same for every value", testRoot},
	{"of many who make a directory exactly one succeeds", testMkdirOneWinner},
	{"a directory needs its parent", testMkdirParent},
	{"MkdirAll makes what is missing and accepts what is there", testMkdirAll},
	{"of many who create a file exactly one succeeds, and its content is whole", testCreateOneWinner},
	{"a created file appears whole", testCreateWhole},
	{"Create leaves a taken name alone", testCreateTaken},
	{"files need their directory", testParents},
	{"names that leave the root are refused", testBadNames},
	{"Update makes a missing file, which change sees as nil", testUpdateNew},
	{"everyone reads what was written", testReadYourWrites},
	{"a file is replaced whole under its readers", testReplacedWhole},
	{"change is called again when the file has changed meanwhile", testUpdateAgain},
	{"concurrent changes are all there in the end", testUpdateConcurrent},
	{"an error of change is returned as it is, and nothing is written", testUpdateError},
	{"unchanged content is not written", testUpdateUnchanged},
	{"change may write into what it is given", testUpdateInPlace},
	{"errors match and name the path", testErrors},
	{"directories are no files, and files no directories", testKinds},
	{"a directory is listed by name, with kinds and sizes", testReadDir},
	{"temporary files are not listed", testTemporary},
	{"a lock excludes goroutines", testLockGoroutines},
	{"a lock excludes the values of one tree", testLockValues},
	{"locks of different names do not wait for each other", testLockNames},
	{"waiting for a lock ends with its context", testLockContext},
	{"a lock that was given up does not stay taken", testLockGivenUp},
	{"a lock is unlocked once, however often it is asked", testUnlockTwice},
	{"a lock makes no directory", testLockParent},
	{"the content of a lock's file means nothing", testLockContent},
	{"a lock is freed by the death of its holder", testLockDeath},
	{"mode bits of an existing file are kept", testModes},
	{"symbolic links are refused at every component", testLinks},
	{"derived data replaces a file whole, keeping the rules for names", testDerive},
	{"equal stamps mean equal content", testStamp},
}

func testRoot(t fsTest, open func() notes.FS) {
	a, b := open().Root(), open().Root()
	if a != b || !filepath.IsAbs(a) {
		t.Errorf("roots are %q and %q; want one absolute path", a, b)
	}
}

func testMkdirOneWinner(t fsTest, open func() notes.FS) {
	for round := range 20 {
		t.oneWinner(open, func(f notes.FS, _ int) error { return f.Mkdir(fmt.Sprint("d", round)) })
	}
}

func testMkdirParent(t fsTest, open func() notes.FS) {
	f := open()
	t.matches(f.Mkdir("a/b"), fs.ErrNotExist, "a/b")
	if _, err := f.ReadDir("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the parent was made: ReadDir says %v", err)
	}
	t.ok(f.Mkdir("a"))
	t.ok(f.Mkdir("a/b"))
	t.matches(f.Mkdir("a/b"), fs.ErrExist, "a/b")
}

func testMkdirAll(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.MkdirAll("a/b/c"))
	t.ok(f.MkdirAll("a/b/c"))
	t.ok(f.MkdirAll("a/b/d"))
	t.ok(f.MkdirAll("."))
	if got := t.names(f, "a/b"); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("a/b holds %q", got)
	}
	t.ok(f.Create("a/file", nil))
	if err := f.MkdirAll("a/file/x"); err == nil {
		t.Error("made a directory in a file")
	}
	if err := f.MkdirAll("a/file"); err == nil {
		t.Error("took a file for a directory")
	}
	together(8, func(i int) {
		if err := open().MkdirAll("x/y/z"); err != nil {
			t.Errorf("together with others: %v", err)
		}
	})
}

func testCreateOneWinner(t fsTest, open func() notes.FS) {
	f := open()
	for round := range 20 {
		name := fmt.Sprint("f", round)
		won := t.oneWinner(open, func(f notes.FS, i int) error { return f.Create(name, numbered(i)) })
		if got := t.read(f, name); !bytes.Equal(got, numbered(won)) {
			t.Errorf("the winner was %d, but its content is not there", won)
		}
	}
	if got := t.names(f, "."); len(got) != 20 {
		t.Errorf("20 files were made, but there are %q", got)
	}
}

func testCreateWhole(t fsTest, open func() notes.FS) {
	f, reader := open(), open()
	want := numbered(1)
	for i := range 50 {
		name := fmt.Sprint("f", i)
		stop := t.watch(reader, name, func(got []byte) bool { return bytes.Equal(got, want) })
		t.ok(f.Create(name, want))
		stop()
	}
}

func testCreateTaken(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", []byte("first")))
	t.ok(f.Mkdir("dir"))
	t.matches(f.Create("file", []byte("second")), fs.ErrExist, "file")
	t.matches(f.Create("dir", []byte("second")), fs.ErrExist, "dir")
	if got := t.read(f, "file"); string(got) != "first" {
		t.Errorf("the file holds %q", got)
	}
}

func testParents(t fsTest, open func() notes.FS) {
	f := open()
	t.matches(f.Create("no/file", nil), fs.ErrNotExist, "no/file")
	t.matches(f.Update("no/file", func([]byte) ([]byte, error) { return []byte("x"), nil }), fs.ErrNotExist, "no/file")
	if got := t.names(f, "."); len(got) != 0 {
		t.Errorf("something was made: %q", got)
	}
}

// BadNames leave the root, or could be taken to.
var BadNames = []string{
	"", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/../x", "./a", "a/.", "a/", "a//b", "//a", "a/..",
	"new/../x", "new//x", "new/.", "new/../../x", "a/\xff",
}

func testBadNames(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Mkdir("a"))
	for _, name := range BadNames {
		for op, err := range everyMethod(f, name) {
			if err == nil {
				t.Errorf("%s(%q) was accepted", op, name)
			}
		}
	}
	if got := t.names(f, "."); !slices.Equal(got, []string{"a"}) {
		t.Errorf("something was made: %q", got)
	}
	if got := t.names(f, "a"); len(got) != 0 {
		t.Errorf("something was made in a: %q", got)
	}
}

func testUpdateNew(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Update("file", func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("change was given %q for a file that is not there", old)
		}
		return []byte("new"), nil
	}))
	if got := t.read(f, "file"); string(got) != "new" {
		t.Errorf("the file holds %q", got)
	}
}

func testReadYourWrites(t fsTest, open func() notes.FS) {
	f, other := open(), open()
	t.ok(f.Create("file", []byte("0")))
	for i := 1; i <= 20; i++ {
		t.ok(f.Update("file", func(old []byte) ([]byte, error) {
			if want := fmt.Sprint(i - 1); string(old) != want {
				t.Errorf("change was given %q, want %q", old, want)
			}
			return []byte(fmt.Sprint(i)), nil
		}))
		for _, r := range []notes.FS{f, other} {
			if got := t.read(r, "file"); string(got) != fmt.Sprint(i) {
				t.Errorf("read %q after writing %d", got, i)
			}
		}
	}
	for _, data := range [][]byte{{}, []byte("\x00\xff\r\n"), bytes.Repeat([]byte("long"), 1<<18)} {
		t.ok(f.Update("file", func([]byte) ([]byte, error) { return data, nil }))
		if got := t.read(other, "file"); !bytes.Equal(got, data) {
			t.Errorf("wrote %d bytes, read %d others", len(data), len(got))
		}
	}
}

func testReplacedWhole(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", numbered(0)))
	known := func(got []byte) bool { return len(got) > 0 && bytes.Equal(got, numbered(int(got[0]))) }
	stops := []func(){t.watch(open(), "file", known), t.watch(open(), "file", known)}
	for i := range 100 {
		t.ok(f.Update("file", func([]byte) ([]byte, error) { return numbered(i % 50), nil }))
	}
	for _, stop := range stops {
		stop()
	}
}

func testUpdateAgain(t fsTest, open func() notes.FS) {
	f, other := open(), open()
	t.ok(f.Create("file", []byte("a")))
	calls := 0
	t.ok(f.Update("file", func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			t.ok(other.Update("file", func(old []byte) ([]byte, error) { return append(old, 'b'), nil }))
		}
		return append(old, 'c'), nil
	}))
	if got := t.read(f, "file"); string(got) != "abc" || calls != 2 {
		t.Errorf("after %d calls the file holds %q, want abc after 2", calls, got)
	}

	calls = 0
	t.ok(f.Update("fresh", func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			t.ok(other.Create("fresh", []byte("theirs ")))
		}
		return append(old, "ours"...), nil
	}))
	if got := t.read(f, "fresh"); string(got) != "theirs ours" || calls != 2 {
		t.Errorf("a file that was created meanwhile holds %q after %d calls", got, calls)
	}
}

func testUpdateConcurrent(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Mkdir("locks"))
	t.ok(f.Create("file", nil))
	const goroutines, rounds = 4, 10
	together(goroutines, func(i int) {
		f := open()
		for range rounds {
			unlock, err := f.Lock(context.Background(), "locks/l")
			if err != nil {
				t.Errorf("lock: %v", err)
				return
			}
			if err := f.Update("file", func(old []byte) ([]byte, error) { return append(old, byte('a'+i)), nil }); err != nil {
				t.Errorf("update: %v", err)
			}
			unlock()
		}
	})
	got := t.read(f, "file")
	for i := range goroutines {
		if n := bytes.Count(got, []byte{byte('a' + i)}); n != rounds {
			t.Errorf("%d of %d changes of goroutine %d are there", n, rounds, i)
		}
	}
}

func testUpdateError(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", []byte("before")))
	mine := errors.New("mine")
	for _, name := range []string{"file", "missing"} {
		if err := f.Update(name, func([]byte) ([]byte, error) { return []byte("after"), mine }); err != mine {
			t.Errorf("Update(%q) says %v, want the very error of change", name, err)
		}
	}
	if got := t.read(f, "file"); string(got) != "before" {
		t.Errorf("the file holds %q", got)
	}
	if got := t.names(f, "."); !slices.Equal(got, []string{"file"}) {
		t.Errorf("there are %q", got)
	}
}

func testUpdateUnchanged(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", []byte("same")))
	before := t.modTime(f, "file")
	t.ok(f.Update("file", func(old []byte) ([]byte, error) { return old, nil }))
	if after := t.modTime(f, "file"); !after.Equal(before) {
		t.Errorf("the file was written at %v", after)
	}
	t.ok(f.Update("missing", func(old []byte) ([]byte, error) { return old, nil }))
	if got := t.names(f, "."); !slices.Equal(got, []string{"file"}) {
		t.Errorf("there are %q", got)
	}
}

func testUpdateInPlace(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", []byte("same")))
	t.ok(f.Update("file", func(old []byte) ([]byte, error) {
		copy(old, "game")
		return old, nil
	}))
	if got := t.read(f, "file"); string(got) != "game" {
		t.Errorf("the file holds %q", got)
	}
}

func testErrors(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Mkdir("dir"))
	_, err := f.ReadFile("dir/missing")
	t.matches(err, fs.ErrNotExist, "dir/missing")
	_, err = f.ReadFile("gone/missing")
	t.matches(err, fs.ErrNotExist, "gone/missing")
	_, err = f.ReadDir("dir/missing")
	t.matches(err, fs.ErrNotExist, "dir/missing")
	_, err = f.Lock(context.Background(), "gone/lock")
	t.matches(err, fs.ErrNotExist, "gone/lock")
}

func testKinds(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Mkdir("dir"))
	t.ok(f.Create("file", []byte("x")))
	if _, err := f.ReadFile("dir"); err == nil {
		t.Error("read a directory as a file")
	}
	if _, err := f.ReadDir("file"); err == nil {
		t.Error("listed a file as a directory")
	}
	if err := f.Update("dir", func([]byte) ([]byte, error) { return []byte("x"), nil }); err == nil {
		t.Error("replaced a directory by a file")
	}
	if err := f.Create("file/x", nil); err == nil {
		t.Error("created a file in a file")
	}
	if err := f.Mkdir("file/x"); err == nil {
		t.Error("made a directory in a file")
	}
	if _, err := f.Lock(context.Background(), "dir"); err == nil {
		t.Error("locked a directory")
	}
	t.matches(f.Mkdir("file"), fs.ErrExist, "file")
}

func testReadDir(t fsTest, open func() notes.FS) {
	f := open()
	for _, name := range []string{"b", "a", "c", ".hidden"} {
		t.ok(f.Create(name, []byte(name)))
	}
	t.ok(f.MkdirAll("bb/inner"))
	if got := t.names(f, "."); !slices.Equal(got, []string{".hidden", "a", "b", "bb", "c"}) {
		t.Errorf("listed %q", got)
	}
	entries, err := f.ReadDir(".")
	t.ok(err)
	for _, e := range entries {
		info, err := e.Info()
		t.ok(err)
		if isDir := e.Name() == "bb"; e.IsDir() != isDir || info.IsDir() != isDir {
			t.Errorf("%s: is a directory? %v, %v", e.Name(), e.IsDir(), info.IsDir())
		} else if !isDir && info.Size() != int64(len(e.Name())) {
			t.Errorf("%s: %d bytes", e.Name(), info.Size())
		}
	}
}

func testTemporary(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", numbered(0)))
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		lister := open()
		for !done.Load() {
			entries, err := lister.ReadDir(".")
			if err != nil || len(entries) != 1 {
				t.Errorf("listed %v, %v while one file was being replaced", entries, err)
				return
			}
		}
	})
	for i := range 50 {
		t.ok(f.Update("file", func([]byte) ([]byte, error) { return numbered(i), nil }))
		if err := f.Create("file", numbered(i)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Create says %v", err)
		}
	}
	done.Store(true)
	wg.Wait()
}

func testLockGoroutines(t fsTest, open func() notes.FS) {
	f := open()
	t.excludes(func() notes.FS { return f })
}

func testLockValues(t fsTest, open func() notes.FS) { t.excludes(open) }

// excludes counts who is inside. Nobody sleeps: whoever is inside lets the others run.
func (t fsTest) excludes(open func() notes.FS) {
	var inside, most, total atomic.Int32
	together(8, func(int) {
		f := open()
		for range 20 {
			unlock, err := f.Lock(context.Background(), "lock")
			if err != nil {
				t.Errorf("lock: %v", err)
				return
			}
			if n := inside.Add(1); n > most.Load() {
				most.Store(n)
			}
			if _, err := f.ReadDir("."); err != nil {
				t.Errorf("inside: %v", err)
			}
			total.Add(1)
			inside.Add(-1)
			if err := unlock(); err != nil {
				t.Errorf("unlock: %v", err)
			}
		}
	})
	if most.Load() != 1 || total.Load() != 8*20 {
		t.Errorf("up to %d inside at once, %d times in all; want 1 and %d", most.Load(), total.Load(), 8*20)
	}
}

func testLockNames(t fsTest, open func() notes.FS) {
	f := open()
	a := t.lock(f, "a")
	defer a()
	b := t.lock(f, "b")
	defer b()
}

func testLockContext(t fsTest, open func() notes.FS) {
	f := open()
	unlock := t.lock(f, "lock")
	defer unlock()
	for _, f := range []notes.FS{f, open()} {
		ctx, cancel := context.WithCancel(context.Background())
		got := make(chan error)
		go func() {
			_, err := f.Lock(ctx, "lock")
			got <- err
		}()
		select {
		case err := <-got:
			t.Errorf("did not wait: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		cancel()
		t.matches(<-got, context.Canceled, "lock")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := f.Lock(ctx, "free")
	t.matches(err, context.Canceled, "free")
}

func testLockGivenUp(t fsTest, open func() notes.FS) {
	f, other := open(), open()
	for range 5 {
		unlock := t.lock(f, "lock")
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if _, err := other.Lock(ctx, "lock"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("locked twice: %v", err)
			}
			cancel()
		}
		t.ok(unlock())
		for _, f := range []notes.FS{f, other, open()} { // whoever gave up is not in the way
			t.ok(t.lock(f, "lock")())
		}
	}
}

func testUnlockTwice(t fsTest, open func() notes.FS) {
	f := open()
	first := t.lock(f, "lock")
	t.ok(first())
	second := t.lock(f, "lock")
	t.ok(first()) // must not free what is now somebody else's
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := open().Lock(ctx, "lock"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unlocking twice freed somebody else's lock: %v", err)
	}
	t.ok(second())
	t.ok(t.lock(f, "lock")())
}

func testLockParent(t fsTest, open func() notes.FS) {
	f := open()
	_, err := f.Lock(context.Background(), "gone/lock")
	t.matches(err, fs.ErrNotExist, "gone/lock")
	if got := t.names(f, "."); len(got) != 0 {
		t.Errorf("something was made: %q", got)
	}
}

func testLockContent(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("lock", []byte("pid 1, held since 1970")))
	t.ok(t.lock(f, "lock")())
}

// killer is what a file system in memory may offer: the death of the process that a value
// stands for. The deaths of real processes are for its own tests.
type killer interface{ Kill() }

func testLockDeath(t fsTest, open func() notes.FS) {
	f, other := open(), open()
	k, can := f.(killer)
	if !can {
		t.Skip("no Kill: the process cannot be killed without the test")
	}
	unlock := t.lock(f, "lock")
	got := make(chan error)
	go func() {
		u, err := other.Lock(context.Background(), "lock")
		if err == nil {
			err = u()
		}
		got <- err
	}()
	k.Kill()
	t.ok(<-got)
	held := t.lock(other, "lock")
	_ = unlock() // the dead one's: must not free what is now somebody else's
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := open().Lock(ctx, "lock"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a dead holder freed somebody else's lock: %v", err)
	}
	t.ok(held())
	if err := f.Create("file", nil); err == nil {
		t.Error("a dead process wrote")
	}
}

func testModes(t fsTest, open func() notes.FS) {
	f := open()
	t.ok(f.Create("file", []byte("0")))
	path := filepath.Join(f.Root(), "file")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no mode bits: the tree is not on a disk")
	}
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o444} {
		t.ok(os.Chmod(path, mode))
		before, err := os.Stat(path) // not every system keeps all bits
		t.ok(err)
		t.ok(f.Update("file", func(old []byte) ([]byte, error) { return append(old, 'x'), nil }))
		after, err := os.Stat(path)
		t.ok(err)
		if after.Mode() != before.Mode() {
			t.Errorf("the mode was %v and is %v", before.Mode(), after.Mode())
		}
	}
}

// testLinks puts links where an implementation on a real disk would meet them: a file's own
// name, the directory above, one further up; to a place outside, to one inside, to nothing.
func testLinks(t fsTest, open func() notes.FS) {
	f := open()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	t.ok(err)
	t.ok(f.Create("probe", nil))
	if _, err := os.Stat(filepath.Join(f.Root(), "probe")); err != nil {
		t.Skip("no links: the tree is not on a disk")
	}
	t.ok(os.WriteFile(filepath.Join(outside, "victim"), []byte("safe"), 0o600))
	t.ok(os.Mkdir(filepath.Join(outside, "sub"), 0o700))
	t.ok(f.MkdirAll("real/sub"))
	t.ok(f.Create("real/victim", []byte("safe")))
	for name, target := range map[string]string{
		"out":      outside,
		"in":       "real",
		"file":     filepath.Join(outside, "victim"),
		"filein":   "real/victim",
		"dangling": filepath.Join(outside, "new"),
		"real/up":  "..",
	} {
		if err := os.Symlink(target, filepath.Join(f.Root(), filepath.FromSlash(name))); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	refused := []string{
		"out", "out/victim", "out/new", "out/sub", "out/sub/new", "in", "in/victim", "in/new", "in/sub/new",
		"file", "filein", "dangling", "real/up", "real/up/probe", "real/up/new", "real/up/real/new",
	}
	for _, name := range refused {
		for op, err := range everyMethod(f, name) {
			if err == nil {
				t.Errorf("%s(%q) followed a link", op, name)
			} else if !strings.Contains(filepath.ToSlash(err.Error()), name) {
				t.Errorf("%s(%q) does not name the path: %v", op, name, err)
			}
		}
	}
	for dir, want := range map[string][]string{outside: {"sub", "victim"}, filepath.Join(outside, "sub"): nil} {
		entries, err := os.ReadDir(dir)
		t.ok(err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s holds %q, want %q", dir, got, want)
		}
	}
	for _, victim := range []string{filepath.Join(outside, "victim"), filepath.Join(f.Root(), "real", "victim")} {
		if got, err := os.ReadFile(victim); string(got) != "safe" || err != nil {
			t.Errorf("%s holds %q, %v", victim, got, err)
		}
	}
}

func testDerive(t fsTest, open func() notes.FS) {
	f := open()
	d, can := f.(notes.Deriver)
	if !can {
		t.Skip("no Deriver")
	}
	t.ok(d.Derive("file", numbered(0)))
	known := func(got []byte) bool { return len(got) > 0 && bytes.Equal(got, numbered(int(got[0]))) }
	stop := t.watch(open(), "file", known)
	for i := range 100 {
		t.ok(d.Derive("file", numbered(i%50)))
		if got := t.read(f, "file"); !bytes.Equal(got, numbered(i%50)) {
			t.Error("read something else than was derived")
		}
	}
	stop()
	t.ok(f.Mkdir("dir"))
	if err := d.Derive("dir", nil); err == nil {
		t.Error("replaced a directory")
	}
	t.matches(d.Derive("gone/file", nil), fs.ErrNotExist, "gone/file")
	if got := t.names(f, "."); !slices.Equal(got, []string{"dir", "file"}) {
		t.Errorf("there are %q", got)
	}
}

func testStamp(t fsTest, open func() notes.FS) {
	f, other := open(), open()
	s, can := f.(notes.Stamper)
	if !can {
		t.Skip("no Stamper")
	}
	stamp := func() string {
		stamp, err := s.Stamp("file")
		t.ok(err)
		return stamp
	}
	_, err := s.Stamp("file")
	t.matches(err, fs.ErrNotExist, "file")
	t.ok(f.Create("file", numbered(0)))
	if a, b := stamp(), stamp(); a != b {
		t.Errorf("an untouched file has the stamps %q and %q", a, b)
	}
	// Two files that take turns, as quickly as can be, with contents of one length: what
	// looks alike by number, size and coarse time.
	seen := map[string]int{}
	for i := range 200 {
		data := []byte(fmt.Sprintf("%04d", i))
		if d, can := other.(notes.Deriver); can && i%2 == 0 {
			t.ok(d.Derive("file", data))
		} else {
			t.ok(other.Update("file", func([]byte) ([]byte, error) { return data, nil }))
		}
		stamp := stamp()
		if before, twice := seen[stamp]; twice {
			t.Fatalf("contents %d and %d have the same stamp %q", before, i, stamp)
		}
		seen[stamp] = i
	}
	t.ok(f.Mkdir("dir"))
	if _, err := s.Stamp("dir"); err == nil {
		t.Error("stamped a directory")
	}
}

// fsTest is a test of the contract and its helpers.
type fsTest struct{ *testing.T }

// everyMethod calls everything with one name and gives the errors by method.
func everyMethod(f notes.FS, name string) map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	got := map[string]error{
		"Mkdir":    f.Mkdir(name),
		"MkdirAll": f.MkdirAll(name),
		"Create":   f.Create(name, []byte("x")),
		"Update":   f.Update(name, func([]byte) ([]byte, error) { return []byte("x"), nil }),
	}
	_, got["ReadFile"] = f.ReadFile(name)
	_, got["ReadDir"] = f.ReadDir(name)
	unlock, err := f.Lock(ctx, name)
	if err == nil {
		unlock()
	}
	got["Lock"] = err
	if d, can := f.(notes.Deriver); can {
		got["Derive"] = d.Derive(name, []byte("x"))
	}
	if s, can := f.(notes.Stamper); can {
		_, got["Stamp"] = s.Stamp(name)
	}
	return got
}

// oneWinner lets eight values try at once and returns who won.
func (t fsTest) oneWinner(open func() notes.FS, try func(f notes.FS, i int) error) (winner int) {
	t.Helper()
	var won atomic.Int32
	start := make(chan struct{})
	values := make([]notes.FS, 8)
	for i := range values {
		values[i] = open()
	}
	var wg sync.WaitGroup
	var who atomic.Int32
	for i, f := range values {
		wg.Go(func() {
			<-start
			if err := try(f, i); err == nil {
				won.Add(1)
				who.Store(int32(i))
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("a loser is told %v, which does not match fs.ErrExist", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of %d won", won.Load(), len(values))
	}
	return int(who.Load())
}

// watch reads a file over and over until it is stopped. Each time the file must not be there
// yet, or hold what is right.
func (t fsTest) watch(f notes.FS, name string, right func([]byte) bool) (stop func()) {
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		seen := false
		for last := false; ; {
			got, err := f.ReadFile(name)
			switch {
			case errors.Is(err, fs.ErrNotExist) && !seen:
			case err != nil:
				t.Errorf("reading %s while it is written: %v", name, err)
				return
			case !right(got):
				t.Errorf("read %d bytes of %s that nobody wrote so", len(got), name)
				return
			default:
				seen = true
			}
			if last {
				return
			}
			last = done.Load()
		}
	})
	return func() { done.Store(true); wg.Wait() }
}

// numbered is some 40 kB that tell their number everywhere.
func numbered(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 40_000+i) }

func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func (t fsTest) lock(f notes.FS, name string) (unlock func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	unlock, err := f.Lock(ctx, name)
	if err != nil {
		t.Fatalf("lock %s: %v", name, err)
	}
	return unlock
}

func (t fsTest) read(f notes.FS, name string) []byte {
	t.Helper()
	data, err := f.ReadFile(name)
	t.ok(err)
	return data
}

func (t fsTest) names(f notes.FS, dir string) (names []string) {
	t.Helper()
	entries, err := f.ReadDir(dir)
	t.ok(err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (t fsTest) modTime(f notes.FS, name string) time.Time {
	t.Helper()
	entries, err := f.ReadDir(path.Dir(name))
	t.ok(err)
	for _, e := range entries {
		if e.Name() == path.Base(name) {
			info, err := e.Info()
			t.ok(err)
			return info.ModTime()
		}
	}
	t.Fatalf("%s is not there", name)
	return time.Time{}
}

func (t fsTest) ok(err error) {
	t.Helper()
	if err != nil {
		t.Errorf("unexpected: %v", err)
	}
}

// matches wants an error of a kind that names the path.
func (t fsTest) matches(err, kind error, name string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want an error that matches %v", err, kind)
	} else if !strings.Contains(filepath.ToSlash(err.Error()), name) {
		t.Errorf("%v does not name %s", err, name)
	}
}
