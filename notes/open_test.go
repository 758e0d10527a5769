package notes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

const sessions = ".shepherd/sessions/"

func TestOpen_FindsTheSessionWithoutItsHelpers(t *testing.T) {
	helpers := map[string]func(d *notestest.Disk){
		"all there":                func(*notestest.Disk) {},
		"pointer removed":          removePointers,
		"list removed":             func(d *notestest.Disk) { d.Remove(sessions + ".directory") },
		"both removed":             func(d *notestest.Disk) { removePointers(d); d.Remove(sessions + ".directory") },
		"pointer is rubbish":       func(d *notestest.Disk) { overwritePointers(d, "\x00\xff") },
		"pointer leaves":           func(d *notestest.Disk) { overwritePointers(d, "../../../etc\n") },
		"pointer to another's":     func(d *notestest.Disk) { overwritePointers(d, "0001-others\n") },
		"pointer to nothing":       func(d *notestest.Disk) { overwritePointers(d, "0099-nothing\n") },
		"list is rubbish":          func(d *notestest.Disk) { d.Write(sessions+".directory", "\x00 \n\n0001-others\n"); removePointers(d) },
		"list is empty after cut":  func(d *notestest.Disk) { d.Write(sessions+".directory", ""); removePointers(d) },
		"temporary file left over": func(d *notestest.Disk) { d.Write(sessions+"0002-mine/.tmp-1", "half") },
	}
	for name, harm := range helpers {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			d := notestest.NewDisk()
			_, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("other"), SessionName: "others"})
			is.NoErr(err)
			mine := notes.Config{FS: d.View(), Parent: notes.Identity("me"), SessionName: "mine"}
			s, err := notes.Open(t.Context(), mine)
			is.NoErr(err)
			is.Equal(s.RelPath(), sessions+"0002-mine")
			harm(d)
			again, err := notes.Open(t.Context(), mine)
			is.NoErr(err)
			is.Equal(again.RelPath(), s.RelPath())
			is.NoErr(again.Recovered())
			d.Remove(sessions + ".directory") // the pointer was mended, it alone is enough
			again, err = notes.Open(t.Context(), mine)
			is.NoErr(err)
			is.Equal(again.RelPath(), s.RelPath())
		})
	}
}

func removePointers(d *notestest.Disk) { d.Remove(sessions + ".bindings") }

func overwritePointers(d *notestest.Disk, content string) {
	for _, name := range d.Names(sessions + ".bindings") {
		d.Write(name, content)
	}
}

// Ruling R17.
func TestOpen_CorruptBindingIsLeftAndANewSessionSaysSo(t *testing.T) {
	harms := map[string]func(d *notestest.Disk, dir string){
		"not JSON":            edit(func(string) string { return "{" }),
		"empty":               edit(func(string) string { return "" }),
		"a list":              edit(func(string) string { return "[]" }),
		"removed":             func(d *notestest.Disk, dir string) { d.Remove(dir + "/session.json") },
		"directory removed":   func(d *notestest.Disk, dir string) { d.Remove(dir) },
		"version is a string": replace(`"noteSessionVersion": 2`, `"noteSessionVersion": "2"`),
		"version missing":     replace(`"noteSessionVersion": 2,`, ``),
		"version 1":           replace(`"noteSessionVersion": 2`, `"noteSessionVersion": 1`),
		"identity of another": replace(`"identity":"sha256:`, `"identity":"sha256:0000`),
		"identity in plain":   replace(`"identity":"sha256:`, `"identity":"`),
		"binding missing":     replace(`"parentPiSession"`, `"parentPiSessionOnce"`),
		"number of another":   replace(`"number": 1`, `"number": 7`),
		"slug leaves":         replace(`"slug": "task"`, `"slug": "../task"`),
		"note leaves":         replace(`"file":"scout-01.md"`, `"file":"../0002-x/scout-01.md"`),
		"note is absolute":    replace(`"file":"scout-01.md"`, `"file":"/etc/passwd"`),
		"note is the index":   replace(`"file":"scout-01.md"`, `"file":"shepherd.md"`),
		"note is hidden":      replace(`"file":"scout-01.md"`, `"file":".lock.md"`),
		"note has a newline":  replace(`"file":"scout-01.md"`, `"file":"a\nb.md"`),
		"member twice":        replace(`"slug": "task"`, `"slug": "task", "slug": "task"`),
		"time is no time":     replace(`"startedAt": "`, `"startedAt": "x`),
		"notes is no list":    replace(`"notes": [`, `"notes": {}, "x": [`),
	}
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			d := notestest.NewDisk()
			var log bytes.Buffer
			config := notes.Config{
				FS: d.View(), Parent: notes.Identity("me"), SessionName: "task",
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}
			s, err := notes.Open(t.Context(), config)
			is.NoErr(err)
			note := reserve(t, s, "scout")
			harm(d, s.RelPath())
			before := everything(d, s.RelPath())

			fresh, err := notes.Open(t.Context(), config)
			is.NoErr(err)
			is.Equal(fresh.RelPath(), sessions+"0002-task") // a number of its own
			var corrupt *notes.CorruptError
			is.True(errors.As(fresh.Recovered(), &corrupt)) // typed
			is.True(strings.HasPrefix(corrupt.Path, s.RelPath()))
			is.True(strings.Contains(log.String(), "level=ERROR")) // and logged
			is.Equal(everything(d, s.RelPath()), before)           // left as it was
			is.True(strings.Contains(d.Read(fresh.RelPath()+"/session.json"), `"recoveredFrom": [{"directory":"0001-task","reason":`))
			is.True(strings.Contains(d.Read(fresh.RelPath()+"/shepherd.md"), "Recovered from: 0001-task"))

			_, err = note.Text()
			is.True(err == nil || errors.Is(err, fs.ErrNotExist))
			again, err := notes.Open(t.Context(), config) // from here on it is the session
			is.NoErr(err)
			is.Equal(again.RelPath(), fresh.RelPath())
			is.True(errors.As(again.Recovered(), &corrupt))
		})
	}
}

