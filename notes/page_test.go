package notes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// book is a session whose older notes stand in pages.
type book struct {
	*notes.Session
	disk  *notestest.Disk
	notes []*notes.Note
}

func newBook(t *testing.T, n int) *book {
	t.Helper()
	d := notestest.NewDisk()
	b := &book{open(t, d.View(), "me"), d, nil}
	b.write(t, n)
	return b
}

func (b *book) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		note := reserve(t, b.Session, "scout")
		finalize(t, note, notes.Outcome{Status: notes.Completed, Text: "text of " + note.RelPath()})
		b.notes = append(b.notes, note)
	}
}

// record is session.json as anybody can read it.
func (b *book) record(t *testing.T) (r struct {
	Pages []string
	Notes []struct{ File, Status, LateStatus string }
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(b.disk.Read(b.RelPath()+"/session.json")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// listed are the files of the session's notes, as the next process sees them.
func (b *book) listed(t *testing.T) (files []string) {
	t.Helper()
	info, err := notes.Read(t.Context(), b.disk.View(), path.Base(b.RelPath()))
	if err != nil || info.Err != nil {
		t.Fatal(err, info.Err)
	}
	for _, n := range info.Notes {
		files = append(files, n.File)
	}
	return files
}

func (b *book) files() (files []string) {
	for _, n := range b.notes {
		files = append(files, path.Base(n.RelPath()))
	}
	return files
}

// faultOn is a fault of all operations of a kind on the files whose names have this in them.
func faultOn(op, in string, err error) func(notestest.Step) error {
	return func(s notestest.Step) error {
		if s.Op == op && strings.Contains(s.Name, in) {
			return err
		}
		return nil
	}
}

func TestPages_KeepTheRecordShort(t *testing.T) {
	is := is.New(t)
	notes.SmallPages(t, 3)
	b := newBook(t, 20)
	r := b.record(t)
	is.True(len(r.Notes) >= 3 && len(r.Notes) < 6)
	is.Equal(3*len(r.Pages)+len(r.Notes), 20)
	is.Equal(b.listed(t), b.files()) // all of them, in their order
	for _, f := range b.files() {
		is.True(strings.Contains(b.disk.Read(b.RelPath()+"/shepherd.md"), f))
	}

	again := open(t, b.disk.View(), "me") // another process goes on, and the first one after it
	is.Equal(again.RelPath(), b.RelPath())
	other := &book{again, b.disk, b.notes}
	other.write(t, 7)
	b.notes = other.notes
	b.write(t, 1)
	is.Equal(b.listed(t), b.files())
	text, err := b.notes[0].Text()
	is.NoErr(err)
	is.Equal(text, "text of "+b.notes[0].RelPath())
}

// A note that has not ended can still change, and holds those after it.
func TestPages_WaitForOldNotes(t *testing.T) {
	is := is.New(t)
	notes.SmallPages(t, 2)
	d := notestest.NewDisk()
	b := &book{open(t, d.View(), "me"), d, nil}
	old := reserve(t, b.Session, "old")
	b.write(t, 10)
	is.Equal(len(b.record(t).Pages), 0)
	finalize(t, old, notes.Outcome{Status: notes.Completed})
	is.Equal(len(b.record(t).Pages), 4) // three stay
}

func TestPages_ALateEndingChangesOne(t *testing.T) {
	is := is.New(t)
	notes.SmallPages(t, 2)
	d := notestest.NewDisk()
	b := &book{open(t, d.View(), "me"), d, nil}
	b.write(t, 2)
	late := reserve(t, b.Session, "late")
	finalize(t, late, notes.Outcome{Status: notes.TimedOut, ReturnCode: 124})
	b.notes = append(b.notes, late)
	b.write(t, 6)
	before := b.record(t).Pages
	is.NoErr(late.Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: "after all"}))

	after := b.record(t).Pages
	is.Equal(len(after), len(before))
	for i := range after {
		is.Equal(after[i] != before[i], i == 1) // only its own
	}
	is.Equal(b.listed(t), b.files())
	is.Equal(view(t, d.View(), late).Late, notes.Completed)
	is.Equal(view(t, d.View(), late).LateText, "after all")
}

func TestPages_OfAnyLayoutAreRead(t *testing.T) {
	is := is.New(t)
	notes.SmallPages(t, 2)
	b := newBook(t, 6)
	for _, name := range b.record(t).Pages {
		name = b.RelPath() + "/" + name
		var any map[string]any
		is.NoErr(json.Unmarshal([]byte(b.disk.Read(name)), &any))
		data, err := json.MarshalIndent(any, "", "\t")
		is.NoErr(err)
		b.disk.Write(name, string(data))
	}
	is.Equal(b.listed(t), b.files())
}

// Notes whose page cannot be written stay in session.json until it can.
func TestPages_ThatCannotBeWritten_AreMadeUpFor(t *testing.T) {
	is := is.New(t)
	notes.SmallPages(t, 2)
	b := newBook(t, 3)
	b.disk.Fault = faultOn("create", ".json", syscall.ENOSPC)
	b.write(t, 3)
	is.Equal(len(b.record(t).Pages), 0)
	is.Equal(len(b.record(t).Notes), 6)
	b.disk.Fault = nil
	b.write(t, 1)
	is.Equal(len(b.record(t).Pages), 2) // made up for
	is.Equal(b.listed(t), b.files())
}

// A transaction that failed may leave a page that nothing names. The next one finds it; if
// somebody changed it meanwhile it is in the way, and is not touched.
func TestPages_LeftByAFailure(t *testing.T) {
	for name, content := range map[string]string{"as it was": "", "changed": "{}"} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			notes.SmallPages(t, 2)
			b := newBook(t, 3)
			b.disk.Fault = faultOn("update", "session.json", syscall.ENOSPC)
			_, err := b.Reserve(t.Context(), notes.Plan{Agent: "scout"})
			is.True(errors.Is(err, syscall.ENOSPC))
			b.disk.Fault = nil
			left := ""
			for _, name := range b.disk.Names(b.RelPath()) {
				if strings.Contains(name, "notes-0001-") {
					left = name
				}
			}
			is.True(left != "")
			if content != "" {
				b.disk.Write(left, content)
			}
			before := b.disk.Read(left)
			b.write(t, 4)
			is.Equal(b.disk.Read(left), before)
			is.Equal(b.listed(t)[:3], b.files()[:3])
			is.Equal(len(b.record(t).Pages) > 0, content == "")
		})
	}
}

