package herdr_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// rig is a fake server, a Herdr on it, and a registry on that.
type rig struct {
	*testing.T
	server   *herdrtest.Server
	herdr    *herdr.Herdr
	linked   bool
	texts    chan string // what reached the agents
	registry *lifecycle.Registry
}

// limit is how long a test waits for what has to happen.
const limit = time.Minute

// rules are in a hurry, but for those that a test is about.
var rules = lifecycle.Rules{
	LinkBack: 300 * time.Millisecond, RestHold: 100 * time.Millisecond, BlockedHold: 100 * time.Millisecond,
	GoneHold: 100 * time.Millisecond, NoStart: 2 * time.Second, LookRetry: 50 * time.Millisecond,
}

func start(t *testing.T, o herdrtest.Options, linked bool, change ...func(*herdr.Options)) *rig {
	t.Helper()
	outside(t)
	r := &rig{T: t, linked: linked, texts: make(chan string, 1000)}
	script := o.Script
	if script == nil {
		script = herdrtest.Obey
	}
	o.Script = func(turn *herdrtest.Turn) {
		r.texts <- turn.Text
		script(turn)
	}
	r.server = herdrtest.Start(t, o)
	r.herdr = r.another(change...)
	return r
}

// outside makes the test's process one that runs in no pane.
func outside(t *testing.T) {
	for _, name := range []string{"HERDR_SOCKET_PATH", "HERDR_SESSION", "HERDR_PANE_ID", "SHEPHERD_DEPTH"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
}

// another is one more Herdr on the server, as another process would be.
func (r *rig) another(change ...func(*herdr.Options)) *herdr.Herdr {
	o := herdr.Options{Socket: r.server.Socket, Dir: r.TempDir(), CallTimeout: 2 * time.Second}
	if r.linked {
		o.Links = r.server.Links()
	}
	for _, f := range change {
		f(&o)
	}
	h := herdr.New(o)
	r.Cleanup(func() {
		if err := h.Detach(); err != nil {
			r.Errorf("detach: %v", err)
		}
	})
	return h
}

// agent starts an agent in the registry. It returns its id and its pane.
func (r *rig) agent() (lifecycle.AgentID, string) {
	r.Helper()
	if r.registry == nil {
		reg, err := lifecycle.New(r.herdr, lifecycle.Options{Rules: rules, MaxAgents: 100})
		if err != nil {
			r.Fatal(err)
		}
		r.registry = reg
		r.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			if err := reg.Close(ctx); err != nil {
				r.Errorf("close: %v", err)
			}
		})
	}
	id, err := r.registry.Start(r.Context(), lifecycle.Spec{Name: "scout"})
	if err != nil {
		r.Fatal(err)
	}
	c := r.claim(id)
	defer c.Release()
	return id, string(c.Target())
}

func (r *rig) claim(id lifecycle.AgentID) *lifecycle.Claim {
	r.Helper()
	c, err := r.registry.Claim(r.Context(), id, lifecycle.ClaimOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *rig) prompt(id lifecycle.AgentID, text string) lifecycle.PromptID {
	r.Helper()
	c := r.claim(id)
	if err := c.Submit(r.Context(), text); err != nil {
		r.Fatal(err)
	}
	return c.ID()
}

func (r *rig) result(p lifecycle.PromptID) lifecycle.Result {
	r.Helper()
	all, err := r.registry.WaitFor(r.Context(), lifecycle.WaitOptions{Timeout: limit, Keep: true}, p)
	if err != nil {
		r.Fatal(err)
	}
	return all[0]
}

// settles fails the test unless the prompt ends with the status.
func (r *rig) settles(p lifecycle.PromptID, want lifecycle.Status) lifecycle.Result {
	r.Helper()
	res := r.result(p)
	if res.Status != want {
		r.Fatalf("the prompt ended as %q (%s), want %q", res.Status, res.Error, want)
	}
	return res
}

// until waits for a level of the target, by changes alone.
func (r *rig) until(t lifecycle.Target, what string, is func(lifecycle.Observation) bool) lifecycle.Observation {
	r.Helper()
	late := time.After(limit)
	for {
		o, changed := r.herdr.Observe(t)
		if is(o) {
			return o
		}
		select {
		case <-changed:
		case <-late:
			r.Fatalf("not %s: %+v", what, o)
		}
	}
}

func working(o lifecycle.Observation) bool { return o.State == lifecycle.Working }

// eventually polls for what is outside of the program.
func (r *rig) eventually(what string, is func() bool) {
	r.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("not in time: %s", what)
		}
	}
}

// received empties what has reached the agents.
func (r *rig) received() (all []string) {
	for {
		select {
		case text := <-r.texts:
			all = append(all, text)
		default:
			return all
		}
	}
}

// nothingIsLeft checks that only what was there before the test's agents is there.
func (r *rig) nothingIsLeft() {
	r.Helper()
	if panes := r.server.Panes(); len(panes) != 1 {
		r.Errorf("panes are left: %v", panes)
	}
	if dirs := r.server.Links().Dirs(); len(dirs) != 0 {
		r.Errorf("directories are left: %v", dirs)
	}
	r.eventually("no subscription is open", func() bool { return r.server.Streams() == 0 })
}
