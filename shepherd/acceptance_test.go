package shepherd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/shepherd/shepherdtest"
)

// rig is a Shepherd on in-memory everything, in a bubble.
type rig struct {
	*shepherdtest.Rig
	*is.I
}

func bubble(t *testing.T, f func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, rig{shepherdtest.New(t, shepherd.Config{}), is.New(t)})
	})
}

const sessions = ".shepherd/sessions/"

// directories are the numbered session directories on a disk.
func directories(d *notestest.Disk) []string {
	var dirs []string
	for _, name := range d.Names(".shepherd/sessions") {
		rest := strings.TrimPrefix(name, sessions)
		if dir, file, ok := strings.Cut(rest, "/"); ok && file == "session.json" {
			dirs = append(dirs, sessions+dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// noteFiles are the notes in a session's directory.
func noteFiles(d *notestest.Disk, dir string) []string {
	var files []string
	for _, name := range d.Names(dir) {
		if base := path.Base(name); strings.HasSuffix(base, ".md") && base != "shepherd.md" {
			files = append(files, base)
		}
	}
	slices.Sort(files)
	return files
}

// entries are the statuses of the notes in session.json, by file name.
func entries(t *testing.T, d *notestest.Disk, dir string) map[string]string {
	t.Helper()
	var record struct {
		NoteSessionVersion int
		Notes              []struct{ File, Status string }
	}
	if err := json.Unmarshal([]byte(d.Read(dir+"/session.json")), &record); err != nil {
		t.Fatalf("session.json: %v\n%s", err, d.Read(dir+"/session.json"))
	}
	got := map[string]string{}
	for _, n := range record.Notes {
		got[n.File] = n.Status
	}
	return got
}

// TestWatcherSpec has the list in the watcher spec's Verification requirements.
func TestWatcherSpec(t *testing.T) {
	t.Run("single and array watchers", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			p := r.Prompt(a, "look around")
			single := r.Watch(p.ID)
			array := r.Watch(p.ID)
			r.Equal(single.Pending, []shepherd.PromptID{p.ID})
			hand.Finish("found it")
			time.Sleep(time.Minute)
			told := map[shepherd.WatchID]shepherd.Completion{}
			for _, c := range r.Told.Completions() {
				told[c.WatcherID] = c
			}
			for _, reg := range []shepherd.Registration{single, array} {
				c := told[reg.WatcherID]
				r.Equal(c.PromptID, p.ID)
				r.Equal(c.AgentID, a)
				r.Equal(c.Agent, "scout")
				r.Equal(c.Status, shepherd.StatusDone)
				r.True(c.OK())
				r.Equal(c.ReturnCode, 0)
				r.Equal(c.Text, "found it")
				r.Equal(c.NotePath, p.NotePath)
			}
		})
	})
	t.Run("fast completions", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			p := r.Prompt(a, "look around")
			hand.Finish("fast")
			synctest.Wait()
			reg := r.Watch(p.ID)
			r.Equal(len(reg.Pending), 0)
			r.Equal(reg.Completed[0].Text, "fast")
			time.Sleep(time.Minute)
			r.Equal(r.Told.Offers(), 0)
		})
	})
	t.Run("notification queuing", func(t *testing.T) {
		// Several settle while the parent takes its time: each is told, none twice.
		bubble(t, func(t *testing.T, r rig) {
			r.Told.Before = func(context.Context, int, shepherd.Notification) error { time.Sleep(5 * time.Second); return nil }
			var ids []shepherd.PromptID
			for i := range 6 {
				a, hand := r.Start(fmt.Sprint("agent", i))
				p := r.Prompt(a, "x")
				ids = append(ids, p.ID)
				go func() { time.Sleep(time.Duration(i+1) * time.Second); hand.Finish("done") }()
			}
			r.Watch(ids...)
			time.Sleep(time.Hour)
			var told []shepherd.PromptID
			for _, c := range r.Told.Completions() {
				told = append(told, c.PromptID)
			}
			r.Equal(told, ids) // once each; they settled in this order
		})
	})
	t.Run("completion ordering", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			one, handOne := r.Start("one")
			two, handTwo := r.Start("two")
			p, q := r.Prompt(one, "x"), r.Prompt(two, "x")
			r.Watch(p.ID, q.ID)
			handTwo.Finish("first to settle")
			handOne.Finish("first in the list")
			time.Sleep(time.Minute)
			r.Equal(len(r.Told.Taken()), 1) // coalesced
			r.Equal(r.Told.Completions()[0].PromptID, p.ID)
		})
	})
	t.Run("failure states", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			for _, test := range []struct {
				end    func(id shepherd.AgentID, p shepherd.PromptID)
				status shepherd.Status
				code   int
			}{
				{func(id shepherd.AgentID, _ shepherd.PromptID) { r.Herdr.Agent(id).Fail("401") }, shepherd.StatusFailed, 1},
				{func(id shepherd.AgentID, _ shepherd.PromptID) { r.Herdr.Agent(id).Block() }, shepherd.StatusBlocked, 2},
				{func(_ shepherd.AgentID, p shepherd.PromptID) {
					_, err := r.WaitFor(t.Context(), shepherd.WaitOptions{Timeout: time.Second}, p)
					r.NoErr(err)
				}, shepherd.StatusTimeout, 124},
				{func(id shepherd.AgentID, _ shepherd.PromptID) { r.NoErr(r.CloseAgent(t.Context(), id)) }, shepherd.StatusCancelled, 130},
				{func(id shepherd.AgentID, _ shepherd.PromptID) { r.Herdr.Agent(id).Exit("exit status 1") }, shepherd.StatusFailed, 1},
			} {
				a, _ := r.Start("agent")
				p := r.Prompt(a, "x")
				reg := r.Watch(p.ID)
				test.end(a, p.ID)
				time.Sleep(time.Minute)
				all := r.Told.Completions()
				c := all[len(all)-1]
				r.Equal(c.WatcherID, reg.WatcherID)
				r.Equal(c.Status, test.status)
				r.Equal(c.ReturnCode, test.code)
				r.True(!c.OK())
				r.True(c.Error != "")
			}
		})
	})
	t.Run("duplicate observation", func(t *testing.T) {
		// C07: two watchers, a wait and a late watcher see one result.
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			p := r.Prompt(a, "x")
			w1, w2 := r.Watch(p.ID), r.Watch(p.ID)
			waited := make(chan shepherd.Result)
			go func() { waited <- r.WaitOne(p.ID) }()
			synctest.Wait()
			hand.Finish("once")
			got := <-waited
			time.Sleep(time.Minute)
			w3 := r.Watch(p.ID)
			times := map[shepherd.WatchID]int{}
			for _, c := range append(r.Told.Completions(), w3.Completed...) {
				times[c.WatcherID]++
				r.True(c.Waited) // a parent can see that it has it already
				c.Waited = got.Waited
				r.Equal(c.Result, got)
			}
			r.Equal(times, map[shepherd.WatchID]int{w1.WatcherID: 1, w2.WatcherID: 1, w3.WatcherID: 1})
		})
	})
	t.Run("parent session cleanup", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			p := r.Prompt(a, "x")
			r.Watch(p.ID)
			r.NoErr(r.Close(t.Context()))
			hand.Finish("nobody is told")
			time.Sleep(time.Hour)
			r.Equal(r.Told.Offers(), 0)
			r.Equal(r.NoteStatus(p), "running") // the child's file is left alone,
			r.Equal(entries(t, r.Disk, p.SessionRelative)[path.Base(p.NotePath)], "detached")
			r.Equal(hand.Closed(), 0) // and so is the child
		}) // the bubble fails if a goroutine or a timer's waiter is left
	})
}

