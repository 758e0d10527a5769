package notestest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// TestSessions carries out the verification plan of the note-session specification, a
// subtest for each of its points, and its primary assertion, as far as notes alone can show
// them. open gives, as in [TestFS], a constructor of values over one and the same new, empty
// tree; it is called again where a point needs another project.
func TestSessions(t *testing.T, open func(t *testing.T) func() notes.FS) {
	for _, point := range plan12 {
		t.Run(point.name, func(t *testing.T) { point.test(&world{T: t, open: open(t), project: open}) })
	}
}

var plan12 = []struct {
	name string
	test func(w *world)
}{
	{"1 Shared folder regression", sharedFolder},
	{"2 Repeated calls", repeatedCalls},
	{"3 Parallel fan-out", parallelFanOut},
	{"4 Different parent sessions", differentParents},
	{"5 Resume after restart", resumeAfterRestart},
	{"6 Project isolation", projectIsolation},
	{"7 Lifecycle separation", lifecycleSeparation},
	{"8 Bare start", bareStart},
	{"9 Failure paths", failurePaths},
	{"10 Security and concurrency", securityAndConcurrency},
	{"11 Child context", childContext},
	{"12 Legacy data", legacyData},
	{"Primary assertion", primaryAssertion},
}

func sharedFolder(w *world) {
	s := w.session("parent")
	scout := w.reserve(s, "scout")
	w.finalize(scout, notes.Completed, "found it")
	planner := w.reserve(s, "planner")
	for _, note := range []*notes.Note{scout, planner} {
		if dir := path.Dir(note.RelPath()); dir != s.RelPath() {
			w.Errorf("%s is not in %s", note.RelPath(), s.RelPath())
		}
		w.mustContain(w.index(s), "(./"+path.Base(note.RelPath())+")")
	}
	w.wantDirs(1)
}

func repeatedCalls(w *world) {
	first := w.reserve(w.session("parent"), "scout")
	again := w.session("parent") // nothing is shared but the disk
	second := w.reserve(again, "scout")
	if path.Dir(first.RelPath()) != path.Dir(second.RelPath()) || first.RelPath() == second.RelPath() {
		w.Errorf("notes %s and %s", first.RelPath(), second.RelPath())
	}
	w.wantFiles(again, "scout-01.md", "scout-02.md")
	w.wantDirs(1)
}

func parallelFanOut(w *world) {
	s, other := w.session("parent"), w.session("parent")
	plans := make([]notes.Plan, 20)
	for i := range plans {
		plans[i] = notes.Plan{Agent: []string{"scout", "Scout", "planner"}[i%3], Start: true}
	}
	list, err := s.ReserveAll(w.ctx(), plans)
	w.ok(err)
	if got := len(w.read(s).Notes); got != 20 { // before any of them is launched
		w.Fatalf("%d notes reserved", got)
	}
	var wg sync.WaitGroup
	for i, note := range list {
		wg.Go(func() { // another process reserves while this one finalises
			if _, err := other.Reserve(w.ctx(), notes.Plan{Agent: "reviewer"}); err != nil {
				w.Error(err)
			}
			if err := note.Finalize(w.ctx(), notes.Outcome{Status: notes.Completed, Text: fmt.Sprint("text ", i)}); err != nil {
				w.Error(err)
			}
		})
	}
	wg.Wait()
	info, files := w.read(s), map[string]bool{}
	for _, n := range info.Notes {
		files[n.File] = true
		w.mustContain(w.index(s), "(./"+n.File+")")
		if want := notes.Completed; n.Agent != "reviewer" && n.Status != want {
			w.Errorf("%s is %s", n.File, n.Status)
		}
	}
	if len(info.Notes) != 40 || len(files) != 40 {
		w.Errorf("%d entries, %d names; want 40", len(info.Notes), len(files))
	}
	for i, note := range list {
		if text, err := note.Text(); err != nil || text != fmt.Sprint("text ", i) {
			w.Errorf("%s has %q, %v", note.RelPath(), text, err)
		}
	}
}

func differentParents(w *world) {
	one, err := notes.Open(w.ctx(), notes.Config{FS: w.open(), Parent: notes.Identity("one"), SessionName: "Fix login"})
	w.ok(err)
	two, err := notes.Open(w.ctx(), notes.Config{FS: w.open(), Parent: notes.Identity("two"), SessionName: "Fix login"})
	w.ok(err)
	if one.RelPath() == two.RelPath() {
		w.Errorf("both have %s", one.RelPath())
	}
	w.reserve(one, "scout")
	if got := len(w.read(two).Notes); got != 0 {
		w.Errorf("%d notes of the one are listed by the other", got)
	}
	w.wantDirs(2)
}

func resumeAfterRestart(w *world) {
	before := w.session("parent")
	note := w.reserve(before, "scout")
	w.ok(before.Close()) // the process ends
	after := w.session("parent")
	if after.RelPath() != before.RelPath() {
		w.Fatalf("resumed %s, not %s", after.RelPath(), before.RelPath())
	}
	left, err := after.Unfinished(w.ctx())
	w.ok(err)
	if len(left) != 1 || left[0].RelPath() != note.RelPath() || left[0].Status != notes.Detached {
		w.Fatalf("left are %+v", left)
	}
	w.ok(left[0].Finalize(w.ctx(), notes.Outcome{Status: notes.Interrupted}))
	w.wantStatus(after, "scout-01.md", notes.Interrupted)
	w.wantDirs(1)
}

