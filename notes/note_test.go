package notes_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// hostile is text of every kind that could break something around it.
var hostile = []string{
	"",
	"plain",
	"no final newline",
	"a final newline\n",
	"\n\nblank lines around\n\n",
	"CRLF\r\nlines\r\n",
	"\ufeffwith a BOM",
	"---\ntitle: mine\n---\nfront matter of its own",
	"---\nnoteSessionVersion: 2\nsession: 0001-x\nagent: scout\nordinal: 1\n---\nimitates ours",
	"---\nwithout an end",
	"```go\nan open fence",
	"<!-- an open comment",
	"a rule\n\n---\n\nand more\n***\n",
	"\n\n<!-- shepherd:orchestration 0123456789abcdef status=completed code=0 at=2025-08-14T09:30:00.000Z text=3 -->\n## Shepherd orchestration\n\n<!-- shepherd:text 0123456789abcdef -->\nabc\n<!-- shepherd:end 0123456789abcdef -->\n<!-- shepherd:close 0123456789abcdef -->\n",
	"## Shepherd orchestration\n\n### Final output\n",
	"]]> &amp; \\ ` * _ {{ }} $x$ \x00\x01\x1b[31m",
	"日本語 🐑 e\u0301 \u202e\u2028\u2029\u0085",
	strings.Repeat("long ", 40_000),
}

// Whatever the child writes and whatever it says, both are kept byte for byte.
func TestNote_ChildContentAndFinalTextAreExact(t *testing.T) {
	for i, content := range hostile {
		for j, text := range hostile {
			d := notestest.NewDisk()
			note := reserve(t, open(t, d.View(), "me"), "scout")
			d.Append(note.RelPath(), content)
			body := view(t, d.View(), note).Body
			finalize(t, note, notes.Outcome{Status: notes.TimedOut, Text: text})
			if err := note.Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: text + "!"}); err != nil {
				t.Fatal(err)
			}
			v := view(t, d.View(), note)
			got, err := note.Text()
			late, lateErr := note.LateText()
			if err != nil || lateErr != nil || got != text || late != text+"!" || v.Text != text || v.LateText != text+"!" {
				t.Errorf("content %d, text %d: got %.60q and %.60q, %v, %v", i, j, got, late, err, lateErr)
			}
			if v.Body != body || !strings.HasSuffix(v.Body, content) {
				t.Errorf("content %d, text %d: the body is\n%.200q\nwant\n%.200q", i, j, v.Body, body)
			}
		}
	}
}

func TestNote_ChildRewritesTheWholeFile(t *testing.T) {
	for i, content := range hostile {
		d := notestest.NewDisk()
		note := reserve(t, open(t, d.View(), "me"), "scout")
		d.Write(note.RelPath(), content)
		finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "done"})
		v := view(t, d.View(), note)
		if v.Body != content || v.Text != "done" || frontMatter(t, v.Raw)["status"] != "completed" {
			t.Errorf("content %d: body %.200q, text %q", i, v.Body, v.Text)
		}
	}
}

// The child edits our front matter: what it added is kept, what is ours is ours.
func TestNote_ChildEditsTheFrontMatter(t *testing.T) {
	edits := map[string]struct {
		edit func(string) string
		kept string // at the beginning of the body
	}{
		"status":        {func(s string) string { return strings.Replace(s, "status: running", "status: done!", 1) }, ""},
		"line added":    {func(s string) string { return strings.Replace(s, "status:", "title: Mine\nstatus:", 1) }, "title: Mine\n"},
		"list added":    {func(s string) string { return strings.Replace(s, "mode:", "tags:\n  - a\n  - b\nmode:", 1) }, "tags:\n  - a\n  - b\n"},
		"line removed":  {func(s string) string { return strings.Replace(s, "mode: lifecycle\n", "", 1) }, ""},
		"CRLF":          {func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, "\r\n"},
		"BOM":           {func(s string) string { return "\ufeff" + s }, "\ufeff\n"},
		"quoted agent":  {func(s string) string { return strings.Replace(s, "agent: scout", `agent: "scout"`, 1) }, ""},
		"another agent": {func(s string) string { return strings.Replace(s, "agent: scout", "agent: other", 1) }, "---\nnoteSessionVersion: 2\n"},
		"broken YAML":   {func(s string) string { return strings.Replace(s, "mode:", "a: [b\n\t}\nmode:", 1) }, "a: [b\n\t}\n"},
		"fence removed": {func(s string) string { return strings.Replace(s, "\n---\n", "\n", 1) }, "---\nnoteSessionVersion: 2\n"},
	}
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			d := notestest.NewDisk()
			note := reserve(t, open(t, d.View(), "me"), "scout")
			d.Write(note.RelPath(), c.edit(d.Read(note.RelPath()))+"report")
			finalize(t, note, notes.Outcome{Status: notes.Completed})
			v := view(t, d.View(), note)
			is.True(strings.HasPrefix(v.Body, c.kept))
			is.True(strings.HasSuffix(v.Body, "report"))
			front := frontMatter(t, v.Raw)
			is.Equal(front["status"], "completed")
			is.Equal(front["agent"], "scout")
			is.Equal(front["mode"], "lifecycle")
		})
	}
}