func edit(change func(string) string) func(*notestest.Disk, string) {
	return func(d *notestest.Disk, dir string) {
		d.Write(dir+"/session.json", change(d.Read(dir+"/session.json")))
	}
}

func replace(old, new string) func(*notestest.Disk, string) {
	return edit(func(s string) string {
		if !strings.Contains(s, old) {
			panic("nothing to replace: " + old)
		}
		return strings.Replace(s, old, new, 1)
	})
}

// everything is the content of all files below a directory but the locks'.
func everything(d *notestest.Disk, dir string) string {
	var b strings.Builder
	for _, name := range d.Names(dir) {
		if base := path.Base(name); base != ".lock" && !strings.HasPrefix(base, ".owner-") {
			fmt.Fprintf(&b, "%s\n%s\n", name, d.Read(name))
		}
	}
	return b.String()
}

// C47: files written by a newer version.
func TestC47_NewerVersionIsRefusedAndUnknownFieldsSurvive(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	note := reserve(t, s, "scout")
	name := s.RelPath() + "/session.json"

	// Unknown fields of version 2, at every level.
	unknown := []string{`"later": {"a": [1, 2.50, null], "b": 12345678901234567890}`, `"parentLater":{"x":1}`, `"noteLater":[true]`}
	text := d.Read(name)
	text = strings.Replace(text, `"name": `, unknown[0]+`, "name": `, 1)
	text = strings.Replace(text, `"boundAt":`, unknown[1]+`,"boundAt":`, 1)
	text = strings.Replace(text, `"file":`, unknown[2]+`,"file":`, 1)
	d.Write(name, text)
	finalize(t, note, notes.Outcome{Status: notes.Completed})
	reserve(t, open(t, d.View(), "me"), "planner")
	got := d.Read(name)
	is.True(strings.Contains(got, `"later": {"a":[1,2.50,null],"b":12345678901234567890}`))
	is.True(strings.Contains(got, unknown[1]))
	is.True(strings.Contains(got, unknown[2]))
	is.True(strings.Contains(got, `"status":"completed"`))

	// Version 3.
	d.Write(name, strings.Replace(got, `"noteSessionVersion": 2`, `"noteSessionVersion": 3`, 1))
	before := everything(d, ".shepherd")
	_, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("me")})
	is.True(errors.Is(err, notes.ErrNewerVersion))
	is.True(strings.Contains(err.Error(), name))
	_, err = s.Reserve(t.Context(), notes.Plan{Agent: "scout"}) // also by who had it open
	is.True(errors.Is(err, notes.ErrNewerVersion))
	is.True(errors.Is(note.Late(t.Context(), notes.Outcome{Status: notes.Completed}), notes.ErrNewerVersion))
	is.Equal(everything(d, ".shepherd"), before)

	removePointers(d) // it is still ours, so nothing else is allocated
	_, err = notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("me")})
	is.True(errors.Is(err, notes.ErrNewerVersion))
	info, err := notes.Read(t.Context(), d.View(), path.Base(s.RelPath()))
	is.NoErr(err)
	is.Equal(info.Kind, notes.KindNewer)
}

