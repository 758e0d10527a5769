package shepherd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/shepherd/shepherdtest"
)

func TestC13EveryPromptOfOneAgentIsAnnounced(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		a, hand := r.Start("scout")
		for i, end := range []func(){func() { hand.Finish("one") }, func() { hand.Finish("two") }, func() { hand.Fail("three") }} {
			p := r.Prompt(a, "x")
			r.Watch(p.ID)
			end()
			time.Sleep(time.Minute)
			told := r.Told.Completions()
			r.Equal(len(told), i+1)
			r.Equal(told[i].PromptID, p.ID)
			r.Equal(told[i].AgentID, a)
		}
		r.Equal(r.Told.Completions()[2].Status, shepherd.StatusFailed)
	})
}

func TestC29CancelledWaitLeavesWorkAndWatch(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		a, hand := r.Start("scout")
		p := r.Prompt(a, "x")
		r.Watch(p.ID)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { _, err := r.Wait(ctx, p.ID); errs <- err }()
		synctest.Wait()
		cancel()
		r.True(errors.Is(<-errs, context.Canceled))
		_, settled := r.Result(p.ID)
		r.True(!settled)
		r.Equal(hand.Closed(), 0)
		hand.Finish("undisturbed")
		time.Sleep(time.Minute)
		r.Equal(len(r.Told.Completions()), 1)
		r.Equal(r.WaitOne(p.ID).Text, "undisturbed")
	})
}

func TestC58OnlyPromptIDsOfThisParentCanBeWatched(t *testing.T) {
	bubble(t, func(t *testing.T, r rig) {
		other := shepherdtest.NewOn(t, r.Disk, shepherd.Config{Parent: shepherd.Parent("another parent")})
		b, _ := other.Start("scout")
		theirs := other.Prompt(b, "x")
		a, hand := r.Start("scout")
		old := r.Prompt(a, "x")
		hand.Finish("long ago")
		r.WaitOne(old.ID)
		r.NoErr(r.CloseAgent(t.Context(), a))
		for id, says := range map[shepherd.PromptID]string{
			theirs.ID:             "does not belong to this parent session",
			shepherd.PromptID(a):  "another kind (agent)",
			"w8:pY":               "malformed",
			"mem:1":               "malformed",
			" " + old.ID:          "malformed",
			"shepherd-watch-abcd": "another kind (watch)",
		} {
			_, err := r.Shepherd.Watch(t.Context(), old.ID, id)
			r.True(errors.Is(err, shepherd.ErrUnknownPrompt))
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q does not say %q", err, says)
			}
		}
		reg := r.Watch(old.ID, old.ID) // of an agent that was closed long ago
		r.Equal(len(reg.Completed), 1)
		r.Equal(reg.Completed[0].Text, "long ago")
	})
}

func TestC53WatchedPromptsLeaveNobodyAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig{shepherdtest.New(t, shepherd.Config{FS: aferofs.Memory()}), is.New(t)}
		a, hand := r.Start("scout")
		for range 200 {
			p := r.Prompt(a, "x")
			r.Watch(p.ID)
			hand.Finish("done")
			r.WaitOne(p.ID)
		}
		time.Sleep(time.Minute)
		r.Equal(len(r.Told.Completions()), 200)
		observed := r.Verify.Observed()
		time.Sleep(24 * time.Hour)
		r.Equal(r.Verify.Observed(), observed) // before any shutdown, nobody is awake
	})
}

func TestNotesOfADeadProcessAreListedAndSayThatNobodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, disk := is.New(t), notestest.NewDisk()
		dying := disk.View()
		parent := shepherd.Config{Parent: shepherd.Parent("the same"), FS: dying}
		before := shepherdtest.NewOn(t, disk, parent)
		a, _ := before.Start("scout")
		p := before.Prompt(a, "x")
		b, hand := before.Start("planner")
		q := before.Prompt(b, "x")
		hand.Finish("done in time")
		before.WaitOne(q.ID)
		dying.Kill()

		parent.FS = disk.View()
		after := shepherdtest.NewOn(t, disk, parent)
		session, err := after.Session(t.Context())
		is.NoErr(err)
		is.Equal(entries(t, disk, session.RelPath), map[string]string{"scout-01.md": "detached", "planner-01.md": "completed"})
		left, err := after.Unfinished(t.Context())
		is.NoErr(err)
		is.Equal(len(left), 1)
		is.Equal(left[0].PromptID, string(p.ID))
		is.Equal(left[0].AgentID, string(a))
		is.Equal(left[0].Pane, "mem:1")
		is.NoErr(left[0].Finalize(t.Context(), notes.Outcome{Status: notes.Interrupted, Error: "the agent is gone"}))
		is.Equal(shepherdtest.FrontMatter(disk.Read(p.NoteRelPath), "status"), "interrupted")
	})
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	is := is.New(t)
	whole := shepherd.Config{Herdr: &lifecycletest.Herdr{}, FS: aferofs.Memory(), Parent: shepherd.Parent("p")}
	_, err := shepherd.New(whole)
	is.NoErr(err) // nothing is watched: no notifier is needed
	for name, damage := range map[string]func(*shepherd.Config){
		"Herdr":                func(c *shepherd.Config) { c.Herdr = nil },
		"FS":                   func(c *shepherd.Config) { c.FS = nil },
		"Parent":               func(c *shepherd.Config) { c.Parent = nil },
		"Config.Herdr is nil":  func(c *shepherd.Config) { c.Herdr = (*lifecycletest.Herdr)(nil) },
		"PromptTimeout":        func(c *shepherd.Config) { c.PromptTimeout = -1 },
		"not an absolute path": func(c *shepherd.Config) { c.FS = aferofs.OS("relative") },
		"/no/such/project":     func(c *shepherd.Config) { c.FS = aferofs.OS("/no/such/project") },
	} {
		c := whole
		damage(&c)
		_, err := shepherd.New(c)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %q", err, name)
		}
	}
}

func TestShepherdInMemoryOfTheFileSystemAdapter(t *testing.T) {
	// What the README advises for a host's own test.
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		fs := aferofs.Memory()
		r := shepherdtest.New(t, shepherd.Config{FS: fs})
		a, hand := r.Start("scout")
		p := r.Prompt(a, "x")
		hand.Finish("kept in memory")
		r.WaitOne(p.ID)
		note, err := fs.ReadFile(p.NoteRelPath)
		is.NoErr(err)
		is.True(strings.Contains(string(note), "kept in memory"))
	})
}
