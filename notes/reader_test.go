package notes_test

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

const (
	// What the TypeScript original writes, shortened.
	typescript = `{
  "sessionName": "orchestrator-f3e3fb7f",
  "slug": "orchestrator-f3e3fb7f",
  "ordinal": 2,
  "directoryName": "0002-orchestrator-f3e3fb7f",
  "artifactSessionVersion": 2,
  "parentPiSession": {"identity": "pi-session-1", "projectRoot": "/repo", "boundAt": "2025-08-14T09:30:00.000Z", "sessionFile": "/home/me/x.jsonl"},
  "parentPiSessionId": "pi-session-1",
  "projectRoot": "/repo",
  "sessionPath": "/repo/.shepherd/sessions/0002-orchestrator-f3e3fb7f",
  "resumed": true,
  "startedAt": "2025-08-14T09:30:00.000Z",
  "updatedAt": "2025-08-14T10:30:00.000Z",
  "status": "running",
  "modes": ["single"],
  "artifacts": [
    {"id": "0002-orchestrator-f3e3fb7f/scout-01.md", "agent": "scout", "agentSlug": "scout", "ordinal": 1, "fileName": "scout-01.md", "filePath": "/etc/passwd", "mode": "single", "task": "look", "status": "completed", "reservedAt": "2025-08-14T09:30:00.000Z", "startedAt": "2025-08-14T09:30:01.000Z", "completedAt": "2025-08-14T09:40:00.000Z"},
    {"id": "x", "agent": "planner", "agentSlug": "planner", "ordinal": 1, "fileName": "planner-01.md", "mode": "single", "status": "running", "reservedAt": "2025-08-14T09:50:00.000Z", "promptId": "prompt-9"},
    {"id": "y", "agent": "evil", "agentSlug": "evil", "ordinal": 1, "fileName": "../../evil.md", "mode": "single", "status": "running", "reservedAt": "2025-08-14T09:50:00.000Z"}
  ]
}
`
	typescriptNote = `---
artifactSessionVersion: 2
session: 0002-orchestrator-f3e3fb7f
sessionName: orchestrator-f3e3fb7f
parentPiSession: 0badcafe
agent: planner
ordinal: 1
mode: single
status: running
reservedAt: "2025-08-14T09:50:00.000Z"
promptId: prompt-9
---

# Planner 01

<!-- Agent output or agent-maintained report follows. -->

the planner's own words
`
	legacy = `{"sessionName": "fix login", "slug": "fix-login", "ordinal": 1, "directoryName": "0001-fix-login", "status": "completed", "modes": [], "startedAt": "2025-08-14T09:30:00.000Z", "updatedAt": "2025-08-14T09:30:00.000Z", "artifacts": []}`
)

// museum is a project with one directory of every kind.
func museum(t *testing.T) *notestest.Disk {
	t.Helper()
	d := notestest.NewDisk()
	fsys := d.View()
	put := func(dir string, files map[string]string) {
		if err := fsys.MkdirAll(sessions + dir); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			d.Write(sessions+dir+"/"+name, content)
		}
	}
	put("0001-fix-login", map[string]string{"session.json": legacy, "shepherd.md": "# old"})
	put("0002-orchestrator-f3e3fb7f", map[string]string{
		"session.json": typescript, "shepherd.md": "# the original's index", "planner-01.md": typescriptNote, "scout-01.md": "the scout's words",
	})
	put("0003-cut-short", nil)
	put("0004-broken", map[string]string{"session.json": "{"})
	put("0005-lost", map[string]string{"scout-01.md": "words"})
	put("0006-newer", map[string]string{"session.json": `{"noteSessionVersion": 3}`})
	put("0007-something", map[string]string{"session.json": `{"a": 1}`})
	put("not-numbered", nil)
	put(".alloc", nil)
	d.Write(sessions+"0008-a-file", "")
	return d
}

