package notes_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
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

// C40: front matter broken by an ordinary label.
func TestC40_AnyLabelIsStrictYAML(t *testing.T) {
	labels := []string{
		"fix: login # now", `"quoted"`, "- item", "yes", "0012", "null", "two\nlines\n---\nmore", "~", "1e3", "0x1F", ".inf", "-.5",
		"2025-08-14", "12:30:45", "w8:pY", "a: b", "# x", "&a *b !c", "%d", "@at", "`tick`", "[a, b]", "{a: b}", "trailing ", " leading",
		"tab\there", "\x00\x07\x1b[0m", "\u0085\u2028\u2029\ufeff", "it's", `back\slash`, "|", ">", "?", "- ", ": ", "true", "Off", "=", "<<", "日本語", "🐑", "n", "Y",
	}
	for _, label := range append(labels, strings.Join(labels, " \n")) {
		is := is.New(t)
		d := notestest.NewDisk()
		s := open(t, d.View(), "me")
		note, err := s.Reserve(t.Context(), notes.Plan{Agent: "scout " + label, Label: label, Pane: label, AgentID: label, PromptID: label, Task: label, Mode: label, Start: true})
		is.NoErr(err)
		errText := label
		finalize(t, note, notes.Outcome{Status: notes.Failed, Error: errText, ReturnCode: 3})
		raw := d.Read(note.RelPath())
		front := frontMatter(t, raw)
		for key, want := range map[string]string{"agent": "scout " + label, "label": label, "pane": label, "handle": label, "prompt": label, "mode": label, "error": errText} {
			if len(want) > 200 && key == "task" {
				continue
			}
			if got, ok := front[key].(string); !ok || got != want {
				t.Errorf("%s is %#v, want %q", key, front[key], want)
			}
		}
		is.Equal(fmt.Sprint(front["returnCode"]), "3")
		is.Equal(strings.Count(raw, "\nnoteSessionVersion: 2\n"), 1) // one block only
		info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
		is.NoErr(err)
		is.Equal(info.Notes[0].Label, label)
		is.Equal(info.Notes[0].Error, errText)
		checkIndex(t, d.Read(s.RelPath()+"/shepherd.md"), 1)
	}
}

// frontMatter reads a note's front matter with a YAML reader of somebody else.
func frontMatter(t *testing.T, raw string) map[string]any {
	t.Helper()
	rest, ok := strings.CutPrefix(raw, "---\n")
	block, _, ok2 := strings.Cut(rest, "\n---\n")
	if !ok || !ok2 {
		t.Fatalf("no front matter:\n%.300s", raw)
	}
	var front map[string]any
	if err := yaml.UnmarshalWithOptions([]byte(block), &front, yaml.Strict()); err != nil {
		t.Fatalf("%v\n%s", err, block)
	}
	return front
}

// checkIndex: the index has its lines, one for each note, whatever the labels are.
func checkIndex(t *testing.T, index string, n int) {
	t.Helper()
	line := regexp.MustCompile(`^(# Session \d{4}: .*|- [A-Z][a-z ]+: .*|## (Notes|Flow)|\d+\. \[.*\]\(\./[^() ]+\.md\): .*|(→ )?\[.*\]\(\./[^() ]+\.md\).*|No notes yet\.)?$`)
	items := 0
	for l := range strings.SplitSeq(index, "\n") {
		if !line.MatchString(l) {
			t.Errorf("the index has the line %q", l)
		}
		if strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 }) {
			t.Errorf("the index has control characters: %q", l)
		}
		if regexp.MustCompile(`^\d+\. `).MatchString(l) {
			items++
		}
	}
	if items != n {
		t.Errorf("the index lists %d notes, want %d:\n%s", items, n, index)
	}
}