// C28: finalising destroys what the child wrote.
func TestC28_FinalisingKeepsTheReportAndIsDoneOnce(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	note := reserve(t, open(t, d.View(), "me"), "scout")
	report := strings.Repeat("A finding.\n", 200)
	d.Append(note.RelPath(), report)
	finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "done, see file"})
	first := everything(d, ".shepherd")
	is.True(strings.Contains(d.Read(note.RelPath()), report))
	is.Equal(strings.Count(d.Read(note.RelPath()), "## Shepherd orchestration"), 1)
	finalize(t, note, notes.Outcome{Status: notes.Cancelled, Text: "Warning: cancelled"})
	finalize(t, note, notes.Outcome{Status: notes.Detached})
	is.NoErr(note.Start(t.Context(), "w9:p9"))
	is.NoErr(note.Adopt(t.Context()))
	is.NoErr(note.Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: "late"}))
	is.Equal(everything(d, ".shepherd"), first) // nothing changed, by any of these
}

// The child writes at the same moment as we finalise: between our reading and our renaming.
func TestNote_ChildWritesWhileWeFinalise(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	note := reserve(t, open(t, d.View(), "me"), "scout")
	writes := 0
	d.Fault = func(s notestest.Step) error {
		if s.Name == note.RelPath() && s.Part == "rename" && writes < 3 {
			writes++
			d.Append(note.RelPath(), fmt.Sprintf("write %d\n", writes))
		}
		return nil
	}
	finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "done"})
	v := view(t, d.View(), note)
	is.True(strings.HasSuffix(v.Body, "write 1\nwrite 2\nwrite 3\n"))
	is.Equal(v.Text, "done")
	is.Equal(strings.Count(v.Raw, "## Shepherd orchestration"), 1)
}

func TestNote_ChildWritesAfterwards(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	note := reserve(t, open(t, d.View(), "me"), "scout")
	finalize(t, note, notes.Outcome{Status: notes.Blocked, Text: "half"})
	d.Append(note.RelPath(), "\nthe child went on\n")
	is.NoErr(note.Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: "whole"}))
	v := view(t, d.View(), note)
	is.True(strings.HasSuffix(v.Body, "\nthe child went on\n"))
	is.Equal(v.Text, "half")
	is.Equal(v.LateText, "whole")
	is.Equal(v.Status, notes.Blocked)
	is.Equal(v.Late, notes.Completed)
	is.Equal(frontMatter(t, v.Raw)["lateStatus"], "completed")
}

func TestNote_ChildRemovesItsFile(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	note := reserve(t, open(t, d.View(), "me"), "scout")
	d.Remove(note.RelPath())
	finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "done"})
	text, err := note.Text()
	is.NoErr(err)
	is.Equal(text, "done")
	is.Equal(frontMatter(t, d.Read(note.RelPath()))["status"], "completed")
}

func TestNote_EditedOutputIsSaid(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	note := reserve(t, open(t, d.View(), "me"), "scout")
	finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "a typpo"})
	d.Write(note.RelPath(), strings.Replace(d.Read(note.RelPath()), "typpo", "typo", 1))
	_, err := note.Text()
	is.True(errors.Is(err, notes.ErrEdited))
	v := view(t, d.View(), note)
	is.True(v.Edited)
	is.True(strings.Contains(v.Raw, "a typo"))
}

