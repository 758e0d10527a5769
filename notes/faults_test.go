package notes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// kinds of faults: what a step fails with, or how everything ends at it.
var kinds = []struct {
	name  string
	err   error
	stays bool // all later steps that change something fail as well
}{
	{"no space", syscall.ENOSPC, false},
	{"no space any more", syscall.ENOSPC, true},
	{"read-only from here on", syscall.EROFS, true},
	{"permission", syscall.EACCES, false},
	{"input/output", syscall.EIO, false},
	{"process killed", notestest.ErrKill, false},
	{"power cut", notestest.ErrPowerCut, false},
}

// A scripted life of two sessions, with a fault at every single step of every operation, of
// every kind in turn; and then the next processes open both sessions and find everything
// that was acknowledged.
func TestFaults_EveryStepOfEveryOperation(t *testing.T) {
	notes.SmallPages(t, 1) // the oldest note gets a page, is late, and gets another
	steps := 0
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, -1, nil, false)
		l.script()
		l.check("no fault")
		steps = l.step
	})
	if t.Failed() {
		return
	}
	points, stride := 0, 1
	if testing.Short() {
		stride = 7
	}
	for _, kind := range kinds {
		for at := 0; at < steps; at += stride {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t, at, kind.err, kind.stays)
				l.script()
				l.check(fmt.Sprintf("%s at step %d (%s)", kind.name, at, l.hit))
				if l.hit.Op != "" {
					points++
				}
			})
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d steps, %d kinds of faults: %d points held", steps, len(kinds), points)
}

// life is one run of the script and what was acknowledged in it.
type life struct {
	t    *testing.T
	disk *notestest.Disk

	mu   sync.Mutex
	step int            // steps so far
	at   int            // the step with the fault
	err  error          // the fault
	hit  notestest.Step // where it was

	dirs  map[string]string // parent → session directory, acknowledged
	facts map[string]*fact  // file → what is known of the note
}

// fact is what was acknowledged of a note.
type fact struct {
	parent string
	file   string // relative to the project
	child  string // what its child wrote
	status notes.Status
	late   string
	may    []ending // how it may have ended: after a call that failed, more than one way
}

type ending struct {
	status notes.Status
	text   string
}

func newLife(t *testing.T, at int, err error, stays bool) *life {
	l := &life{t: t, disk: notestest.NewDisk(), at: at, err: err, dirs: map[string]string{}, facts: map[string]*fact{}}
	l.disk.Fault = func(s notestest.Step) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.step++
		switch now := l.step - 1; {
		case now == l.at:
			l.hit = s
			return l.err
		case now > l.at && l.at >= 0 && stays && s.Part != "":
			return l.err
		}
		return nil
	}
	return l
}

func (l *life) ctx() context.Context { return l.t.Context() }

func (l *life) script() {
	one, two := l.disk.View(), l.disk.View()
	a := l.open(one, "one")
	scout := l.reserve(a, "one", notes.Plan{Agent: "scout", Label: "a: b", Start: true})
	b := l.open(two, "two")
	l.write(scout, "scout's report\r\n---\nwith a rule")
	l.finalize(scout, notes.Outcome{Status: notes.Completed, Text: "the scout's word\n"})
	pair := l.reserveAll(a, "one", notes.Plan{Agent: "planner", Start: true}, notes.Plan{Agent: "reviewer"})
	other := l.reserve(b, "two", notes.Plan{Agent: "scout", Start: true})
	l.start(pair[1])
	l.write(pair[0], "planner wrote this")
	l.finalize(pair[0], notes.Outcome{Status: notes.TimedOut, Error: "no answer within 1h"})
	l.late(pair[0], notes.Outcome{Status: notes.Completed, Text: "the planner's late word"})
	l.finalize(other, notes.Outcome{Status: notes.Failed, Error: "provider said 401", ReturnCode: 1})
	l.finalize(scout, notes.Outcome{Status: notes.Cancelled, Text: "must not replace the first"})
	one.Kill()
	again := l.open(l.disk.View(), "one")
	if again == nil {
		return
	}
	left, err := again.Unfinished(l.ctx())
	if err != nil {
		return
	}
	for _, u := range left {
		if err := u.Adopt(l.ctx()); err == nil {
			l.finalize(&handle{u.Note, u.RelPath()}, notes.Outcome{Status: notes.Interrupted})
		}
	}
}

// handle is a note, or nil if its reservation failed.
type handle struct {
	*notes.Note
	file string
}

