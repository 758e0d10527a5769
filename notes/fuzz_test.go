package notes

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

func seedRecord() *record {
	r := &record{
		Version: Version, Parent: binding{Identity: hashPrefix + Identity("me").hash(), ProjectRoot: "/project"},
		Name: "fix login", Slug: "fix-login", Number: 7, Status: SessionRunning, Modes: []string{defaultMode},
	}
	for i, agent := range []string{"scout", "planner"} {
		e := &entry{File: agent + "-01.md", Agent: agent, Slug: agent, Ordinal: 1, Step: i + 1, Mode: defaultMode, Status: Running, Seal: "0123456789abcdef"}
		e.encode()
		r.notes = append(r.notes, e)
	}
	if err := r.index(); err != nil {
		panic(err)
	}
	return r
}

// seedPages has two pages: of a record's layout, and of none.
func seedPages(name string) ([]byte, error) {
	switch name {
	case "notes-0001-00000001.json":
		e := &entry{File: "worker-01.md", Agent: "worker", Slug: "worker", Ordinal: 1, Mode: defaultMode, Status: Completed}
		e.encode()
		return appendRows([]byte("{"), []*entry{e}), nil
	case "notes-0002-00000002.json":
		return []byte(`{"notes":[{"file":"worker-02.md","agent":"worker","slug":"worker","ordinal":2} , {"file":"worker-03.md","agent":"worker","slug":"worker","ordinal":3}]}`), nil
	}
	return nil, fs.ErrNotExist
}

// Whatever is in a session.json: no panic, and what is accepted is written and read again
// as the same, by the quick way and by the long one.
func FuzzRecord(f *testing.F) {
	good := seedRecord().encode()
	f.Add(good)
	f.Add(bytes.Replace(good, []byte(`"name"`), []byte(`"later": {"a":[1, 2]}, "name"`), 1))
	f.Add(bytes.Replace(good, []byte(`"agent"`), []byte(`"later" : "x","agent"`), 1))
	f.Add([]byte(`{"noteSessionVersion":2,"number":1,"notes":[],"parentPiSession":{"identity":"sha256:` + strings.Repeat("0", 64) + `"}}`))
	f.Add(bytes.Replace(good, []byte(`"notes"`), []byte(`"pages": ["notes-0001-00000001.json","notes-0002-00000002.json"], "notes"`), 1))
	f.Add([]byte(`{"noteSessionVersion":3}`))
	f.Add([]byte("{\n  \"notes\": [\n    {}\n  ]\n}\n"))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data, nil, seedPages)
		if err != nil {
			return
		}
		for _, e := range r.notes {
			if !validNoteFile(e.File) || path.Base(e.File) != e.File || !fs.ValidPath(e.File) {
				t.Errorf("accepted the file name %q", e.File)
			}
		}
		out := r.encode()
		if !json.Valid(out) {
			t.Fatalf("wrote invalid JSON:\n%s", out)
		}
		again, err := decode(out, r, seedPages)
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, out)
		}
		if second := again.encode(); !bytes.Equal(second, out) {
			t.Errorf("not stable:\n%s\nthen\n%s", out, second)
		}
		long, err := decode(compact(out), nil, seedPages) // not our layout: the long way
		if err != nil || !bytes.Equal(compact(long.encode()), compact(out)) {
			t.Errorf("the long way gives another record: %v\n%s", err, out)
		}
		_ = r.fieldnotes()
	})
}