// Ruling R12.
func TestLate_OnceAndOnlyAfterAnEndingThatWasNone(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	open := reserve(t, s, "scout")
	is.True(errors.Is(open.Late(t.Context(), notes.Outcome{Status: notes.Completed}), notes.ErrInvalid))
	finalize(t, open, notes.Outcome{Status: notes.TimedOut, Error: "no answer within 1h"})
	is.NoErr(open.Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: "first"}))
	before := everything(d, ".shepherd")
	is.NoErr(open.Late(t.Context(), notes.Outcome{Status: notes.Failed, Text: "second"}))
	is.Equal(everything(d, ".shepherd"), before)
	is.True(strings.Contains(d.Read(s.RelPath()+"/shepherd.md"), "timed-out, late completed"))
	is.True(errors.Is(open.Late(t.Context(), notes.Outcome{Status: notes.Running}), notes.ErrInvalid))
}

// C43 c, ruling R19: the session directory is removed between reserve and finalise.
func TestC43_RemovedSessionIsReportedAndNotReplaced(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	note := reserve(t, s, "scout")
	d.Remove(s.RelPath())
	before := everything(d, ".")
	is.True(errors.Is(note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed}), notes.ErrSessionGone))
	_, err := s.Reserve(t.Context(), notes.Plan{Agent: "scout"})
	is.True(errors.Is(err, notes.ErrSessionGone))
	is.True(strings.Contains(err.Error(), s.RelPath()))
	is.Equal(everything(d, "."), before) // nothing was written anywhere
}

// C52 and point 6: a symlink where our file should be is refused, and nothing is written
// through it; the other jobs of the transaction are not harmed.
func TestC52_SymlinksAreRefused(t *testing.T) {
	components := map[string]string{
		"the note":         sessions + "0001-task/scout-01.md",
		"session.json":     sessions + "0001-task/session.json",
		"the session":      sessions + "0001-task",
		"the sessions":     ".shepherd/sessions",
		"the .shepherd":    ".shepherd",
		"the session lock": sessions + "0001-task/.lock",
	}
	for name, link := range components {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			d := notestest.NewDisk()
			d.Write("victim", "precious")
			s, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("me"), SessionName: "task"})
			is.NoErr(err)
			note, other := reserve(t, s, "scout"), reserve(t, s, "planner")
			d.Remove(link)
			d.Symlink("/project/victim", link)
			err = note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed, Text: "done"})
			is.True(err != nil)
			is.Equal(d.Read("victim"), "precious")
			if name == "the note" {
				finalize(t, other, notes.Outcome{Status: notes.Completed})
			}
		})
	}
}

// The note is written and its entry is not: finalising again finishes the job.
func TestFinalize_AgainAfterTheEntryFailed(t *testing.T) {
	for _, part := range []string{"temp", "write", "sync", "rename", "dirsync"} {
		t.Run(part, func(t *testing.T) {
			is := is.New(t)
			d := notestest.NewDisk()
			s := open(t, d.View(), "me")
			note := reserve(t, s, "scout")
			d.Fault = func(step notestest.Step) error {
				if path.Base(step.Name) == "session.json" && step.Part == part {
					return errors.New("bad sector")
				}
				return nil
			}
			is.True(note.Finalize(t.Context(), notes.Outcome{Status: notes.Failed, Text: "first", Error: "e", ReturnCode: 5}) != nil)
			d.Fault = nil
			finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "second"})
			is.True(strings.Contains(d.Read(s.RelPath()+"/shepherd.md"), "failed"))
			d.PowerCut()                 // what was acknowledged the second time is durable
			v := view(t, d.View(), note) // as the record says
			is.Equal(v.Status, notes.Failed)
			is.Equal(*v.ReturnCode, 5)
			is.Equal(v.Error, "e")
			is.Equal(v.Text, "first") // what was written first stands
			is.Equal(strings.Count(v.Raw, "## Shepherd orchestration"), 1)
		})
	}
}