// C43 b: an error before anything is submitted, naming the path. C43 c is in note_test.go.
func TestC43_ReadOnlyProject(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	d.Fault = func(s notestest.Step) error {
		if s.Op == "mkdir" {
			return fs.ErrPermission
		}
		return nil
	}
	_, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("me")})
	is.True(errors.Is(err, fs.ErrPermission))
	is.True(strings.Contains(err.Error(), ".shepherd"))
	is.Equal(len(d.Names(".")), 0)
}

// C32: slug becomes empty, or far too long.
func TestC32_AnyTitleNamesADirectory(t *testing.T) {
	titles := map[string]string{
		"only CJK":             "認証の再試行",
		"only emoji":           "🐑🐑",
		"other emoji":          "🐕",
		"only punctuation":     "!?… --",
		"empty":                "",
		"300 CJK characters":   strings.Repeat("漢", 300),
		"5,000 ASCII letters":  strings.Repeat("a", 5000),
		"cut falls on a dash":  strings.Repeat("a", 63) + " tail",
		"cut inside character": strings.Repeat("a", 62) + "漢字",
		"dots and blanks":      " .. fix . ",
		"traversal":            "../../etc/passwd",
		"not UTF-8":            "fix \xff\xfe login",
		"combining":            "e\u0301te\u0301 ́́",
		"right to left":        "\u202etxt.exe",
	}
	d := notestest.NewDisk()
	seen := map[string]string{}
	for name, title := range titles {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			config := notes.Config{FS: d.View(), Parent: notes.Identity("parent of " + name), SessionName: title}
			s, err := notes.Open(t.Context(), config)
			is.NoErr(err)
			dir := path.Base(s.RelPath())
			_, slug, ok := strings.Cut(dir, "-")
			is.True(ok && slug != "")
			is.True(len(slug) <= 64 && utf8.ValidString(slug))
			is.True(!strings.ContainsAny(slug[len(slug)-1:], "-. "))
			is.True(fs.ValidPath(dir))
			if title != "" {
				is.Equal(s.Name(), strings.ToValidUTF8(title, "\ufffd")) // in full
			}
			is.Equal(seen[slug], "") // and not that of another title
			seen[slug] = name
			again, err := notes.Open(t.Context(), config)
			is.NoErr(err)
			is.Equal(again.RelPath(), s.RelPath())
		})
	}
}

func TestOpen_MovedProjectKeepsItsSessions(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	s := open(t, d.View(), "me")
	reserve(t, s, "scout")
	d.Root = "/elsewhere/it moved"
	moved := open(t, d.View(), "me")
	is.Equal(moved.RelPath(), s.RelPath())
	is.Equal(moved.Path(), "/elsewhere/it moved/"+s.RelPath())
	record := d.Read(s.RelPath() + "/session.json")
	is.True(!strings.Contains(record, "/project"))
	is.True(strings.Contains(record, `"projectRoot":"/elsewhere/it moved"`))
	is.True(strings.Contains(d.Read(s.RelPath()+"/shepherd.md"), "Project: /elsewhere/it moved"))
}

// C05: two parents allocate the same session number. Processes are shown on a real disk, in
// adapters/aferofs.
func TestC05_NumbersAreNeverShared(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	for round := range 20 {
		together(8, func(i int) {
			id := notes.Identity(fmt.Sprint(round, " ", i))
			if _, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: id, SessionName: fmt.Sprint("title ", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	list, err := notes.List(t.Context(), d.View())
	is.NoErr(err)
	is.Equal(len(list), 160)
	for i, info := range list {
		is.Equal(info.Number, i+1) // each once, none left out
		is.Equal(info.Kind, notes.KindSession)
	}
}

func TestOpen_SameParentAtOnceGetsOneSession(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	together(16, func(int) {
		if _, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("me")}); err != nil {
			t.Error(err)
		}
	})
	list, err := notes.List(t.Context(), d.View())
	is.NoErr(err)
	is.Equal(len(list), 1)
}

func TestOpen_NumbersAreBurntNotReused(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	open(t, d.View(), "one")
	d.Fault = func(s notestest.Step) error { // the next allocation dies before its session.json
		if s.Op == "create" {
			return notestest.ErrKill
		}
		return nil
	}
	_, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: notes.Identity("two")})
	is.True(errors.Is(err, notestest.ErrKilled))
	d.Fault = nil
	two := open(t, d.View(), "two")
	is.True(strings.HasPrefix(two.RelPath(), sessions+"0003-"))
	is.NoErr(two.Recovered()) // nothing was lost
	three := open(t, d.View(), "three")
	d.Remove(three.RelPath()) // by the user
	four := open(t, d.View(), "four")
	is.True(strings.HasPrefix(four.RelPath(), sessions+"0005-"))
	d.Write(sessions+"9999", "a stray that takes a number up")
	five := open(t, d.View(), "five")
	is.True(strings.HasPrefix(five.RelPath(), sessions+"10000-"))
	info, err := notes.Read(t.Context(), d.View(), path.Base(strings.Replace(two.RelPath(), "0003", "0002", 1)))
	is.NoErr(err)
	is.Equal(info.Kind, notes.KindAbandoned)
}

