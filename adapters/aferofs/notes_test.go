//go:build unix

package aferofs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// Package notes on a real disk, by many processes and under kills.

func BenchmarkNoteLife(b *testing.B)         { notestest.BenchmarkNoteLife(b, onDisk) }
func BenchmarkFinalizeTogether(b *testing.B) { notestest.BenchmarkFinalizeTogether(b, onDisk) }
func BenchmarkLookup(b *testing.B)           { notestest.BenchmarkLookup(b, onDisk) }

func onDisk(b *testing.B) func() notes.FS {
	dir := b.TempDir()
	return func() notes.FS { return aferofs.OS(dir) }
}

// open opens the session of a parent like a process that knows nothing yet. Many contend, so
// it is patient.
func open(ctx context.Context, root, parent string) (*notes.Session, error) {
	return notes.Open(ctx, notes.Config{
		FS: aferofs.OS(root), Parent: notes.Identity(parent), LockTimeout: time.Minute,
	})
}

// writeNotes reserves and finalises notes in the session of a parent, as many as it is told
// (0: for ever), and says what was acknowledged.
func writeNotes(args []string) {
	ctx := context.Background()
	n, err := strconv.Atoi(args[2])
	must(err)
	s, err := open(ctx, args[0], args[1])
	must(err)
	for i := 0; n == 0 || i < n; i++ {
		note, err := s.Reserve(ctx, notes.Plan{Agent: "worker", Task: fmt.Sprint("task ", i), Start: true})
		must(err)
		say("reserved", note.RelPath())
		must(note.Finalize(ctx, notes.Outcome{Status: notes.Completed, Text: "text of " + note.RelPath()}))
		say("finished", note.RelPath())
	}
}

// openAsParents opens the session of another parent for each line of its input.
func openAsParents(args []string) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		s, err := open(context.Background(), args[0], "parent "+args[1]+" in round "+in.Text())
		must(err)
		say(s.RelPath())
	}
}

// 16 processes write one session: every note is its own, and none is lost.
func TestNotes_SixteenProcessesOneSession(t *testing.T) {
	is := is.New(t)
	const processes = 16
	each := 50
	if testing.Short() {
		each = 5
	}
	root := t.TempDir()
	var all []*process
	for range processes {
		all = append(all, start(t, "notes", root, "parent", strconv.Itoa(each)))
	}
	acknowledged := map[string]string{}
	for _, p := range all {
		for _, line := range p.rest() {
			state, name, _ := strings.Cut(line, " ")
			acknowledged[name] = state
		}
	}
	is.Equal(len(acknowledged), processes*each) // distinct
	found := checkSession(t, root, acknowledged)
	is.Equal(len(found.Notes), processes*each) // and nothing else
	is.Equal(len(found.Strays), 0)
}

// C05: eight processes allocate under eight parents at once: no two sessions share a number,
// whatever their names, and none is half-made.
func TestNotes_ParentsAllocateAtOnce(t *testing.T) {
	is := is.New(t)
	const processes = 8
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	root := t.TempDir()
	var all []*process
	for i := range processes {
		all = append(all, start(t, "parents", root, strconv.Itoa(i)))
	}
	numbers := map[string]string{}
	for round := range rounds {
		for _, p := range all {
			_, err := fmt.Fprintln(p.stdin, round)
			is.NoErr(err)
		}
		for _, p := range all {
			dir := p.line()
			number, _, ok := strings.Cut(strings.TrimPrefix(dir, ".shepherd/sessions/"), "-")
			if !ok {
				t.Fatalf("a process said %q", dir)
			}
			if other, taken := numbers[number]; taken {
				t.Errorf("%s and %s share a number", other, dir)
			}
			numbers[number] = dir
		}
	}
	list, err := notes.List(t.Context(), aferofs.OS(root))
	is.NoErr(err)
	is.Equal(len(list), processes*rounds)
	for _, s := range list {
		is.Equal(s.Kind, notes.KindSession)
	}
}