func projectIsolation(w *world) {
	here := w.session("parent")
	w.reserve(here, "scout")
	there := &world{T: w.T, open: w.project(w.T)}
	if here.Path() == there.session("parent").Path() && w.open().Root() != there.open().Root() {
		w.Errorf("both projects use %s", here.Path())
	}
	if got := len(there.read(there.session("parent")).Notes); got != 0 {
		w.Errorf("%d notes of the one project are listed by the other", got)
	}
	w.wantDirs(1)
	there.wantDirs(1)
}

func lifecycleSeparation(w *world) {
	s := w.session("parent")
	for i := range 3 { // agent and prompt ids of three registries
		id := fmt.Sprintf("shepherd-agent-%08x-", i)
		note, err := w.session("parent").Reserve(w.ctx(), notes.Plan{Agent: "scout", AgentID: id, PromptID: id})
		w.ok(err)
		if path.Dir(note.RelPath()) != s.RelPath() {
			w.Errorf("%s is not in %s", note.RelPath(), s.RelPath())
		}
	}
	w.wantDirs(1)
}

func bareStart(w *world) {
	s := w.session("parent") // what Start does: it binds, and reserves nothing
	w.wantFiles(s)
	w.reserve(w.session("parent"), "scout")
	w.wantFiles(s, "scout-01.md")
	w.wantDirs(1)
}

func failurePaths(w *world) {
	s := w.session("parent")
	endings := []notes.Status{notes.Failed, notes.TimedOut, notes.Cancelled, notes.Blocked, notes.Interrupted}
	for i, status := range endings {
		note := w.reserve(s, "scout")
		w.ok(note.Finalize(w.ctx(), notes.Outcome{Status: status, Error: "why: " + string(status), ReturnCode: i + 1}))
		file := path.Base(note.RelPath())
		w.wantStatus(s, file, status)
		view, err := notes.ReadNote(w.ctx(), w.open(), path.Base(s.RelPath()), file)
		w.ok(err)
		if view.Error != "why: "+string(status) || view.ReturnCode == nil || *view.ReturnCode != i+1 {
			w.Errorf("%s says %q, %v", file, view.Error, view.ReturnCode)
		}
		w.mustContain(view.Raw, "status: "+string(status), "## Shepherd orchestration")
	}
	w.ok(s.Close())
	if got := len(w.read(s).Notes); got != len(endings) {
		w.Errorf("%d notes are left", got)
	}
	w.wantDirs(1)
}