func (l *life) config(v *notestest.View, parent string) notes.Config {
	return notes.Config{FS: v, Parent: notes.Identity(parent), SessionName: "the same name"}
}

func (l *life) open(v *notestest.View, parent string) *notes.Session {
	s, err := notes.Open(l.ctx(), l.config(v, parent))
	if err != nil {
		return nil
	}
	if was, ok := l.dirs[parent]; ok && was != s.RelPath() {
		l.t.Errorf("%s: %s was resumed, not %s", l.hit, s.RelPath(), was)
	}
	l.dirs[parent] = s.RelPath()
	return s
}

func (l *life) reserve(s *notes.Session, parent string, p notes.Plan) *handle {
	return l.reserveAll(s, parent, p)[0]
}

func (l *life) reserveAll(s *notes.Session, parent string, plans ...notes.Plan) []*handle {
	handles := make([]*handle, len(plans))
	if s == nil {
		return handles
	}
	list, err := s.ReserveAll(l.ctx(), plans)
	if err != nil {
		return handles
	}
	for i, n := range list {
		status := notes.Pending
		if plans[i].Start {
			status = notes.Running
		}
		handles[i] = &handle{n, n.RelPath()}
		l.facts[n.RelPath()] = &fact{parent: parent, file: n.RelPath(), status: status}
	}
	return handles
}

func (l *life) start(h *handle) {
	if h == nil {
		return
	}
	f := l.facts[h.file]
	if err := h.Start(l.ctx(), "w1:p1"); err != nil {
		f.may = append(f.may, ending{status: notes.Running})
		return
	}
	f.status = notes.Running
}

// write is what a child does while its prompt runs.
func (l *life) write(h *handle, text string) {
	if h != nil {
		l.disk.Append(h.file, text)
		l.facts[h.file].child += text
	}
}

func (l *life) finalize(h *handle, o notes.Outcome) {
	if h == nil {
		return
	}
	f := l.facts[h.file]
	if f == nil || f.status.Final() {
		_ = h.Finalize(l.ctx(), o) // not acknowledged, or it changes nothing
		return
	}
	f.may = append(f.may, ending{o.Status, o.Text})
	if err := h.Finalize(l.ctx(), o); err == nil {
		f.status = o.Status
	}
}

func (l *life) late(h *handle, o notes.Outcome) {
	if h == nil {
		return
	}
	if err := h.Late(l.ctx(), o); err == nil && l.facts[h.file].status == notes.TimedOut {
		l.facts[h.file].late = o.Text
	}
}

// check opens everything anew, as the next processes would, and compares.
func (l *life) check(where string) {
	l.disk.Fault = nil
	before := l.disk.View()
	strays, err := notes.List(l.ctx(), before)
	if err != nil {
		l.t.Errorf("%s: list: %v", where, err)
	}
	for _, info := range strays {
		if info.Kind != notes.KindSession && info.Kind != notes.KindAbandoned {
			l.t.Errorf("%s: %s is %s: %v", where, info.Dir, info.Kind, info.Err)
		}
	}
	began := time.Now()
	for _, parent := range []string{"one", "two"} {
		l.checkSession(where, parent)
	}
	if waited := time.Since(began); waited > 100*time.Millisecond {
		l.t.Errorf("%s: the next processes waited %v", where, waited)
	}
	l.checkNumbers(where)
}

func (l *life) checkSession(where, parent string) {
	view := l.disk.View()
	s, err := notes.Open(l.ctx(), l.config(view, parent))
	if err != nil {
		l.t.Errorf("%s: open %s: %v", where, parent, err)
		return
	}
	if was, ok := l.dirs[parent]; ok && was != s.RelPath() {
		l.t.Errorf("%s: %s has %s, not %s", where, parent, s.RelPath(), was)
	}
	if err := s.Recovered(); err != nil {
		l.t.Errorf("%s: %s was taken for corrupt: %v", where, parent, err)
	}
	if _, err := s.Unfinished(l.ctx()); err != nil {
		l.t.Errorf("%s: unfinished: %v", where, err)
	}
	next, err := s.Reserve(l.ctx(), notes.Plan{Agent: "scout", Start: true}) // it can go on
	if err != nil {
		l.t.Errorf("%s: reserve: %v", where, err)
		return
	}
	if _, used := l.facts[next.RelPath()]; used {
		l.t.Errorf("%s: %s was given out twice", where, next.RelPath())
	}
	if err := next.Finalize(l.ctx(), notes.Outcome{Status: notes.Completed, Text: "next"}); err != nil {
		l.t.Errorf("%s: finalize: %v", where, err)
	}
	info, err := notes.Read(l.ctx(), view, path.Base(s.RelPath()))
	if err != nil || !json.Valid([]byte(l.disk.Read(s.RelPath()+"/session.json"))) {
		l.t.Errorf("%s: read: %v", where, err)
	}
	index := l.disk.Read(s.RelPath() + "/shepherd.md")
	listed := map[string]notes.NoteInfo{}
	for _, n := range info.Notes {
		listed[n.RelPath] = n
		if !strings.Contains(index, "(./"+n.File+"): "+string(n.Status)) {
			l.t.Errorf("%s: the index does not say that %s is %s", where, n.File, n.Status)
		}
	}
	for _, stray := range info.Strays { // not indexed, so it was never given out
		if _, known := l.facts[s.RelPath()+"/"+stray]; known {
			l.t.Errorf("%s: %s was acknowledged and is not indexed", where, stray)
		}
	}
	for _, f := range l.facts {
		if f.parent == parent {
			l.checkNote(where, view, f, listed)
		}
	}
}