// TestNoteSessionSpec has the note-session spec's Verification plan.
func TestNoteSessionSpec(t *testing.T) {
	t.Run("1 shared folder regression", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			scout, _ := r.Start("scout")
			p := r.Prompt(scout, "x")
			planner, _ := r.Start("planner")
			q := r.Prompt(planner, "x")
			r.Equal(p.SessionPath, q.SessionPath)
			r.Equal(path.Dir(p.NotePath), p.SessionPath)
			r.Equal(directories(r.Disk), []string{p.SessionRelative})
			r.Equal(noteFiles(r.Disk, p.SessionRelative), []string{"planner-01.md", "scout-01.md"})
			index := r.Disk.Read(p.SessionRelative + "/shepherd.md")
			r.True(strings.Contains(index, "scout-01.md") && strings.Contains(index, "planner-01.md"))
		})
	})
	t.Run("2 repeated calls", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			scout, hand := r.Start("scout")
			var paths []string
			for range 3 {
				p := r.Prompt(scout, "x")
				hand.Finish("done")
				r.WaitOne(p.ID)
				paths = append(paths, path.Base(p.NotePath))
			}
			r.Equal(paths, []string{"scout-01.md", "scout-02.md", "scout-03.md"})
			r.Equal(len(directories(r.Disk)), 1)
		})
	})
	t.Run("3 parallel fan-out", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			var orders []shepherd.Order
			for i := range 5 {
				a, _ := r.Start(fmt.Sprint("agent", i))
				orders = append(orders, shepherd.Order{Agent: a, Text: "x"})
			}
			reserved := make(chan int, 5)
			r.Herdr.OnSubmit = func(a *lifecycletest.Agent, s lifecycle.Submission) error {
				reserved <- len(noteFiles(r.Disk, directories(r.Disk)[0]))
				return a.Begin(s)
			}
			prompts, err := r.PromptAll(t.Context(), orders...)
			r.NoErr(err)
			for range 5 {
				r.Equal(<-reserved, 5) // all five, before the first submission
			}
			for _, a := range r.Herdr.Agents() {
				go a.Finish("done")
			}
			var ids []shepherd.PromptID
			for _, p := range prompts {
				ids = append(ids, p.ID)
			}
			_, err = r.Wait(t.Context(), ids...)
			r.NoErr(err)
			dir := directories(r.Disk)[0]
			for file, status := range entries(t, r.Disk, dir) {
				r.Equal(status, "completed")
				r.Equal(shepherdtest.FrontMatter(r.Disk.Read(dir+"/"+file), "status"), "completed")
			}
			r.Equal(len(entries(t, r.Disk, dir)), 5) // no metadata lost
		})
	})
	t.Run("4 different parent sessions", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			is, disk := is.New(t), notestest.NewDisk()
			one := shepherdtest.NewOn(t, disk, shepherd.Config{Parent: shepherd.Parent("one"), SessionName: "same task"})
			two := shepherdtest.NewOn(t, disk, shepherd.Config{Parent: shepherd.Parent("two"), SessionName: "same task"})
			a, _ := one.Start("scout")
			b, _ := two.Start("scout")
			is.True(one.Prompt(a, "x").SessionPath != two.Prompt(b, "x").SessionPath)
			is.Equal(len(directories(disk)), 2)
		})
	})
	t.Run("5 resume after restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			is, disk := is.New(t), notestest.NewDisk()
			parent := shepherd.Config{Parent: shepherd.Parent("the same")}
			before := shepherdtest.NewOn(t, disk, parent)
			a, hand := before.Start("scout")
			p := before.Prompt(a, "x")
			hand.Finish("done")
			before.WaitOne(p.ID)
			is.NoErr(before.Close(t.Context()))

			after := shepherdtest.NewOn(t, disk, parent)
			b, _ := after.Start("scout")
			q := after.Prompt(b, "x")
			is.Equal(q.SessionPath, p.SessionPath)
			is.Equal(path.Base(q.NotePath), "scout-02.md")
			is.Equal(len(directories(disk)), 1)
		})
	})
	t.Run("6 project isolation", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			is, here, there := is.New(t), notestest.NewDisk(), notestest.NewDisk()
			there.Root = "/elsewhere"
			parent := shepherd.Config{Parent: shepherd.Parent("the same")}
			one, two := shepherdtest.NewOn(t, here, parent), shepherdtest.NewOn(t, there, parent)
			a, _ := one.Start("scout")
			b, _ := two.Start("scout")
			is.True(one.Prompt(a, "x").SessionPath != two.Prompt(b, "x").SessionPath)
			is.Equal(len(directories(here)), 1)
			is.Equal(len(directories(there)), 1)
		})
	})
	t.Run("7 lifecycle separation", func(t *testing.T) {
		// The scope in the ids is new with every Shepherd; the directory is not.
		synctest.Test(t, func(t *testing.T) {
			is, disk := is.New(t), notestest.NewDisk()
			parent := shepherd.Config{Parent: shepherd.Parent("the same")}
			one, two := shepherdtest.NewOn(t, disk, parent), shepherdtest.NewOn(t, disk, parent)
			a, _ := one.Start("scout")
			b, _ := two.Start("scout")
			is.True(scope(a) != scope(b))
			p, q := one.Prompt(a, "x"), two.Prompt(b, "x")
			is.Equal(p.SessionPath, q.SessionPath)
			is.True(!strings.Contains(disk.Read(p.SessionRelative+"/session.json"), `"`+scope(a)))
		})
	})
	t.Run("8 bare start", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, _ := r.Start("scout")
			dirs := directories(r.Disk)
			r.Equal(len(dirs), 1) // bound
			r.Equal(len(noteFiles(r.Disk, dirs[0])), 0)
			r.Start("idle for ever")
			p := r.Prompt(a, "x")
			r.Equal(directories(r.Disk), dirs)
			r.Equal(p.SessionRelative, dirs[0])
		})
	})
	t.Run("9 failure paths", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			want := map[string]string{}
			run := func(name, status string, end func(id shepherd.AgentID, p shepherd.Prompt)) {
				a, _ := r.Start(name)
				p := r.Prompt(a, "x")
				end(a, p)
				r.WaitOne(p.ID)
				want[path.Base(p.NotePath)] = status
			}
			run("fails", "failed", func(id shepherd.AgentID, _ shepherd.Prompt) { r.Herdr.Agent(id).Fail("401") })
			run("times-out", "timed-out", func(_ shepherd.AgentID, p shepherd.Prompt) {
				_, err := r.WaitFor(t.Context(), shepherd.WaitOptions{Timeout: time.Second}, p.ID)
				r.NoErr(err)
			})
			run("aborted", "cancelled", func(id shepherd.AgentID, _ shepherd.Prompt) { r.Herdr.Agent(id).Abort() })
			run("closed", "cancelled", func(id shepherd.AgentID, _ shepherd.Prompt) { r.NoErr(r.CloseAgent(t.Context(), id)) })
			run("blocked", "blocked", func(id shepherd.AgentID, _ shepherd.Prompt) { r.Herdr.Agent(id).Block() })

			r.Herdr.OnLaunch = func(shepherd.Spec) error { return errors.New("no such program") }
			_, err := r.Shepherd.Start(t.Context(), shepherd.Spec{Name: "never started"})
			r.True(err != nil)
			r.Herdr.OnLaunch = nil
			r.Herdr.OnSubmit = func(*lifecycletest.Agent, lifecycle.Submission) error { return errors.New("refused") }
			refused, _ := r.Start("refused")
			p, err := r.Shepherd.Prompt(t.Context(), refused, "x")
			r.True(err != nil)
			want[path.Base(p.NotePath)] = "failed"

			dir := directories(r.Disk)
			r.Equal(len(dir), 1)
			r.Equal(entries(t, r.Disk, dir[0]), want)
			index := r.Disk.Read(dir[0] + "/shepherd.md")
			for file, status := range want {
				r.Equal(shepherdtest.FrontMatter(r.Disk.Read(dir[0]+"/"+file), "status"), status)
				r.True(strings.Contains(index, file))
			}
		})
	})
	t.Run("10 security and concurrency", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			var files []string
			for _, name := range []string{"../../etc/passwd", "..", "a/b", "A B", "a b", "a-b", "日本", "🐑"} {
				a, _ := r.Start(name)
				p := r.Prompt(a, "x")
				r.Equal(path.Dir(p.NotePath), p.SessionPath) // a descendant, whatever it is called
				files = append(files, path.Base(p.NotePath))
			}
			slices.Sort(files)
			r.Equal(len(slices.Compact(files)), 8) // no two names meet
			for _, name := range r.Disk.Names(".") {
				r.True(strings.HasPrefix(name, ".shepherd/"))
			}
		})
	})
	t.Run("11 child context", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			texts := map[string]bool{}
			for _, name := range []string{"scout", "planner"} {
				a, hand := r.Start(name)
				p := r.Prompt(a, "  the task, byte for byte\r\n")
				got := hand.Prompts()[0].Text
				r.True(strings.HasPrefix(got, "  the task, byte for byte\r\n")) // appended, not replaced
				want := fmt.Sprintf(`Shepherd note session context:
- Session directory: %[1]s
- Session fieldnotes: %[1]s/shepherd.md
- Your note: %[2]s
- Relative note: %[3]s

Read the fieldnotes first. Write detailed findings to your assigned note when
appropriate. Do not edit shepherd.md or another agent's note.`, p.SessionPath, p.NotePath, p.NoteRelPath)
				if !strings.Contains(got, want) {
					t.Errorf("the child got\n%s\nwant\n%s", got, want)
				}
				texts[p.NotePath] = true
			}
			r.Equal(len(texts), 2)
		})
	})
	t.Run("12 legacy data", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			is, disk := is.New(t), notestest.NewDisk()
			legacy := `{"sessionName":"fix oauth","slug":"fix-oauth","startedAt":"2025-01-02T03:04:05.000Z"}`
			view := disk.View()
			is.NoErr(view.MkdirAll(".shepherd/sessions/0003-fix-oauth"))
			disk.Write(".shepherd/sessions/0003-fix-oauth/session.json", legacy)
			r := shepherdtest.NewOn(t, disk, shepherd.Config{SessionName: "fix oauth"})
			a, _ := r.Start("scout")
			p := r.Prompt(a, "x")
			is.True(!strings.Contains(p.SessionPath, "0003-"))
			is.Equal(disk.Read(".shepherd/sessions/0003-fix-oauth/session.json"), legacy)
		})
	})
	t.Run("primary assertion", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			const n = 5
			a, hand := r.Start("scout")
			b, hand2 := r.Start("worker")
			for i := range n {
				id, h := a, hand
				if i%2 == 1 {
					id, h = b, hand2
				}
				p := r.Prompt(id, "x")
				h.Finish("done")
				r.WaitOne(p.ID)
			}
			dirs := directories(r.Disk)
			r.Equal(len(dirs), 1)
			files := noteFiles(r.Disk, dirs[0])
			r.Equal(len(files), n)
			index := r.Disk.Read(dirs[0] + "/shepherd.md")
			for _, f := range files {
				r.True(strings.Contains(index, "("+"./"+f+")") || strings.Contains(index, "("+f+")"))
			}
		})
	})
}