func TestList_TellsEveryKindAndTouchesNone(t *testing.T) {
	is := is.New(t)
	d := museum(t)
	before := everything(d, ".")
	list, err := notes.List(t.Context(), d.View())
	is.NoErr(err)
	kinds := map[string]notes.Kind{}
	for _, info := range list {
		kinds[info.Dir] = info.Kind
		is.Equal(info.Err != nil, info.Kind == notes.KindCorrupt || info.Kind == notes.KindNewer)
		is.Equal(info.RelPath, sessions+info.Dir)
	}
	is.Equal(kinds, map[string]notes.Kind{
		"0001-fix-login": notes.KindLegacy, "0002-orchestrator-f3e3fb7f": notes.KindTypeScript, "0003-cut-short": notes.KindAbandoned,
		"0004-broken": notes.KindCorrupt, "0005-lost": notes.KindCorrupt, "0006-newer": notes.KindNewer, "0007-something": notes.KindCorrupt,
	})
	old := list[1]
	is.Equal(old.Name, "orchestrator-f3e3fb7f")
	is.Equal(len(old.Notes), 2) // the third one leaves the directory
	is.Equal(old.Notes[0].Path, "/project/"+sessions+"0002-orchestrator-f3e3fb7f/scout-01.md")
	is.Equal(old.Parent, notes.Identity("pi-session-1").String())
	v, err := notes.ReadNote(t.Context(), d.View(), old.Dir, "scout-01.md")
	is.NoErr(err)
	is.Equal(v.Body, "the scout's words")
	is.Equal(everything(d, "."), before)

	s := open(t, d.View(), "pi-session-1") // the original's parent comes to us
	is.True(strings.HasPrefix(s.RelPath(), sessions+"0009-"))
	is.NoErr(s.Recovered())
	for _, info := range list {
		is.True(strings.Contains(before, everything(d, info.RelPath)))
	}
}