// Ruling R17 for a page: what it says is lost, so the session is corrupt. A page that cannot
// be read for now is no reason to leave the session.
func TestPages_ThatAreLostOrUnreadable(t *testing.T) {
	const first = "notes-0001-"
	named := func(b *book) string {
		for _, name := range b.disk.Names(b.RelPath()) {
			if strings.Contains(name, first) {
				return name
			}
		}
		return ""
	}
	for name, harm := range map[string]func(b *book){
		"removed":       func(b *book) { b.disk.Remove(named(b)) },
		"not JSON":      func(b *book) { b.disk.Write(named(b), "{") },
		"a list":        func(b *book) { b.disk.Write(named(b), "[]") },
		"without notes": func(b *book) { b.disk.Write(named(b), "{}") },
		"a note leaves": func(b *book) {
			b.disk.Write(named(b), `{"notes":[{"file":"../x-01.md","agent":"x","slug":"x","ordinal":1}]}`)
		},
		"a note twice": func(b *book) {
			b.disk.Write(named(b), `{"notes":[{"file":"scout-05.md","agent":"scout","slug":"scout","ordinal":5}]}`)
		},
		"the name leaves":    func(b *book) { replace(`"pages": ["`, `"pages": ["../`)(b.disk, b.RelPath()) },
		"the name is ours":   func(b *book) { replace(`"pages": ["`, `"pages": ["session.json","`)(b.disk, b.RelPath()) },
		"the name is a note": func(b *book) { replace(`"pages": ["`, `"pages": ["scout-01.md","`)(b.disk, b.RelPath()) },
		"pages is a text":    func(b *book) { replace(`"pages": [`, `"pages": "x", "y": [`)(b.disk, b.RelPath()) },
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			notes.SmallPages(t, 2)
			b := newBook(t, 6)
			harm(b)
			before := everything(b.disk, b.RelPath())
			fresh := open(t, b.disk.View(), "me")
			is.True(fresh.RelPath() != b.RelPath())
			var corrupt *notes.CorruptError
			is.True(errors.As(fresh.Recovered(), &corrupt))
			is.Equal(everything(b.disk, b.RelPath()), before) // left as it was
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		is := is.New(t)
		notes.SmallPages(t, 2)
		b := newBook(t, 6)
		b.disk.Fault = faultOn("read", first, syscall.EIO)
		_, err := notes.Open(t.Context(), notes.Config{FS: b.disk.View(), Parent: notes.Identity("me")})
		is.True(errors.Is(err, syscall.EIO))
		is.True(strings.Contains(fmt.Sprint(err), first)) // it is named
		b.disk.Fault = nil
		is.Equal(open(t, b.disk.View(), "me").RelPath(), b.RelPath())
	})
}
