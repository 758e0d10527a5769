package notes_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// Ruling R14, the part of the notes: a dead process's notes are told from a living one's.
func TestUnfinished_OnlyWhatADeadProcessLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		d := notestest.NewDisk()
		dead, living := d.View(), d.View()
		one := open(t, dead, "me")
		_, err := one.ReserveAll(t.Context(), []notes.Plan{
			{Agent: "scout", Label: "a", Task: "look", PromptID: "prompt-1", AgentID: "agent-1", Pane: "w1:p1", Start: true},
			{Agent: "planner"},
			{Agent: "reviewer", Start: true},
		})
		is.NoErr(err)
		two := open(t, living, "me")
		reserve(t, two, "worker")

		left, err := two.Unfinished(t.Context())
		is.NoErr(err)
		is.Equal(len(left), 0) // both live
		dead.Kill()
		left, err = two.Unfinished(t.Context())
		is.NoErr(err)
		is.Equal(len(left), 3)
		first := left[0]
		is.Equal(first.Status, notes.Detached) // the truth: nobody is watching
		is.Equal([]string{first.Agent, first.Label, first.Task, first.PromptID, first.AgentID, first.Pane}, []string{"scout", "a", "look", "prompt-1", "agent-1", "w1:p1"})
		is.True(!first.Reserved.IsZero() && first.Started.Equal(first.Reserved))
		is.Equal(left[1].Status, notes.Pending) // nothing was submitted
		index := d.Read(two.RelPath() + "/shepherd.md")
		is.True(strings.Contains(index, "[Scout 01](./scout-01.md): detached, a"))
		is.True(strings.Contains(index, "[Worker 01](./worker-01.md): running"))

		is.NoErr(first.Adopt(t.Context()))
		is.NoErr(left[1].Finalize(t.Context(), notes.Outcome{Status: notes.Cancelled}))
		is.NoErr(left[2].Finalize(t.Context(), notes.Outcome{Status: notes.Interrupted, Error: "its process died"}))
		left, err = two.Unfinished(t.Context())
		is.NoErr(err)
		is.Equal(len(left), 0)

		three := open(t, d.View(), "me") // a third process sees that the second lives
		left, err = three.Unfinished(t.Context())
		is.NoErr(err)
		is.Equal(len(left), 0)
		living.Kill()
		left, err = three.Unfinished(t.Context())
		is.NoErr(err)
		is.Equal(len(left), 2)
	})
}

func TestUnfinished_TwoProcessesDoNotBothAdopt(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	dead := d.View()
	reserve(t, open(t, dead, "me"), "scout")
	dead.Kill()
	one, two := open(t, d.View(), "me"), open(t, d.View(), "me")
	a, err := one.Unfinished(t.Context())
	is.NoErr(err)
	b, err := two.Unfinished(t.Context())
	is.NoErr(err)
	is.NoErr(a[0].Adopt(t.Context()))
	is.True(errors.Is(b[0].Adopt(t.Context()), notes.ErrOwned))
}

// Ruling R13: the process closes, and says so in its notes.
func TestUnfinished_DetachedNotesOfAClosedSession(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	note := reserve(t, s, "scout")
	finalize(t, note, notes.Outcome{Status: notes.Detached})
	is.True(!strings.Contains(d.Read(note.RelPath()), "## Shepherd orchestration")) // nothing has ended
	pending, err := s.Reserve(t.Context(), notes.Plan{Agent: "planner"})
	is.NoErr(err)
	finalize(t, pending, notes.Outcome{Status: notes.Detached}) // it has not been handed to anybody
	left, err := open(t, d.View(), "me").Unfinished(t.Context())
	is.NoErr(err)
	is.Equal(len(left), 1) // though the process lives on
	is.NoErr(s.Close())
	is.NoErr(s.Close())
	left, err = open(t, d.View(), "me").Unfinished(t.Context())
	is.NoErr(err)
	is.Equal(len(left), 2)
	is.Equal(left[1].Status, notes.Pending)
	finalize(t, left[0].Note, notes.Outcome{Status: notes.Completed, Text: "it had finished"})
	text, err := note.Text()
	is.NoErr(err)
	is.Equal(text, "it had finished")
}

// The process dies between the note and its entry: the note's word counts.
func TestUnfinished_EndingThatWasNotIndexed(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	dying := d.View()
	s := open(t, dying, "me")
	note := reserve(t, s, "scout")
	d.Fault = func(step notestest.Step) error {
		if step.Name == s.RelPath()+"/session.json" && step.Part == "temp" {
			return notestest.ErrKill
		}
		return nil
	}
	at := time.Date(2025, 8, 14, 9, 30, 0, 0, time.UTC)
	err := note.Finalize(t.Context(), notes.Outcome{Status: notes.Failed, Text: "the word", Error: "provider: \"401\"\nno", ReturnCode: 7, At: at, Inferred: true})
	is.True(errors.Is(err, notestest.ErrKilled))
	d.Fault = nil
	next := open(t, d.View(), "me")
	left, err := next.Unfinished(t.Context())
	is.NoErr(err)
	is.Equal(len(left), 0)
	v := view(t, d.View(), note)
	is.Equal(v.Status, notes.Failed)
	is.Equal(v.Text, "the word")
	is.Equal(v.Error, "provider: \"401\"\nno")
	is.Equal(*v.ReturnCode, 7)
	is.True(v.Completed.Equal(at))
	is.True(v.Inferred)
}