func scope(id shepherd.AgentID) string {
	return strings.TrimPrefix(string(id), "shepherd-agent-")[:8]
}

func TestC43UnwritableProjectStopsBeforeAnythingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		r := shepherdtest.New(t, shepherd.Config{})
		readOnly := true
		r.Disk.Fault = func(s notestest.Step) error {
			if readOnly && s.Op != "read" && s.Op != "readdir" && s.Op != "stamp" {
				return syscall.EROFS
			}
			return nil
		}
		_, err := r.Shepherd.Start(t.Context(), shepherd.Spec{Name: "scout"})
		is.True(errors.Is(err, syscall.EROFS))
		is.True(strings.Contains(err.Error(), ".shepherd")) // names the path
		is.Equal(len(r.Herdr.Agents()), 0)
		readOnly = false
		a, hand := r.Start("scout") // the failed try is not remembered
		readOnly = true
		_, err = r.Shepherd.Prompt(t.Context(), a, "x")
		is.True(errors.Is(err, syscall.EROFS))
		is.Equal(len(hand.Prompts()), 0)
		readOnly = false
		r.Prompt(a, "x") // the slot is free
	})
}

func TestC43FullDiskAtFinaliseIsAttachedToTheResult(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		a, hand := r.Start("scout")
		p := r.Prompt(a, "x")
		r.Watch(p.ID)
		r.Disk.Fault = func(s notestest.Step) error {
			if s.Part == "write" {
				return syscall.ENOSPC
			}
			return nil
		}
		hand.Finish("the text")
		got := r.WaitOne(p.ID)
		r.Equal(got.Text, "the text")
		r.True(errors.Is(got.NoteErr, syscall.ENOSPC))
		time.Sleep(time.Minute)
		r.True(errors.Is(r.Told.Completions()[0].NoteErr, syscall.ENOSPC))
		r.Equal(r.NoteStatus(p), "running") // intact
	})
}

