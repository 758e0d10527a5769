package herdr_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func stores(t *testing.T) map[string]herdr.Store {
	return map[string]herdr.Store{
		"in memory":            herdr.MemoryStore(),
		"in a file":            herdr.FileStore(aferofs.OS(t.TempDir()), ".shepherd/herdr.json"),
		"in a file, in memory": herdr.FileStore(aferofs.Memory(), ".shepherd/herdr.json"),
	}
}

func TestStore(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			all, err := s.List()
			is.NoErr(err)
			is.Equal(len(all), 0)
			is.NoErr(s.Delete("nobody"))
			a := herdr.Record{Key: "a", Parent: "p", Agent: "x", Pane: "w1:p1", PID: 7, Made: time.Now().UTC().Truncate(time.Second)}
			is.NoErr(s.Put(a))
			is.NoErr(s.Put(herdr.Record{Key: "b"}))
			a.Terminal = "term_1"
			is.NoErr(s.Put(a)) // in place of the first
			is.NoErr(s.Delete("b"))
			all, err = s.List()
			is.NoErr(err)
			is.Equal(all, []herdr.Record{a})
		})
	}
}

func TestStore_UsedByManyAtOnce_LosesNothing(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					if err := s.Put(herdr.Record{Key: fmt.Sprint(i)}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			all, err := s.List()
			is.NoErr(err)
			is.Equal(len(all), 20)
		})
	}
}

func TestFileStore_LeavesAFileThatIsNotItsAlone(t *testing.T) {
	for _, text := range []string{"notes of mine", `{"version":2,"agents":[]}`} {
		is := is.New(t)
		dir := t.TempDir()
		is.NoErr(os.WriteFile(filepath.Join(dir, "r.json"), []byte(text), 0o600))
		s := herdr.FileStore(aferofs.OS(dir), "r.json")
		is.True(s.Put(herdr.Record{Key: "a"}) != nil)
		_, err := s.List()
		is.True(err != nil)
		got, err := os.ReadFile(filepath.Join(dir, "r.json"))
		is.NoErr(err)
		is.Equal(string(got), text)
	}
}

func TestRecords_FollowTheAgent(t *testing.T) {
	is := is.New(t)
	store := herdr.MemoryStore()
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Store, o.Parent = store, "me" })
	target := r.mustLaunch(lifecycle.Spec{ID: "agent-1"})
	all, err := store.List()
	is.NoErr(err)
	is.Equal(len(all), 1)
	rec := all[0]
	is.Equal(rec.Parent, "me")
	is.Equal(rec.Agent, lifecycle.AgentID("agent-1"))
	is.Equal(rec.Pane, string(target))
	is.True(strings.HasPrefix(rec.Terminal, "term_"))
	is.True(rec.PID > 0)
	is.Equal(rec.Dir, r.server.Links().Dirs()[0])
	is.Equal(rec.Host, os.Getpid())
	orphans, err := r.herdr.Orphans()
	is.NoErr(err)
	is.Equal(len(orphans), 0) // it has us

	is.NoErr(r.herdr.Close(t.Context(), target))
	all, err = store.List()
	is.NoErr(err)
	is.Equal(len(all), 0)
}

func TestALaunchThatCannotBeRecorded_IsNotMade(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Store = readOnly{} })
	_, err := r.launch(lifecycle.Spec{})
	is.True(errors.Is(err, fs.ErrPermission))
	r.nothingIsLeft()
}

type readOnly struct{}

func (readOnly) List() ([]herdr.Record, error) { return nil, nil }
func (readOnly) Put(herdr.Record) error        { return fs.ErrPermission }
func (readOnly) Delete(string) error           { return nil }

// dead makes the store's records those of a process that has ended.
func dead(t *testing.T, store herdr.Store, parent string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	all, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range all {
		rec.Host, rec.Parent = cmd.Process.Pid, parent
		if err := store.Put(rec); err != nil {
			t.Fatal(err)
		}
	}
}

