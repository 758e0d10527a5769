package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/watch"
)

const window = 25 * time.Millisecond

// world is a registry on an in-memory Herdr and a service that watches it, on real time.
func world(b *testing.B, n watch.Notifier, agents int) (*lifecycle.Registry, *watch.Service, *lifecycletest.Herdr, []lifecycle.AgentID) {
	b.Helper()
	mem := &lifecycletest.Herdr{}
	reg, err := lifecycle.New(mem, lifecycle.Options{MaxAgents: agents})
	if err != nil {
		b.Fatal(err)
	}
	s, err := watch.New(reg, n, watch.Options{Coalesce: window})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = reg.Close(context.Background())
	})
	ids := make([]lifecycle.AgentID, agents)
	for i := range ids {
		if ids[i], err = reg.Start(b.Context(), lifecycle.Spec{Name: "scout"}); err != nil {
			b.Fatal(err)
		}
	}
	return reg, s, mem, ids
}

func submit(b *testing.B, reg *lifecycle.Registry, agent lifecycle.AgentID) lifecycle.PromptID {
	b.Helper()
	c, err := reg.Claim(b.Context(), agent, lifecycle.ClaimOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Submit(b.Context(), "look around"); err != nil {
		b.Fatal(err)
	}
	return c.ID()
}

// BenchmarkTenThousandWatchedPrompts has 10,000 prompts in flight at once: it submits and
// watches them all, settles them all, and waits until the notifier was told of each.
func BenchmarkTenThousandWatchedPrompts(b *testing.B) {
	const prompts = 10_000
	told := make(chan struct{}, prompts)
	reg, s, mem, agents := world(b, watch.NotifierFunc(func(_ context.Context, n watch.Notification) error {
		for range n.Completions {
			told <- struct{}{}
		}
		return nil
	}), prompts)
	flock := mem.Agents()
	b.ReportAllocs()
	var registering, settling time.Duration
	for b.Loop() {
		began := time.Now()
		for _, a := range agents {
			if _, err := s.Watch(submit(b, reg, a)); err != nil {
				b.Fatal(err)
			}
		}
		registering += time.Since(began)
		began = time.Now()
		for _, a := range flock {
			a.Finish("done")
		}
		for range prompts {
			<-told
		}
		settling += time.Since(began)
	}
	perPrompt := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N*prompts) }
	b.ReportMetric(perPrompt(registering), "ns/submit+watch")
	b.ReportMetric(perPrompt(settling), "ns/settle+told")
}

// BenchmarkWatchThousandPrompts registers one watcher for 1,000 prompts in flight.
func BenchmarkWatchThousandPrompts(b *testing.B) {
	reg, s, _, agents := world(b, watch.NotifierFunc(func(context.Context, watch.Notification) error { return nil }), 1000)
	var ids []lifecycle.PromptID
	for _, a := range agents {
		ids = append(ids, submit(b, reg, a))
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := s.Watch(ids...)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Unwatch(r.WatcherID); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSignalToNotifier is the time from an agent's signal to the notifier's call,
// beyond the coalescing window.
func BenchmarkSignalToNotifier(b *testing.B) {
	told := make(chan time.Time)
	reg, s, mem, agents := world(b, watch.NotifierFunc(func(context.Context, watch.Notification) error {
		told <- time.Now()
		return nil
	}), 1)
	agent := mem.Agents()[0]
	var total time.Duration
	for b.Loop() {
		if _, err := s.Watch(submit(b, reg, agents[0])); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		agent.Finish("done")
		total += (<-told).Sub(began) - window
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns/beyond-window")
}

// BenchmarkPrompt is one prompt's whole life in lifecycle, without watch or note.
func BenchmarkPrompt(b *testing.B) {
	reg, _, mem, agents := world(b, nil, 1)
	agent := mem.Agents()[0]
	b.ReportAllocs()
	for b.Loop() {
		id := submit(b, reg, agents[0])
		agent.Finish("done")
		if _, err := reg.Wait(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
