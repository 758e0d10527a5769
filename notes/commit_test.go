package notes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// C23: parallel completions erase each other's entries.
func TestC23_NothingIsLostBetweenTwoProcesses(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	processes := []*notes.Session{open(t, d.View(), "me"), open(t, d.View(), "me")}
	dir := processes[0].RelPath()
	var done atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !done.Load() {
			if text := d.Read(dir + "/session.json"); !json.Valid([]byte(text)) {
				t.Errorf("a reader saw\n%s", text)
			}
			if _, err := notes.Read(context.Background(), d.View(), path.Base(dir)); err != nil {
				t.Error(err)
			}
		}
	})
	together(20, func(i int) {
		ctx := context.Background()
		n, err := processes[i%2].Reserve(ctx, notes.Plan{Agent: fmt.Sprint("agent", i%3)})
		if err == nil {
			err = n.Start(ctx, fmt.Sprint("pane", i))
		}
		if err == nil {
			err = n.Finalize(ctx, notes.Outcome{Status: notes.Completed, Text: fmt.Sprint(i)})
		}
		if err != nil {
			t.Error(err)
		}
	})
	done.Store(true)
	reader.Wait()
	info, err := notes.Read(t.Context(), d.View(), path.Base(dir))
	is.NoErr(err)
	is.Equal(len(info.Notes), 20)
	is.Equal(info.Status, notes.SessionCompleted)
	for _, n := range info.Notes {
		is.Equal(n.Status, notes.Completed)
		is.True(strings.HasPrefix(n.Pane, "pane"))
	}
	index := d.Read(dir + "/shepherd.md")
	is.Equal(strings.Count(index, ": completed\n"), 20)
}

// A fan-out of completions shares a handful of writes.
func TestCommit_ConcurrentFinalisationsShareTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		d := notestest.NewDisk()
		fsys := &notestest.Counter{FS: d.View()}
		s := open(t, fsys, "me")
		list, err := s.ReserveAll(t.Context(), make100("agent"))
		is.NoErr(err)
		fsys.Take()
		d.Fault = func(step notestest.Step) error {
			if step.Part == "sync" {
				time.Sleep(time.Millisecond) // a disk takes its time
			}
			return nil
		}
		together(100, func(i int) {
			if err := list[i].Finalize(context.Background(), notes.Outcome{Status: notes.Completed}); err != nil {
				t.Error(err)
			}
		})
		commits := fsys.Take().Commits
		t.Logf("100 concurrent finalisations in %d commits", commits)
		is.True(commits <= 10)
	})
}

func make100(agent string) []notes.Plan {
	plans := make([]notes.Plan, 100)
	for i := range plans {
		plans[i] = notes.Plan{Agent: agent, Start: true}
	}
	return plans
}

// A note that cannot be written takes no other with it.
func TestCommit_OneBadNoteHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := notestest.NewDisk()
		s := open(t, d.View(), "me")
		list, err := s.ReserveAll(t.Context(), make100("agent"))
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("bad sector")
		d.Fault = func(step notestest.Step) error {
			if step.Name == list[50].RelPath() && step.Part == "write" {
				return broken
			}
			return nil
		}
		together(100, func(i int) {
			err := list[i].Finalize(context.Background(), notes.Outcome{Status: notes.Completed})
			if (i == 50) != errors.Is(err, broken) {
				t.Errorf("note %d: %v", i, err)
			}
		})
		info, _ := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
		for i, n := range info.Notes {
			if want := i != 50; n.Status.Final() != want {
				t.Errorf("note %d is %s", i, n.Status)
			}
		}
	})
}

// While another process holds the lock nothing has begun: the end of ctx withdraws the job.
func TestCommit_WithdrawnWhileTheLockIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		d := notestest.NewDisk()
		s := open(t, d.View(), "me")
		before := everything(d, ".shepherd")
		unlock, err := d.View().Lock(t.Context(), s.RelPath()+"/.lock")
		is.NoErr(err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = s.Reserve(ctx, notes.Plan{Agent: "scout"})
		is.True(errors.Is(err, context.DeadlineExceeded))
		is.Equal(time.Since(began), time.Second) // promptly
		is.NoErr(unlock())
		synctest.Wait()
		is.Equal(everything(d, ".shepherd"), before)
		reserve(t, s, "scout") // and it works again
	})
}

// C16: a lock file outlives the process that made it. Its lock does not.
func TestC16_LockOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		d := notestest.NewDisk()
		config := notes.Config{FS: d.View(), Parent: notes.Identity("me"), LockTimeout: 3 * time.Second}
		s, err := notes.Open(t.Context(), config)
		is.NoErr(err)
		other := d.View()
		_, err = other.Lock(t.Context(), s.RelPath()+"/.lock")
		is.NoErr(err)
		began := time.Now()
		_, err = s.Reserve(t.Context(), notes.Plan{Agent: "scout"})
		is.True(errors.Is(err, notes.ErrLocked))
		is.Equal(time.Since(began), 3*time.Second)
		config.Parent = notes.Identity("another")
		_, err = other.Lock(t.Context(), sessions+".lock")
		is.NoErr(err)
		_, err = notes.Open(t.Context(), config)
		is.True(errors.Is(err, notes.ErrLocked))
		other.Kill() // its locks die with it
		began = time.Now()
		reserve(t, s, "scout")
		_, err = notes.Open(t.Context(), config)
		is.NoErr(err)
		is.Equal(time.Since(began), time.Duration(0)) // at once
	})
}