func TestOpen_NameDoesNotSelectASession(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	config := notes.Config{FS: d.View(), Parent: notes.Identity("me"), SessionName: "first"}
	s, err := notes.Open(t.Context(), config)
	is.NoErr(err)
	config.SessionName = "second"
	again, err := notes.Open(t.Context(), config)
	is.NoErr(err)
	is.Equal(again.RelPath(), s.RelPath())
	is.Equal(again.Name(), "first")
}

func TestOpen_BadConfig(t *testing.T) {
	ok := notes.Config{FS: notestest.NewDisk().View(), Parent: notes.Identity("me")}
	bad := map[string]func(*notes.Config){
		"no FS":            func(c *notes.Config) { c.FS = nil },
		"no parent":        func(c *notes.Config) { c.Parent = nil },
		"empty identity":   func(c *notes.Config) { c.Parent = notes.Identity("") },
		"negative timeout": func(c *notes.Config) { c.LockTimeout = -1 },
		"relative root":    func(c *notes.Config) { d := notestest.NewDisk(); d.Root = "here"; c.FS = d.View() },
		"identity fails":   func(c *notes.Config) { c.Parent = failing{} },
	}
	for name, spoil := range bad {
		t.Run(name, func(t *testing.T) {
			c := ok
			spoil(&c)
			if s, err := notes.Open(t.Context(), c); err == nil {
				t.Errorf("opened %s", s.RelPath())
			}
		})
	}
}

type failing struct{}

func (failing) Identity(context.Context) (notes.Identity, error) { return "", errors.New("not yet") }

// C49: the project is reached through a symlink. The FS resolves the root, see
// adapters/aferofs; here: what is decided by it.
func TestC49_RootIsComparedAsItIs(t *testing.T) {
	is := is.New(t)
	d, other := notestest.NewDisk(), notestest.NewDisk()
	other.Root = "/other"
	a, b := open(t, d.View(), "me"), open(t, other.View(), "me")
	is.True(a.Path() != b.Path()) // a link that points elsewhere later is another project
	is.Equal(open(t, d.View(), "me").Path(), a.Path())
}

func TestIdentity_IsNeverShown(t *testing.T) {
	is := is.New(t)
	const secret = "/home/me/.pi/sessions/2025-08-14.jsonl"
	d := notestest.NewDisk()
	id := notes.Identity(secret)
	s := open(t, d.View(), secret)
	finalize(t, reserve(t, s, "scout"), notes.Outcome{Status: notes.Completed})
	for _, name := range d.Names(".") {
		is.True(!strings.Contains(d.Read(name), secret)) // in no file
		is.True(!strings.Contains(name, secret))
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "parent", id)
	is.True(!strings.Contains(log.String()+fmt.Sprintf("%v %s %q %#v %+v", id, id, id, id, struct{ I notes.Identity }{id}), secret))
}

func TestEphemeral_IsMarkedAndNeverTheSame(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	one, two := notes.Ephemeral(), notes.Ephemeral()
	is.True(one != two)
	s, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: one})
	is.NoErr(err)
	is.True(strings.Contains(d.Read(s.RelPath()+"/session.json"), `"ephemeral":true`))
	is.True(strings.Contains(d.Read(s.RelPath()+"/shepherd.md"), "made up for this parent"))
	same, err := notes.Open(t.Context(), notes.Config{FS: d.View(), Parent: one})
	is.NoErr(err)
	is.Equal(same.RelPath(), s.RelPath())
}

// A crash can leave the index behind the record; the next opening alone mends it.
func TestOpen_MendsTheIndex(t *testing.T) {
	for name, harm := range map[string]func(d *notestest.Disk, index string){
		"old":     func(d *notestest.Disk, index string) { d.Write(index, "# Session 0001") },
		"empty":   func(d *notestest.Disk, index string) { d.Write(index, "") },
		"removed": func(d *notestest.Disk, index string) { d.Remove(index) },
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			d := notestest.NewDisk()
			s := open(t, d.View(), "me")
			reserve(t, s, "scout")
			index := s.RelPath() + "/shepherd.md"
			right := d.Read(index)
			harm(d, index)
			record := d.Read(s.RelPath() + "/session.json")
			open(t, d.View(), "me")
			is.Equal(d.Read(index), right)
			is.Equal(d.Read(s.RelPath()+"/session.json"), record) // which was right all along
		})
	}
}