func compact(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Whatever a child leaves in its file, and whatever it says: both come back, a strict YAML
// reader reads the front matter, and finalising twice is finalising once.
func FuzzNote(f *testing.F) {
	f.Add([]byte("report\n"), "text", "label", "error")
	f.Add([]byte("---\ntitle: x\n---\nreport"), "---\n", "yes", "a: b # c")
	f.Add([]byte("\ufeff\r\n---\r\n"), "<!-- shepherd:end 0123456789abcdef -->\n", "\"\n", "")
	f.Add([]byte("\n\n<!-- shepherd:orchestration 0123456789abcdef status=completed code=0 at= text=-1 -->\n"), "", "", "")
	f.Fuzz(func(t *testing.T, content []byte, text, label, problem string) {
		o, err := Outcome{Status: TimedOut, Text: text, Error: problem}.checked()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("0123456789abcdef")) {
			return // it would have to know the seal
		}
		r := seedRecord()
		e := r.notes[0]
		e.Label = strings.ToValidUTF8(label, "\ufffd")
		for _, old := range [][]byte{content, append(newNote(r, e), content...)} {
			body := written(old, r, e)
			if !bytes.HasSuffix(body, content) && !bytes.Equal(old, content) {
				t.Fatalf("the child's %q became %q", content, body)
			}
			file := finished(r, e, o, old)
			main := findSection(file, mainSection, e.Seal)
			if got, err := main.output(file, e.Seal); err != nil || got != o.Text {
				t.Fatalf("text is %q, %v; want %q", got, err, o.Text)
			}
			if got := written(file[:main.start], r, e); !bytes.Equal(got, body) {
				t.Fatalf("body is %q, want %q", got, body)
			}
			if got := main.outcome(file); got.Status != TimedOut || got.Error != clip(o.Error, maxError) {
				t.Fatalf("outcome is %+v", got)
			}
			checkYAML(t, file, e.Label, clip(o.Error, maxError))
			late := main.withLate(file, late(e, o), e.Seal)
			second := findSection(late, lateSection, e.Seal)
			if got, err := second.output(late, e.Seal); err != nil || got != o.Text {
				t.Fatalf("late text is %q, %v; want %q", got, err, o.Text)
			}
			if got, err := findSection(late, mainSection, e.Seal).output(late, e.Seal); err != nil || got != o.Text {
				t.Fatalf("with a late ending the text is %q, %v", got, err)
			}
		}
	})
}

func checkYAML(t *testing.T, file []byte, label, problem string) {
	t.Helper()
	block, _, ok := cutBlock(file)
	if !ok {
		t.Fatalf("no front matter:\n%s", file)
	}
	var front map[string]any
	if err := yaml.UnmarshalWithOptions(block, &front, yaml.Strict()); err != nil {
		t.Fatalf("%v\n%s", err, block)
	}
	for key, want := range map[string]string{"label": label, "error": problem} {
		if got, _ := front[key].(string); got != want {
			t.Errorf("%s is %#v, want %q", key, front[key], want)
		}
	}
}

// Any text gives a slug that is a safe part of a file name, or none.
func FuzzSlug(f *testing.F) {
	for _, s := range []string{"", "Fix OAuth login", "../../etc", "漢字", "e\u0301", "\xff", strings.Repeat("a-", 99), "İ", "ß"} {
		f.Add(s, 64)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 1 + (limit%100+100)%100
		s := slug(text, limit)
		if s == "" {
			return
		}
		if len(s) > limit || !utf8.ValidString(s) || strings.Trim(s, "-") != s || strings.Contains(s, "--") || !validName(s) {
			t.Errorf("slug(%q, %d) = %q", text, limit, s)
		}
		if dir := sessionDir(1, s); !validSessionDir(dir) || !fs.ValidPath(dir) {
			t.Errorf("%q is no directory", dir)
		}
	})
}

// Any two agents get names that differ, each of them a plain file name.
func FuzzNoteFile(f *testing.F) {
	f.Add("scout", "Scout")
	f.Add("../x", "x")
	f.Add("🐑", "🐕")
	f.Add("scout", "scout-01")
	f.Add("a", "a-1")
	f.Fuzz(func(t *testing.T, one, two string) {
		r := seedRecord()
		seen := map[string]string{"scout-01.md": "", "planner-01.md": ""}
		for _, agent := range []string{one, two} {
			if agent == "" || seen[agent+"\x00"] != "" {
				continue
			}
			seen[agent+"\x00"] = "x"
			e := &entry{Agent: agent, Slug: r.slugFor(agent, nil), Mode: defaultMode, Status: Pending}
			e.Ordinal = 1
			if seq := r.seqs[agent]; seq != nil {
				e.Ordinal = seq.last + 1
			}
			e.File = noteFile(e.Slug, e.Ordinal)
			if _, taken := seen[strings.ToLower(e.File)]; taken || !validNoteFile(e.File) || len(e.File) > 200 {
				t.Errorf("agent %q gets %q", agent, e.File)
			}
			seen[strings.ToLower(e.File)] = agent
			e.encode()
			r.append(e)
		}
	})
}
