package headless

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestMain(m *testing.M) {
	headlesstest.Main(headlesstest.Obey)
	os.Exit(m.Run())
}

const prompt1 = lifecycle.PromptID("shepherd-prompt-0a1b2c3d-6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
const prompt2 = lifecycle.PromptID("shepherd-prompt-0a1b2c3d-7c9e6679-7425-40de-944b-e07fc1f90ae7")

// limit is how long a test waits for what has to happen.
const limit = time.Minute

func scripted(faults ...headlesstest.Fault) Options {
	return Options{Command: headlesstest.Command(faults...), StopGrace: 300 * time.Millisecond}
}

// herd returns a Herdr that is closed, and leaves no goroutine, when the test ends.
func herd(t *testing.T, o Options) *Herdr {
	t.Helper()
	before := runtime.NumGoroutine()
	h := New(o)
	t.Cleanup(func() {
		if err := h.CloseAll(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("CloseAll: %v", err)
		}
		eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	})
	return h
}

func launch(t *testing.T, h *Herdr) lifecycle.Target {
	t.Helper()
	target, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func submit(t *testing.T, h *Herdr, target lifecycle.Target, p lifecycle.PromptID, lines ...string) {
	t.Helper()
	if err := h.Submit(t.Context(), target, lifecycle.Submission{Prompt: p, Text: strings.Join(lines, "\n")}); err != nil {
		t.Fatal(err)
	}
}

// until waits for the level to be as asked, by its change channel alone.
func until(t *testing.T, h *Herdr, target lifecycle.Target, what string, ok func(lifecycle.Observation) bool) lifecycle.Observation {
	t.Helper()
	late := time.After(limit)
	for {
		o, changed := h.Observe(target)
		if ok(o) {
			return o
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("not %s; it is %+v", what, o)
		}
	}
}

func settled(t *testing.T, h *Herdr, target lifecycle.Target, p lifecycle.PromptID) lifecycle.Signal {
	t.Helper()
	return until(t, h, target, "settled", func(o lifecycle.Observation) bool { return o.Signal.Prompt == p && o.Signal.Final() }).Signal
}

func gone(o lifecycle.Observation) bool { return o.State == lifecycle.Gone }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("not in time: %s", what)
			return
		}
	}
}

func pid(t *testing.T, target lifecycle.Target) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(string(target), "pid:"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAPrompt_FromLaunchToAnswer(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	o, _ := h.Observe(target)
	is.Equal(o.State, lifecycle.Idle)
	is.Equal(o.Link, lifecycle.LinkUp)
	is.Equal(o.Turns, uint64(0))

	begun := time.Now()
	submit(t, h, target, prompt1, "say looking", "tool ls", "think 50ms", "say it is in retry.go")
	until(t, h, target, "working", func(o lifecycle.Observation) bool { return o.State == lifecycle.Working })
	s := settled(t, h, target, prompt1)
	is.Equal(s.Kind, lifecycle.Finished)
	is.Equal(s.Text, "it is in retry.go")
	is.True(!s.At.Before(begun))
	o, _ = h.Observe(target)
	is.Equal(o.State, lifecycle.Idle)
	is.Equal(o.Turns, uint64(1))

	reply, err := h.Reply(t.Context(), target, prompt1)
	is.NoErr(err)
	is.Equal(reply, "it is in retry.go")
	recent, err := h.Recent(t.Context(), target)
	is.NoErr(err)
	is.Equal(recent, "looking\nit is in retry.go")
}
