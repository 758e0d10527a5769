package notes_test

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

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