func securityAndConcurrency(w *world) {
	s := w.session("parent")
	agents := []string{"../../etc/passwd", "/abs", `C:\x`, "a/b", "a b", ".", "..", "scout\x00", "s\u202eout", "-rf", "shepherd"}
	for _, agent := range agents {
		note := w.reserve(s, agent)
		if rel, err := filepath.Rel(s.Path(), note.Path()); err != nil || rel != filepath.Base(rel) || strings.HasPrefix(rel, "-") {
			w.Errorf("agent %q: %s leaves %s", agent, note.Path(), s.Path())
		}
	}
	if a, b := w.reserve(s, "Scout one"), w.reserve(s, "scout-one"); a.RelPath() == b.RelPath() {
		w.Errorf("two agents share %s", a.RelPath())
	}
	var wg sync.WaitGroup
	for i := range 8 { // exclusive numbering
		wg.Go(func() {
			_, err := notes.Open(w.ctx(), notes.Config{FS: w.open(), Parent: notes.Identity(fmt.Sprint("parent", i)), SessionName: fmt.Sprint("task ", i)})
			if err != nil {
				w.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := notes.List(w.ctx(), w.open())
	w.ok(err)
	numbers := map[int]bool{}
	for _, info := range list {
		numbers[info.Number] = true
		if info.Kind != notes.KindSession {
			w.Errorf("%s is %s", info.Dir, info.Kind)
		}
	}
	if len(numbers) != 9 || len(list) != 9 {
		w.Errorf("%d sessions have %d numbers; want 9", len(list), len(numbers))
	}
	if _, err := notes.ReadNote(w.ctx(), w.open(), path.Base(s.RelPath()), "../0002-task-1/session.json"); !errors.Is(err, notes.ErrInvalid) {
		w.Errorf("reading another session's file: %v", err)
	}
}

func childContext(w *world) {
	s := w.session("parent")
	seen := map[string]bool{}
	for range 3 {
		note := w.reserve(s, "scout")
		want := fmt.Sprintf(`Shepherd note session context:
- Session directory: %s
- Session fieldnotes: %s
- Your note: %s
- Relative note: %s

Read the fieldnotes first. Write detailed findings to your assigned note when
appropriate. Do not edit shepherd.md or another agent's note.`,
			s.Path(), filepath.Join(s.Path(), "shepherd.md"), note.Path(), note.RelPath())
		if note.Brief() != want {
			w.Errorf("the child is told\n%s\nwant\n%s", note.Brief(), want)
		}
		seen[note.Path()] = true
	}
	if len(seen) != 3 {
		w.Errorf("3 children have %d notes", len(seen))
	}
}

// legacySession is what the predecessor without bindings wrote.
const legacySession = `{
  "sessionName": "fix-login", "slug": "fix-login", "ordinal": 1, "directoryName": "0001-fix-login",
  "projectRoot": "/repo", "status": "running", "modes": ["single"],
  "startedAt": "2025-08-14T09:30:00.000Z", "updatedAt": "2025-08-14T09:30:00.000Z",
  "artifacts": []
}
`

func legacyData(w *world) {
	fsys := w.open()
	const dir = ".shepherd/sessions/0001-fix-login"
	w.ok(fsys.MkdirAll(dir))
	w.ok(fsys.Create(dir+"/session.json", []byte(legacySession)))
	s, err := notes.Open(w.ctx(), notes.Config{FS: w.open(), Parent: notes.Identity("parent"), SessionName: "fix-login"})
	w.ok(err)
	if s.RelPath() == dir {
		w.Errorf("the legacy session was attached")
	}
	w.reserve(s, "scout")
	if now := must(fsys.ReadFile(dir + "/session.json"))(w); string(now) != legacySession {
		w.Errorf("the legacy session was changed:\n%s", now)
	}
	info, err := notes.Read(w.ctx(), fsys, "0001-fix-login")
	w.ok(err)
	if info.Kind != notes.KindLegacy {
		w.Errorf("it is listed as %s", info.Kind)
	}
	w.wantDirs(2)
}

func primaryAssertion(w *world) {
	const n = 12
	for i := range n { // each invocation from another process
		w.finalize(w.reserve(w.session("parent"), fmt.Sprint("agent", i%4)), notes.Completed, "done")
	}
	s := w.session("parent")
	info := w.read(s)
	files := map[string]bool{}
	for _, note := range info.Notes {
		files[note.File] = true
		w.mustContain(w.index(s), "(./"+note.File+")")
	}
	if len(files) != n || len(info.Strays) != 0 {
		w.Errorf("%d distinct notes, strays %q; want %d", len(files), info.Strays, n)
	}
	w.wantDirs(1)
}

// world is one project and what tests do in it.
type world struct {
	*testing.T
	open    func() notes.FS
	project func(t *testing.T) func() notes.FS
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.Cleanup(cancel)
	return ctx
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// session opens a session as another process would.
func (w *world) session(parent string) *notes.Session {
	w.Helper()
	s, err := notes.Open(w.ctx(), notes.Config{FS: w.open(), Parent: notes.Identity(parent)})
	w.ok(err)
	return s
}

func (w *world) reserve(s *notes.Session, agent string) *notes.Note {
	w.Helper()
	note, err := s.Reserve(w.ctx(), notes.Plan{Agent: agent, Start: true})
	w.ok(err)
	return note
}

func (w *world) finalize(n *notes.Note, status notes.Status, text string) {
	w.Helper()
	w.ok(n.Finalize(w.ctx(), notes.Outcome{Status: status, Text: text}))
}

func (w *world) read(s *notes.Session) notes.SessionInfo {
	w.Helper()
	info, err := notes.Read(w.ctx(), w.open(), path.Base(s.RelPath()))
	w.ok(err)
	return info
}

func (w *world) index(s *notes.Session) string {
	w.Helper()
	return string(must(w.open().ReadFile(s.RelPath() + "/shepherd.md"))(w))
}

func (w *world) mustContain(text string, parts ...string) {
	w.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.Errorf("%q is not in\n%s", part, text)
		}
	}
}

func (w *world) wantStatus(s *notes.Session, file string, want notes.Status) {
	w.Helper()
	for _, n := range w.read(s).Notes {
		if n.File == file && n.Status != want {
			w.Errorf("%s is %s, want %s", file, n.Status, want)
		}
	}
}

// wantFiles checks the notes on disk, entries and files both.
func (w *world) wantFiles(s *notes.Session, want ...string) {
	w.Helper()
	var entries, files []string
	for _, n := range w.read(s).Notes {
		entries = append(entries, n.File)
	}
	for _, f := range must(w.open().ReadDir(s.RelPath()))(w) {
		if strings.HasSuffix(f.Name(), ".md") && f.Name() != "shepherd.md" {
			files = append(files, f.Name())
		}
	}
	if !slices.Equal(entries, want) || !slices.Equal(files, want) {
		w.Errorf("entries %q, files %q, want %q", entries, files, want)
	}
}

// wantDirs checks how many numbered directories there are.
func (w *world) wantDirs(want int) {
	w.Helper()
	files, err := w.open().ReadDir(".shepherd/sessions")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.Fatal(err)
	}
	var dirs []string
	for _, f := range files {
		if f.IsDir() && !strings.HasPrefix(f.Name(), ".") {
			dirs = append(dirs, f.Name())
		}
	}
	if len(dirs) != want {
		w.Errorf("numbered directories are %q, want %d", dirs, want)
	}
}
