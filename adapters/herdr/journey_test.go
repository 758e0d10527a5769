//go:build unix

package herdr_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

// world is a place with real pi children in panes: herdrtest's, or a real Herdr's.
type world struct {
	*testing.T
	*is.I
	herdr *herdr.Herdr
	pi    *pitest.Pi
	types func(pane, text string) // a human types, and presses Enter
	key   func(pane, key string)
	panes func() []string

	sh   *shepherd.Shepherd
	told chan shepherd.Notification
}

const patience = 60 * time.Second

// begin makes a Shepherd in the world.
func (w *world) begin() {
	w.Helper()
	w.told = make(chan shepherd.Notification, 100)
	sh, err := shepherd.New(shepherd.Config{
		Herdr: w.herdr, FS: aferofs.OS(w.TempDir()), Parent: shepherd.Parent("journey"),
		Notifier: shepherd.NotifierFunc(func(_ context.Context, n shepherd.Notification) error { w.told <- n; return nil }),
	})
	w.NoErr(err)
	w.sh = sh
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := sh.Close(ctx); err != nil {
			w.Errorf("close: %v", err)
		}
	})
}

// start starts an agent and returns it with its pane.
func (w *world) start(name string) (shepherd.AgentID, string) {
	w.Helper()
	before := w.panes()
	id, err := w.sh.Start(w.Context(), shepherd.Spec{Name: name})
	w.NoErr(err)
	for _, p := range w.panes() {
		if !slices.Contains(before, p) {
			return id, p
		}
	}
	w.Fatal("the agent has no pane")
	return "", ""
}

func (w *world) prompt(agent shepherd.AgentID, text string) shepherd.PromptID {
	w.Helper()
	p, err := w.sh.Prompt(w.Context(), agent, text)
	w.NoErr(err)
	return p.ID
}

func (w *world) ends(p shepherd.PromptID, status shepherd.Status, text string) {
	w.Helper()
	all, err := w.sh.WaitFor(w.Context(), shepherd.WaitOptions{Timeout: patience}, p)
	w.NoErr(err)
	if r := all[0]; r.Status != status || (status.OK() && r.Text != text) || (!status.OK() && !strings.Contains(r.Error, text)) {
		w.Errorf("the prompt ended as %s with %q %q, want %s with %q", r.Status, r.Text, r.Error, status, text)
	}
}

// endsBadly: a pi whose terminal goes away says in time that it was interrupted, or does not.
func (w *world) endsBadly(p shepherd.PromptID) {
	w.Helper()
	all, err := w.sh.WaitFor(w.Context(), shepherd.WaitOptions{Timeout: patience}, p)
	w.NoErr(err)
	w.Logf("%s: %s", all[0].Status, all[0].Error)
	w.True(all[0].Status == shepherd.StatusFailed || all[0].Status == shepherd.StatusCancelled)
}

func (w *world) notified() shepherd.Notification {
	w.Helper()
	select {
	case n := <-w.told:
		return n
	case <-time.After(patience):
		w.Fatal("nobody was told")
		return shepherd.Notification{}
	}
}

// state waits for an agent's state.
func (w *world) state(agent shepherd.AgentID, want shepherd.State) {
	w.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s, err := w.sh.Status(agent)
		w.NoErr(err)
		if s.State == want {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("the agent is %v, not %v", s.State, want)
		}
	}
}