func (l *life) checkNote(where string, view *notestest.View, f *fact, listed map[string]notes.NoteInfo) {
	n, ok := listed[f.file]
	if !ok {
		l.t.Errorf("%s: %s is lost", where, f.file)
		return
	}
	view2, err := notes.ReadNote(l.ctx(), view, path.Base(path.Dir(f.file)), n.File)
	if err != nil {
		l.t.Errorf("%s: %v", where, err)
		return
	}
	if !strings.Contains(view2.Body, f.child) {
		l.t.Errorf("%s: %s lost what its child wrote:\n%s", where, f.file, view2.Raw)
	}
	may := f.may
	if !f.status.Final() {
		may = append(may, ending{status: f.status}, ending{status: notes.Detached})
	}
	if is := (ending{n.Status, view2.Text}); !slices.Contains(may, is) {
		l.t.Errorf("%s: %s ended as %q, want one of %q", where, f.file, is, may)
	}
	if view2.LateText != f.late && f.late != "" {
		l.t.Errorf("%s: %s has the late text %q, want %q", where, f.file, view2.LateText, f.late)
	}
	if got := strings.Count(view2.Raw, "## Shepherd orchestration"); n.Status.Final() && got != 1 {
		l.t.Errorf("%s: %s has %d sections", where, f.file, got)
	}
}

// checkNumbers: each directory has a number of its own, and no parent has two sessions.
func (l *life) checkNumbers(where string) {
	list, err := notes.List(l.ctx(), l.disk.View())
	if err != nil {
		l.t.Errorf("%s: list: %v", where, err)
	}
	numbers, parents := map[int]bool{}, map[string]bool{}
	for _, info := range list {
		if numbers[info.Number] {
			l.t.Errorf("%s: number %d twice", where, info.Number)
		}
		numbers[info.Number] = true
		if info.Kind == notes.KindSession && parents[info.Parent] {
			l.t.Errorf("%s: %s has two sessions", where, info.Parent)
		}
		parents[info.Parent] = info.Kind == notes.KindSession || parents[info.Parent]
	}
}

// A disk that is full, and stays full, while a note is finalised (C43 a).
func TestC43_DiskFullWhileFinalising(t *testing.T) {
	for _, part := range []string{"temp", "write", "sync", "rename", "dirsync"} {
		t.Run(part, func(t *testing.T) {
			disk := notestest.NewDisk()
			s := open(t, disk.View(), "parent")
			note := reserve(t, s, "scout")
			disk.Append(note.RelPath(), "the child's report")
			before := disk.Read(note.RelPath())
			disk.Fault = func(step notestest.Step) error {
				if step.Part == part && step.Op == "update" {
					return syscall.ENOSPC
				}
				return nil
			}
			err := note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed, Text: "done"})
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), note.RelPath()) {
				t.Errorf("the error is %v", err)
			}
			if after := disk.Read(note.RelPath()); part != "dirsync" && after != before {
				t.Errorf("the note was changed:\n%s", after)
			}
			for _, name := range disk.Names(s.RelPath()) {
				if strings.Contains(name, ".tmp-") {
					t.Errorf("%s was left", name)
				}
			}
			disk.Fault = nil // there is room again
			if err := note.Finalize(t.Context(), notes.Outcome{Status: notes.Completed, Text: "done"}); err != nil {
				t.Fatal(err)
			}
			if text, err := note.Text(); text != "done" || err != nil {
				t.Errorf("the text is %q, %v", text, err)
			}
		})
	}
}