func TestList_NothingThere(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	list, err := notes.List(t.Context(), d.View())
	is.NoErr(err)
	is.Equal(len(list), 0)
	_, err = notes.Read(t.Context(), d.View(), "0001-x")
	is.True(errors.Is(err, fs.ErrNotExist))
	is.Equal(len(d.Names(".")), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = notes.List(ctx, museum(t).View())
	is.True(errors.Is(err, context.Canceled))
}

func TestRead_NamesThatLeaveAreRefused(t *testing.T) {
	d := museum(t)
	s := open(t, d.View(), "me")
	note := reserve(t, s, "scout")
	dir := path.Base(s.RelPath())
	for _, name := range []string{"", ".", "..", "../x", "/etc", "0001-a/../..", "x", ".alloc", "0001", `0001-a\b`, "0001-\x00"} {
		if _, err := notes.Read(t.Context(), d.View(), name); !errors.Is(err, notes.ErrInvalid) {
			t.Errorf("session %q: %v", name, err)
		}
		if _, err := notes.ReadNote(t.Context(), d.View(), dir, name+".md"); !errors.Is(err, notes.ErrInvalid) && !errors.Is(err, notes.ErrUnknownNote) {
			t.Errorf("note %q: %v", name, err)
		}
	}
	d.Write(s.RelPath()+"/stray-01.md", "not ours")
	if _, err := notes.ReadNote(t.Context(), d.View(), dir, "stray-01.md"); !errors.Is(err, notes.ErrUnknownNote) {
		t.Errorf("a stray was read: %v", err)
	}
	if _, err := notes.ReadNote(t.Context(), d.View(), dir, path.Base(note.RelPath())); err != nil {
		t.Error(err)
	}
}

func TestRead_SaysWhatIsLeft(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	dead := d.View()
	s := open(t, dead, "me")
	reserve(t, s, "scout")
	reserve(t, open(t, d.View(), "me"), "planner")
	dead.Kill()
	before := everything(d, s.RelPath())
	info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
	is.NoErr(err)
	is.Equal(info.Notes[0].Left, true)
	is.Equal(info.Notes[1].Left, false)
	is.Equal(everything(d, s.RelPath()), before)
}

func TestMigrate_BindsInPlaceAndLosesNothing(t *testing.T) {
	is := is.New(t)
	d := museum(t)
	const dir = "0002-orchestrator-f3e3fb7f"
	config := notes.Config{FS: d.View(), Parent: notes.Identity("me")}
	before := everything(d, ".")

	plan, err := notes.Migrate(t.Context(), config, dir, notes.MigrateOptions{DryRun: true})
	is.NoErr(err)
	is.Equal(everything(d, "."), before) // nothing at all
	is.Equal(len(plan.Notes), 2)
	is.Equal(len(plan.Skipped), 1)
	is.True(strings.Contains(plan.Skipped[0], "evil"))

	done, err := notes.Migrate(t.Context(), config, dir, notes.MigrateOptions{})
	is.NoErr(err)
	plan.DryRun = false
	is.Equal(done, plan) // as announced
	is.Equal(d.Read(sessions+dir+"/scout-01.md"), "the scout's words")
	is.Equal(d.Read(sessions+dir+"/planner-01.md"), typescriptNote)
	is.Equal(d.Read(done.Backups[0]), typescript)
	is.Equal(d.Read(done.Backups[1]), "# the original's index")
	record := d.Read(sessions + dir + "/session.json")
	for _, kept := range []string{`"artifactSessionVersion": 2`, `"ordinal": 2`, `"filePath":"/etc/passwd"`, `"sessionFile":"/home/me/x.jsonl"`, `"resumed": true`} {
		is.True(strings.Contains(record, kept))
	}

	s := open(t, d.View(), "me") // from here on it is a session like any other
	is.Equal(path.Base(s.RelPath()), dir)
	is.NoErr(s.Recovered())
	is.Equal(path.Base(reserve(t, s, "scout").RelPath()), "scout-02.md")
	left, err := s.Unfinished(t.Context())
	is.NoErr(err)
	is.Equal(len(left), 1)
	is.Equal(left[0].PromptID, "prompt-9")
	finalize(t, left[0].Note, notes.Outcome{Status: notes.Interrupted, Text: "gone"})
	v := view(t, d.View(), left[0].Note)
	is.Equal(v.Text, "gone")
	is.True(strings.HasSuffix(v.Body, "the planner's own words\n"))
	is.Equal(frontMatter(t, v.Raw)["status"], "interrupted")
	is.True(!strings.Contains(v.Body, "---")) // its front matter was replaced, not doubled

	_, err = notes.Migrate(t.Context(), config, dir, notes.MigrateOptions{})
	is.True(errors.Is(err, notes.ErrBound))
}

func TestMigrate_Refuses(t *testing.T) {
	d := museum(t)
	config := notes.Config{FS: d.View(), Parent: notes.Identity("me")}
	for _, dir := range []string{"0003-cut-short", "0004-broken", "0006-newer", "0007-something", "0099-missing", "../x", ""} {
		for _, dry := range []bool{true, false} {
			if _, err := notes.Migrate(t.Context(), config, dir, notes.MigrateOptions{DryRun: dry}); err == nil {
				t.Errorf("%q was migrated", dir)
			}
		}
	}
	d.Write(sessions+"0001-fix-login/.session.lock", "4711\n")
	if _, err := notes.Migrate(t.Context(), config, "0001-fix-login", notes.MigrateOptions{}); !errors.Is(err, notes.ErrLocked) {
		t.Errorf("the original is at work: %v", err)
	}
	if _, err := notes.Migrate(t.Context(), config, "0001-fix-login", notes.MigrateOptions{Force: true}); err != nil {
		t.Error(err)
	}
	bound := notes.Config{FS: d.View(), Parent: notes.Identity("bound")}
	open(t, d.View(), "bound")
	if _, err := notes.Migrate(t.Context(), bound, "0002-orchestrator-f3e3fb7f", notes.MigrateOptions{}); !errors.Is(err, notes.ErrBound) {
		t.Errorf("a second session for one parent: %v", err)
	}
}

// A migration that dies at any step can be done again, and nothing is half bound.
func TestMigrate_FaultsAtEveryStep(t *testing.T) {
	const dir = "0002-orchestrator-f3e3fb7f"
	points := 0
	for at := 0; ; at++ {
		for _, kind := range kinds {
			d := museum(t)
			step, hit := 0, false
			d.Fault = func(notestest.Step) error {
				if step++; step-1 == at {
					hit = true
					return kind.err
				}
				return nil
			}
			config := notes.Config{FS: d.View(), Parent: notes.Identity("me")}
			_, err := notes.Migrate(t.Context(), config, dir, notes.MigrateOptions{})
			d.Fault = nil
			if !hit {
				t.Logf("%d points held", points)
				return
			}
			points++
			config.FS = d.View()
			if _, again := notes.Migrate(t.Context(), config, dir, notes.MigrateOptions{}); again != nil && !errors.Is(again, notes.ErrBound) {
				t.Fatalf("%s at step %d (%v): again: %v", kind.name, at, err, again)
			}
			s := open(t, d.View(), "me")
			if path.Base(s.RelPath()) != dir || s.Recovered() != nil {
				t.Fatalf("%s at step %d: %s, %v", kind.name, at, s.RelPath(), s.Recovered())
			}
			info, err := notes.Read(t.Context(), d.View(), dir)
			if err != nil || len(info.Notes) != 2 || d.Read(sessions+dir+"/.before-migration.session.json") != typescript {
				t.Fatalf("%s at step %d: %v, %d notes", kind.name, at, err, len(info.Notes))
			}
			if d.Read(sessions+dir+"/planner-01.md") != typescriptNote {
				t.Fatalf("%s at step %d: a note was changed", kind.name, at)
			}
		}
	}
}