// watcherSpecsList is the list of the watcher spec's live verification, by name.
func watcherSpecsList(t *testing.T, open func(t *testing.T) *world) {
	for _, test := range []struct {
		name string
		f    func(w *world)
	}{
		{"single watchers", func(w *world) {
			scout, _ := w.start("scout")
			p := w.prompt(scout, "slow 500ms looked around")
			reg, err := w.sh.Watch(w.Context(), p)
			w.NoErr(err)
			w.Equal(reg.Pending, []shepherd.PromptID{p})
			n := w.notified()
			w.Equal(len(n.Completions), 1)
			w.Equal(n.Completions[0].PromptID, p)
			w.Equal(n.Completions[0].Text, "looked around")
			w.Equal(n.WatcherID, reg.WatcherID)
		}},
		{"array watchers, and completion ordering", func(w *world) {
			scout, _ := w.start("scout")
			planner, _ := w.start("planner")
			slow, fast := w.prompt(scout, "slow 1500ms late"), w.prompt(planner, "say early")
			reg, err := w.sh.Watch(w.Context(), slow, fast)
			w.NoErr(err)
			var got []shepherd.PromptID
			for _, c := range reg.Completed {
				got = append(got, c.PromptID)
			}
			for len(got) < 2 { // independently, as they settle
				for _, c := range w.notified().Completions {
					got = append(got, c.PromptID)
				}
			}
			w.Equal(got, []shepherd.PromptID{fast, slow})
		}},
		{"fast completions", func(w *world) {
			scout, _ := w.start("scout")
			for range 5 {
				p := w.prompt(scout, "say at once")
				reg, err := w.sh.Watch(w.Context(), p)
				w.NoErr(err)
				if len(reg.Completed) == 0 {
					w.Equal(w.notified().Completions[0].Text, "at once")
				} else {
					w.Equal(reg.Completed[0].Text, "at once")
				}
			}
			w.Equal(len(w.told), 0)
		}},
		{"notification queuing", func(w *world) {
			scout, _ := w.start("scout")
			p := w.prompt(scout, "slow 300ms x")
			one, err := w.sh.Watch(w.Context(), p)
			w.NoErr(err)
			two, err := w.sh.Watch(w.Context(), p)
			w.NoErr(err)
			ids := []shepherd.WatchID{w.notified().WatcherID, w.notified().WatcherID}
			w.True(slices.Contains(ids, one.WatcherID) && slices.Contains(ids, two.WatcherID))
		}},
		{"failure states", func(w *world) {
			scout, pane := w.start("scout")
			w.ends(w.prompt(scout, "status 401 no credit left"), shepherd.StatusFailed, "no credit left")
			p := w.prompt(scout, "hang")
			w.state(scout, lifecycle.Working)
			w.key(pane, "esc")
			w.ends(p, shepherd.StatusCancelled, "interrupted")
			w.ends(w.prompt(scout, "bash kill -9 $PPID"), shepherd.StatusFailed, "gone")
		}},
		{"duplicate observation", func(w *world) {
			scout, _ := w.start("scout")
			p := w.prompt(scout, "slow 300ms x")
			reg, err := w.sh.Watch(w.Context(), p, p)
			w.NoErr(err)
			w.Equal(reg.PromptIDs, []shepherd.PromptID{p})
			w.Equal(len(w.notified().Completions), 1)
			all, err := w.sh.Wait(w.Context(), p, p)
			w.NoErr(err)
			w.Equal(len(all), 2)
			w.Equal(len(w.told), 0)
		}},
		{"parent session cleanup", func(w *world) {
			scout, pane := w.start("scout")
			before := w.panes()
			p := w.prompt(scout, "hang")
			_, err := w.sh.Watch(w.Context(), p)
			w.NoErr(err)
			w.state(scout, lifecycle.Working)
			w.NoErr(w.sh.Close(w.Context()))
			w.Equal(len(w.told), 0)
			w.Equal(w.panes(), before) // the working child is left alone (ruling R13)
			o, _ := w.herdr.Observe(lifecycle.Target(pane))
			w.Equal(o.State, lifecycle.Working)
		}},
		{"closing an agent leaves no pane", func(w *world) {
			before := w.panes()
			scout, _ := w.start("scout")
			w.ends(w.prompt(scout, "say x"), shepherd.StatusDone, "x")
			w.NoErr(w.sh.CloseAgent(w.Context(), scout))
			w.Equal(w.panes(), before)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := open(t)
			w.begin()
			test.f(w)
		})
	}
}

// aChildsLife is one child, one prompt after the other, and all that a human does in between.
func aChildsLife(w *world) {
	w.begin()
	scout, pane := w.start("scout")
	w.ends(w.prompt(scout, "say one"), shepherd.StatusDone, "one")

	w.types(pane, "slow 1s for the human")
	w.state(scout, lifecycle.Working)
	w.state(scout, lifecycle.Idle)
	w.ends(w.prompt(scout, "say two"), shepherd.StatusDone, "two")

	w.ends(w.prompt(scout, "status 500 passing\nsay three"), shepherd.StatusDone, "three") // tried again by pi itself

	p := w.prompt(scout, "slow 20s four never")
	w.state(scout, lifecycle.Working)
	w.key(pane, "esc")
	w.ends(p, shepherd.StatusCancelled, "interrupted")

	for _, command := range []string{"/reload", "/new"} {
		w.types(pane, command)
		time.Sleep(500 * time.Millisecond) // a human takes longer
		w.ends(w.prompt(scout, "say after "+command), shepherd.StatusDone, "after "+command)
	}

	text := "!ls\n/quit\n@x\n" + strings.Repeat("\ttab \"double\" 'single' `back` $HOME \\n\r\n[paste #1 +3 lines] \U0001F411\n", 400) + "say got it\n\n  "
	w.True(len(text) > 20_000)
	w.ends(w.prompt(scout, text), shepherd.StatusDone, "got it")
	_, got, _ := strings.Cut(w.pi.Model.Received(), "\n")
	w.True(strings.HasPrefix(got, text)) // byte for byte; the note's brief follows it
}

func TestWatcherSpecsList_WithRealPi(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: real pi children take a second each")
	}
	watcherSpecsList(t, fakeWorld)
}

func TestAChildsLife_WithRealPi(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: real pi children take a second each")
	}
	aChildsLife(fakeWorld(t))
}

func fakeWorld(t *testing.T) *world {
	r, p := withPi(t)
	return &world{T: t, I: is.New(t), herdr: r.herdr, pi: p, types: r.server.Human, key: r.server.Key, panes: r.server.Panes}
}

func TestLive_WatcherSpecsList(t *testing.T) {
	s := live(t)
	watcherSpecsList(t, s.world)
}

func TestLive_AChildsLife(t *testing.T) {
	s := live(t)
	aChildsLife(s.world(t))
}

func (s *liveServer) world(t *testing.T) *world {
	s.t = t
	h, p := s.withPi()
	return &world{T: t, I: is.New(t), herdr: h, pi: p, panes: s.panes,
		types: func(pane, text string) {
			s.must("pane.send_input", map[string]any{"pane_id": pane, "text": text, "keys": []string{"enter"}})
		},
		key: func(pane, key string) {
			s.must("pane.send_keys", map[string]any{"pane_id": pane, "keys": []string{key}})
		},
	}
}

// must is a request that is not refused.
func (s *liveServer) must(method string, params any) {
	s.t.Helper()
	if _, err := s.call(method, params); err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
}