func TestR19RemovedSessionIsReportedAndNotReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		a, hand := r.Start("scout")
		p := r.Prompt(a, "x")
		r.Disk.Remove(p.SessionRelative)
		hand.Finish("the text")
		got := r.WaitOne(p.ID)
		r.True(errors.Is(got.NoteErr, notes.ErrSessionGone))
		_, err := r.Shepherd.Prompt(t.Context(), a, "again")
		r.True(errors.Is(err, shepherd.ErrSessionGone))
		r.Equal(len(directories(r.Disk)), 0)
	})
}

func TestHungDiskLeavesNothingStuck(t *testing.T) {
	t.Run("in the reservation", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			free := make(chan struct{})
			r.Disk.Fault = func(s notestest.Step) error { <-free; return nil }
			began := time.Now()
			_, err := r.Shepherd.Prompt(t.Context(), a, "x")
			r.True(strings.Contains(err.Error(), "the disk does not answer"))
			r.Equal(time.Since(began), 10*time.Second)
			r.Equal(len(hand.Prompts()), 0)
			close(free)
			synctest.Wait()
			dir := directories(r.Disk)[0]
			for _, status := range entries(t, r.Disk, dir) {
				r.Equal(status, "cancelled") // what was reserved all the same says so
			}
			r.Prompt(a, "x")
		})
	})
	t.Run("in the reservation, and the agent is closed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			free := make(chan struct{})
			r.Disk.Fault = func(s notestest.Step) error { <-free; return nil }
			errs := make(chan error)
			go func() { _, err := r.Shepherd.Prompt(t.Context(), a, "x"); errs <- err }()
			synctest.Wait()
			began := time.Now()
			r.NoErr(r.CloseAgent(t.Context(), a))
			r.True(errors.Is(<-errs, shepherd.ErrAgentClosed))
			r.Equal(time.Since(began), time.Duration(0))
			r.Equal(len(hand.Prompts()), 0)
			close(free)
		})
	})
	t.Run("in the finalisation", func(t *testing.T) {
		bubble(t, func(t *testing.T, r rig) {
			a, hand := r.Start("scout")
			p := r.Prompt(a, "x")
			r.Watch(p.ID)
			free := make(chan struct{})
			r.Disk.Fault = func(s notestest.Step) error {
				if s.Part != "" { // of a write
					<-free
				}
				return nil
			}
			began := time.Now()
			hand.Finish("the text")
			got := r.WaitOne(p.ID)
			r.Equal(time.Since(began), 10*time.Second) // by so much, and no more
			r.Equal(got.Status, shepherd.StatusDone)
			r.True(got.NoteErr != nil)
			close(free)
			time.Sleep(time.Minute)
			r.Equal(r.NoteStatus(p), "completed") // the disk came back
		})
	})
}

func TestHungNotifierHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		free := make(chan struct{})
		r.Told.Before = func(context.Context, int, shepherd.Notification) error { <-free; return nil }
		a, hand := r.Start("scout")
		p := r.Prompt(a, "x")
		r.Watch(p.ID)
		hand.Finish("the text")
		began := time.Now()
		r.Equal(r.WaitOne(p.ID).Text, "the text")
		r.Equal(r.NoteStatus(p), "completed")
		r.NoErr(r.CloseAgent(t.Context(), a))
		r.Equal(time.Since(began), time.Duration(0))
		time.Sleep(time.Hour)
		r.Equal(len(r.Undelivered()), 1)
		r.True(r.Undelivered()[0].Unknown)
		close(free)
	})
}

func TestChildElsewhereKeepsItsNoteInTheParentsRoot(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		id, err := r.Shepherd.Start(t.Context(), shepherd.Spec{Name: "scout", Dir: "/another/project"})
		r.NoErr(err)
		p := r.Prompt(id, "x")
		r.True(strings.HasPrefix(p.NotePath, r.Disk.Root+"/"))
		r.Equal(r.Herdr.Agent(id).Spec.Dir, "/another/project")
	})
}

func TestFanOutIsAllOrNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		a, handA := r.Start("a")
		b, handB := r.Start("b")
		handB.Human()
		_, err := r.PromptAll(t.Context(), shepherd.Order{Agent: a, Text: "x"}, shepherd.Order{Agent: b, Text: "x"})
		r.True(errors.Is(err, shepherd.ErrAgentBusy))
		_, err = r.PromptAll(t.Context(), shepherd.Order{Agent: a, Text: "x"}, shepherd.Order{Agent: a, Text: "y"})
		r.True(errors.Is(err, shepherd.ErrAgentBusy)) // one at a time
		r.Equal(len(handA.Prompts()), 0)
		r.Equal(len(noteFiles(r.Disk, directories(r.Disk)[0])), 0)
		r.Prompt(a, "x") // its slot was given back
	})
}

func TestEmptyMessageReservesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		a, _ := r.Start("scout")
		for _, text := range []string{"", " \n", "\xff"} {
			_, err := r.Shepherd.Prompt(t.Context(), a, text)
			r.True(errors.Is(err, shepherd.ErrInvalid))
		}
		_, err := r.PromptAll(t.Context())
		r.True(errors.Is(err, shepherd.ErrInvalid))
		_, err = r.Shepherd.Prompt(t.Context(), "w8:pY", "x")
		r.True(errors.Is(err, shepherd.ErrUnknownAgent))
		r.Equal(len(noteFiles(r.Disk, directories(r.Disk)[0])), 0)
	})
}