// hang makes the next write of a session.json hang until release is called.
func hang(d *notestest.Disk) (release func()) {
	stuck := make(chan struct{})
	var once sync.Once
	d.Fault = func(s notestest.Step) error {
		if path.Base(s.Name) == "session.json" && s.Part == "sync" {
			<-stuck
		}
		return nil
	}
	return func() { once.Do(func() { close(stuck) }) }
}

// A disk that hangs: the caller is told the truth after its ctx and some patience; what
// comes through later was nobody's, and is cancelled.
func TestCommit_HungDiskWhileReserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		d := notestest.NewDisk()
		s, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("me"), Patience: 2 * time.Second})
		is.NoErr(err)
		release := hang(d)
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = s.Reserve(ctx, notes.Plan{Agent: "scout", Start: true})
		is.True(errors.Is(err, notes.ErrOutcomeUnknown))
		is.Equal(time.Since(began), 3*time.Second)
		ctx2, cancel2 := context.WithTimeout(t.Context(), time.Second)
		defer cancel2()
		_, err = s.Reserve(ctx2, notes.Plan{Agent: "planner"}) // not taken, so withdrawn
		is.True(errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, notes.ErrOutcomeUnknown))
		release()
		synctest.Wait()
		info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
		is.NoErr(err)
		is.Equal(len(info.Notes), 1)
		is.Equal(info.Notes[0].Status, notes.Cancelled) // it came through, and nobody waits for it
	})
}

func TestCommit_TakenJobReportsItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		d := notestest.NewDisk()
		s := open(t, d.View(), "me")
		note := reserve(t, s, "scout")
		release := hang(d)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- note.Finalize(ctx, notes.Outcome{Status: notes.Completed, Text: "done"}) }()
		synctest.Wait() // it is being written
		cancel()
		synctest.Wait()
		release()
		is.NoErr(<-failed) // it was written, so it is no error
		text, err := note.Text()
		is.NoErr(err)
		is.Equal(text, "done")
	})
}

// File sync, rename, directory sync, then the acknowledgement; the note before its entry;
// and all of it before the call returns.
func TestCommit_OrderOfOperations(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	d.Tracing = true
	note := reserve(t, s, "scout")
	reserved := d.Trace()
	finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "done"})
	finalized := d.Trace()
	d.Tracing = false
	for name, steps := range map[string][]notestest.Step{"reserve": reserved, "finalise": finalized} {
		t.Log(name, steps)
		at := -1
		for _, file := range []string{note.RelPath(), s.RelPath() + "/session.json"} {
			for _, part := range []string{"write", "sync", "rename", "dirsync", "ack"} {
				next := slices.IndexFunc(steps, func(s notestest.Step) bool { return s.Name == file && s.Part == part })
				is.True(next > at) // in this order
				at = next
			}
		}
		for _, step := range steps { // nothing is synced but these two files
			is.True(step.Part != "sync" || step.Name == note.RelPath() || path.Base(step.Name) == "session.json")
		}
	}
}

// A transaction does not read, parse or render what did not change.
func TestCommit_CostsTwoDurableWritesANote(t *testing.T) {
	is := is.New(t)
	fsys := &notestest.Counter{FS: notestest.NewDisk().View()}
	s := open(t, fsys, "me")
	reserve(t, s, "warm")
	fsys.Take()
	finalize(t, reserve(t, s, "scout"), notes.Outcome{Status: notes.Completed, Text: "done"})
	c := fsys.Take()
	is.Equal(c.Commits, 2)
	is.Equal(c.Synced, 4) // the note and the record, twice each
	is.Equal(c.Reads, 0)
}

// Somebody edits session.json without taking our lock.
func TestCommit_EditBetweenReadingAndWriting(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	note := reserve(t, s, "scout")
	name := s.RelPath() + "/session.json"
	edited := false
	d.Fault = func(step notestest.Step) error {
		if step.Name == name && step.Part == "rename" && !edited {
			edited = true
			d.Write(name, strings.Replace(d.Read(name), `"name": `, `"comment": "by hand", "name": `, 1))
		}
		return nil
	}
	finalize(t, note, notes.Outcome{Status: notes.Completed})
	is.True(strings.Contains(d.Read(name), `"comment": "by hand"`))
	is.True(strings.Contains(d.Read(name), `"status":"completed"`))
}

// A file system without the optional abilities will do.
func TestCommit_PlainFS(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	plain := struct{ notes.FS }{d.View()}
	note := reserve(t, open(t, plain, "me"), "scout")
	finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "done"})
	text, err := note.Text()
	is.NoErr(err)
	is.Equal(text, "done")
}