// A process that writes notes is killed at random instants: nothing is corrupt, nothing
// acknowledged is lost, and the next process goes on in the same session at once.
func TestNotes_KilledWhileWriting(t *testing.T) {
	is := is.New(t)
	kills := 200
	if testing.Short() {
		kills = 20
	}
	root := t.TempDir()
	acknowledged := map[string]string{}
	var session string
	var waits []time.Duration
	for range kills {
		p := start(t, "notes", root, "parent", "0")
		said := []string{p.line()}
		time.Sleep(rand.N(8 * time.Millisecond))
		for _, line := range append(said, p.killAndReadOn()...) {
			if state, name, ok := strings.Cut(line, " "); ok {
				acknowledged[name] = state
			}
		}

		began := time.Now()
		next, err := open(t.Context(), root, "parent")
		is.NoErr(err)
		note, err := next.Reserve(t.Context(), notes.Plan{Agent: "next", Start: true})
		is.NoErr(err)
		waits = append(waits, time.Since(began))
		is.NoErr(note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed, Text: "text of " + note.RelPath()}))
		acknowledged[note.RelPath()] = "finished"
		is.NoErr(next.Close())
		if session == "" {
			session = next.RelPath()
		}
		is.Equal(next.RelPath(), session)
	}
	report(t, waits)
	found := checkSession(t, root, acknowledged)
	list, err := notes.List(t.Context(), aferofs.OS(root))
	is.NoErr(err)
	is.Equal(len(list), 1)
	t.Logf("%d kills, %d notes acknowledged, %d entries, %d files without one",
		kills, len(acknowledged), len(found.Notes), len(found.Strays))
}

// checkSession looks at the only session under root: everything in it is sound, and every
// acknowledged note is there, listed once, indexed, and in the state that was acknowledged
// or a later one.
func checkSession(t *testing.T, root string, acknowledged map[string]string) notes.SessionInfo {
	t.Helper()
	is := is.New(t)
	fsys := aferofs.OS(root)
	s, err := open(t.Context(), root, "parent")
	is.NoErr(err)
	is.NoErr(s.Recovered())
	_, err = s.Unfinished(t.Context()) // makes the record true
	is.NoErr(err)
	is.NoErr(s.Close())

	record, err := fsys.ReadFile(s.RelPath() + "/session.json")
	is.NoErr(err)
	is.True(json.Valid(record))
	index, err := fsys.ReadFile(s.RelPath() + "/shepherd.md")
	is.NoErr(err)
	found, err := notes.Read(t.Context(), fsys, s.RelPath()[strings.LastIndex(s.RelPath(), "/")+1:])
	is.NoErr(err)
	listed := map[string]notes.NoteInfo{}
	for _, n := range found.Notes {
		if _, twice := listed[n.RelPath]; twice {
			t.Errorf("%s is listed twice", n.RelPath)
		}
		listed[n.RelPath] = n
		if !strings.Contains(string(index), "(./"+n.File+")") {
			t.Errorf("the index does not link %s", n.File)
		}
	}
	for name, state := range acknowledged {
		n, ok := listed[name]
		if !ok {
			t.Errorf("%s was acknowledged and is not listed", name)
			continue
		}
		content, err := fsys.ReadFile(name)
		if err != nil {
			t.Errorf("%s cannot be read: %v", name, err)
		}
		text := "\ntext of " + name + "\n"
		if state == "finished" && (n.Status != notes.Completed || strings.Count(string(content), text) != 1) {
			t.Errorf("%s was finished and is %s:\n%s", name, n.Status, content)
		}
	}
	return found
}

// C43 (a): the disk is full at the end of a prompt. The note stays as it was, the error says
// so, and it can be finished once there is room.
func TestNotes_DiskFullWhileFinalising(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small disk needs root; the same faults are simulated in package notes")
	}
	is := is.New(t)
	root := t.TempDir()
	if err := mountSmall(root); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { unmount(root) })
	s, err := open(t.Context(), root, "parent")
	is.NoErr(err)
	note, err := s.Reserve(t.Context(), notes.Plan{Agent: "worker", Start: true})
	is.NoErr(err)
	before, err := os.ReadFile(note.Path())
	is.NoErr(err)

	err = note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed, Text: strings.Repeat("long ", 100_000)})
	is.True(errors.Is(err, syscall.ENOSPC))
	is.True(strings.Contains(err.Error(), note.Path()))
	after, err := os.ReadFile(note.Path())
	is.NoErr(err)
	is.Equal(string(after), string(before))

	is.NoErr(note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed, Text: "short"}))
	text, err := note.Text()
	is.NoErr(err)
	is.Equal(text, "short")
}