// Ruling R13: letting go leaves panes, programs and directories, and a later process can take
// them over (R14).
func TestDetach_LeavesAgentsAlone_AndAnotherProcessAdoptsThem(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		store := herdr.MemoryStore()
		mine := func(o *herdr.Options) { o.Store, o.Parent = store, "me" }
		r := start(t, herdrtest.Options{}, linked, mine)
		target := r.mustLaunch(lifecycle.Spec{ID: "agent-1"})
		p := lifecycle.PromptID("shepherd-prompt-00000000-0123456789ab")
		is.NoErr(r.herdr.Submit(t.Context(), target, lifecycle.Submission{Prompt: p, Text: "think 300ms\nsay later"}))
		r.until(target, "working", working)
		is.NoErr(r.herdr.Detach())
		r.eventually("no subscription is open", func() bool { return r.server.Streams() == 0 })
		is.Equal(len(r.server.Panes()), 2)

		r.herdr = r.another(mine)
		is.True(errors.Is(r.herdr.Adopt(t.Context(), "agent-2", target, p), lifecycle.ErrUnknownAgent))
		is.NoErr(r.herdr.Adopt(t.Context(), "agent-1", target, p))
		if linked {
			o := r.until(target, "settled", func(o lifecycle.Observation) bool { return o.Signal.Prompt == p && o.Signal.Final() })
			is.Equal(o.Signal.Text, "later")
		} else {
			r.until(target, "at rest", func(o lifecycle.Observation) bool { return o.State == lifecycle.Idle })
		}
		is.NoErr(r.herdr.Close(t.Context(), target))
		r.nothingIsLeft()
		all, err := store.List()
		is.NoErr(err)
		is.Equal(len(all), 0)
	}
}

func TestAdopt_OfWhatIsGone(t *testing.T) {
	is := is.New(t)
	store := herdr.MemoryStore()
	mine := func(o *herdr.Options) { o.Store = store }
	r := start(t, herdrtest.Options{}, true, mine)
	target := r.mustLaunch(lifecycle.Spec{ID: "agent-1"})
	is.NoErr(r.herdr.Detach())
	r.server.ClosePane(string(target))
	r.herdr = r.another(mine)
	is.True(errors.Is(r.herdr.Adopt(t.Context(), "agent-1", target, ""), lifecycle.ErrAgentGone))
	o, _ := r.herdr.Observe(target)
	is.Equal(o.State, lifecycle.Gone)
}

func TestPrune_ClosesOurOrphans_AndNobodyElses(t *testing.T) {
	is := is.New(t)
	ours, theirs := herdr.MemoryStore(), herdr.MemoryStore()
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Store = ours })
	orphan := r.mustLaunch(lifecycle.Spec{})
	restarted := r.mustLaunch(lifecycle.Spec{})
	is.NoErr(r.herdr.Detach())
	dead(t, ours, "me")
	other := r.another(func(o *herdr.Options) { o.Store = theirs })
	stranger, err := other.Launch(t.Context(), lifecycle.Spec{Name: "other"})
	is.NoErr(err)
	is.NoErr(other.Detach())
	dead(t, theirs, "somebody else")
	strangers, err := theirs.List()
	is.NoErr(err)
	for _, rec := range strangers {
		is.NoErr(ours.Put(rec)) // in one store
	}
	r.server.Replace(string(restarted), "claude") // its name is another's by now

	r.herdr = r.another(func(o *herdr.Options) { o.Store, o.Parent = ours, "me" })
	pruned, err := r.herdr.Prune(t.Context())
	is.NoErr(err)
	is.Equal(len(pruned), 2)
	is.Equal(r.server.Panes(), []string{"w1:p1", string(restarted), string(stranger)})
	is.Equal(len(r.server.Links().Dirs()), 1)
	left, err := ours.List()
	is.NoErr(err)
	is.Equal(left, strangers)
	is.True(orphan != stranger)
}

func TestPrune_WithoutAServer_ForgetsWhatHasEndedWithIt(t *testing.T) {
	is := is.New(t)
	store := herdr.MemoryStore()
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Store = store })
	r.mustLaunch(lifecycle.Spec{})
	is.NoErr(r.herdr.Detach())
	dead(t, store, "")
	r.server.Stop()
	r.herdr = r.another(func(o *herdr.Options) { o.Store = store })
	pruned, err := r.herdr.Prune(t.Context())
	is.NoErr(err)
	is.Equal(len(pruned), 1)
	is.Equal(len(r.server.Links().Dirs()), 0)
}