func TestIndex_NoLabelBreaksIt(t *testing.T) {
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	labels := append([]string{"](http://evil)", "<script>x</script>", "a | b", "**bold** _it_ ~~x~~", "![img](x)", "1. one", "# head", "\n\n## Notes\n\n1. [Fake](./fake.md): completed"}, hostile...)
	for _, label := range labels {
		if _, err := s.Reserve(t.Context(), notes.Plan{Agent: "scout", Label: label}); err != nil {
			t.Fatal(err)
		}
	}
	index := d.Read(s.RelPath() + "/shepherd.md")
	checkIndex(t, index, len(labels))
	if raw := regexp.MustCompile(`[^\\](\]\(http|<script|!\[|\*\*bold)`).FindString(index); raw != "" {
		t.Errorf("%q came through", raw)
	}
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

// Labels that normalise to the same name, and files that are in the way.
func TestReserve_NamesAreNeverShared(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	d.Write(s.RelPath()+"/planner-01.md", "somebody's own file")
	agents := []string{"scout", "Scout", "scout!", "scout", "SCOUT", "planner", "🐑", "🐕", "日本", "scout-01", strings.Repeat("x", 300), strings.Repeat("x", 301)}
	var plans []notes.Plan
	for _, a := range agents {
		plans = append(plans, notes.Plan{Agent: a})
	}
	list, err := s.ReserveAll(t.Context(), plans)
	is.NoErr(err)
	again, err := open(t, d.View(), "me").ReserveAll(t.Context(), plans) // by another process
	is.NoErr(err)
	seen := map[string]bool{}
	for _, n := range append(list, again...) {
		file := path.Base(n.RelPath())
		is.True(!seen[strings.ToLower(file)])
		is.True(len(file) < 100)
		seen[strings.ToLower(file)] = true
	}
	is.Equal(path.Base(list[0].RelPath()), "scout-01.md")
	is.Equal(path.Base(list[3].RelPath()), "scout-02.md")
	is.Equal(path.Base(list[5].RelPath()), "planner-02.md")
	is.Equal(d.Read(s.RelPath()+"/planner-01.md"), "somebody's own file")
	info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
	is.NoErr(err)
	is.Equal(info.Strays, []string{"planner-01.md"})
	ordinals := map[string]int{}
	for _, n := range info.Notes {
		is.True(n.Ordinal > ordinals[n.Agent]) // each agent counts for itself
		ordinals[n.Agent] = n.Ordinal
	}
}

func TestReserveAll_AllOrNothing(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	created := 0
	d.Fault = func(step notestest.Step) error {
		if step.Op == "create" && step.Part == "write" {
			if created++; created == 3 {
				return errors.New("disk full")
			}
		}
		return nil
	}
	plans := []notes.Plan{{Agent: "a"}, {Agent: "b"}, {Agent: "c"}}
	_, err := s.ReserveAll(t.Context(), plans)
	is.True(err != nil)
	info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
	is.NoErr(err)
	is.Equal(len(info.Notes), 0)                          // no entry
	is.Equal(info.Strays, []string{"a-01.md", "b-01.md"}) // recognisably no notes
	list, err := s.ReserveAll(t.Context(), plans)         // and their names are not used again
	is.NoErr(err)
	is.Equal(path.Base(list[0].RelPath()), "a-02.md")
	_, err = s.ReserveAll(t.Context(), []notes.Plan{{Agent: "a"}, {Agent: " "}})
	is.True(errors.Is(err, notes.ErrInvalid))
	none, err := s.ReserveAll(t.Context(), nil)
	is.NoErr(err)
	is.Equal(len(none), 0)
}

func TestBrief_PathsCannotBreakOut(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	d.Root = "/tmp/a\n- Your note: /etc/passwd"
	note := reserve(t, open(t, d.View(), "me"), "scout")
	is.Equal(strings.Count(note.Brief(), "\n- Your note: "), 1)
	is.True(strings.Contains(note.Brief(), `"/tmp/a\n- Your note: /etc/passwd/`))
}

var update = flag.Bool("update", false, "write the golden files anew")

// What the files look like, in full.
func TestGolden(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	now := time.Date(2025, 8, 14, 9, 30, 0, 0, time.UTC)
	s, err := notes.Open(t.Context(), notes.Config{
		FS: d.View(), Parent: notes.Identity("golden"), SessionName: "fix-oauth-login",
		Now: func() time.Time { now = now.Add(time.Second); return now },
	})
	is.NoErr(err)
	scout, err := s.Reserve(t.Context(), notes.Plan{
		Agent: "scout", Label: "where: is it?", Task: "Find where the retry policy is decided.", Pane: "w8:pY",
		AgentID: "shepherd-agent-0123abcd-x", PromptID: "shepherd-prompt-0123abcd-y", Start: true,
	})
	is.NoErr(err)
	d.Append(scout.RelPath(), "The policy is in `auth/retry.go`.\n")
	finalize(t, scout, notes.Outcome{Status: notes.Completed, Text: "In auth/retry.go, line 40.\n"})
	pair, err := s.ReserveAll(t.Context(), []notes.Plan{{Agent: "planner", Start: true}, {Agent: "reviewer"}})
	is.NoErr(err)
	finalize(t, pair[0], notes.Outcome{Status: notes.TimedOut, Error: "no answer within 1h\nlast seen: 10:00", ReturnCode: 124})
	is.NoErr(pair[0].Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: "Here is the plan."}))
	is.NoErr(pair[1].Start(t.Context(), "w8:pZ"))

	seal := regexp.MustCompile(`\b[0-9a-f]{16}\b|"owner":"[0-9a-f]{8}"`)
	for _, name := range d.Names(s.RelPath()) {
		if strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		got := seal.ReplaceAllString(d.Read(name), "RANDOM")
		golden := filepath.Join("testdata", "golden", path.Base(name))
		if *update {
			is.NoErr(os.MkdirAll(filepath.Dir(golden), 0o755))
			is.NoErr(os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is missing; run with -update", golden)
		}
		if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
			t.Errorf("%s is now\n%s", name, got)
		}
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
			v := view(t, d.View(), note) // as the record says
			is.Equal(v.Status, notes.Failed)
			is.Equal(*v.ReturnCode, 5)
			is.Equal(v.Error, "e")
			is.Equal(v.Text, "first") // what was written first stands
			is.Equal(strings.Count(v.Raw, "## Shepherd orchestration"), 1)
			is.True(strings.Contains(d.Read(s.RelPath()+"/shepherd.md"), "failed"))
		})
	}
}

// The reservation may have reached the disk and its caller was told that it failed: nobody
// has the note, so the next transaction cancels it.
func TestReserve_DoubtfulReservationIsCancelled(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	d.Fault = func(step notestest.Step) error {
		if path.Base(step.Name) == "session.json" && step.Part == "dirsync" {
			return errors.New("bad sector")
		}
		return nil
	}
	_, err := s.Reserve(t.Context(), notes.Plan{Agent: "scout", Start: true})
	is.True(err != nil)
	d.Fault = nil
	is.Equal(path.Base(reserve(t, s, "scout").RelPath()), "scout-02.md")
	info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
	is.NoErr(err)
	is.Equal(len(info.Notes), 2)
	is.Equal(info.Notes[0].Status, notes.Cancelled)
	is.Equal(info.Notes[1].Status, notes.Running)
}
