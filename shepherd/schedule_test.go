package shepherd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/shepherd/shepherdtest"
)

// TestRandomSchedules plays seeded random lives of a few agents, with failing calls and a
// failing notifier, several hands at once, and then checks what must always be so.
func TestRandomSchedules(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	settled, told := 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &schedule{rig: rig{shepherdtest.New(t, shepherd.Config{PromptTimeout: 10 * time.Minute}), is.New(t)}, t: t}
				s.run(seed)
				settled += len(s.results)
				told += len(s.Told.Completions())
			})
		})
	}
	t.Logf("%d seeds: %d prompts settled, %d completions told", seeds, settled, told)
}

type schedule struct {
	rig
	t *testing.T

	mu      sync.Mutex
	agents  []shepherd.AgentID
	prompts []shepherd.Prompt
	watches map[shepherd.WatchID]shepherd.Registration
	stopped map[shepherd.WatchID]bool
	results map[shepherd.PromptID]shepherd.Result
}

func (s *schedule) run(seed uint64) {
	s.watches, s.stopped = map[shepherd.WatchID]shepherd.Registration{}, map[shepherd.WatchID]bool{}
	s.arrangeFaults(seed)
	var wg sync.WaitGroup
	for hand := range uint64(3) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, hand))
			for range 40 {
				s.act(r)
				time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Hour) // deadlines, retries and hangs are over
	s.check()
}

// arrangeFaults makes one call in eight go wrong, in a way that depends on the seed alone.
func (s *schedule) arrangeFaults(seed uint64) {
	s.Faults.Choose = func(op lifecycletest.Op, n int) lifecycletest.Fault {
		r := rand.New(rand.NewPCG(seed, uint64(n)<<8|uint64(len(op))))
		if r.IntN(8) > 0 {
			return lifecycletest.Fault{}
		}
		switch {
		case op == lifecycletest.Submit && r.IntN(2) == 0:
			return lifecycletest.Fault{Err: lifecycle.ErrOutcomeUnknown, After: r.IntN(2) == 0}
		case r.IntN(3) == 0:
			return lifecycletest.Fault{Delay: time.Duration(r.IntN(12_000)) * time.Millisecond}
		}
		return lifecycletest.Fault{Err: errors.New("a fault on purpose")}
	}
	s.Told.Before = func(ctx context.Context, offer int, _ shepherd.Notification) error {
		r := rand.New(rand.NewPCG(seed, uint64(offer)))
		switch r.IntN(10) {
		case 0:
			panic("the notifier panics on purpose")
		case 1:
			<-ctx.Done()
			return ctx.Err()
		case 2, 3:
			return errors.New("the notifier refuses on purpose")
		}
		return nil
	}
}

func pick[T any](r *rand.Rand, l []T) (T, bool) {
	if len(l) == 0 {
		var zero T
		return zero, false
	}
	return l[r.IntN(len(l))], true
}

func (s *schedule) act(r *rand.Rand) {
	s.mu.Lock()
	agent, some := pick(r, s.agents)
	prompt, prompted := pick(r, s.prompts)
	s.mu.Unlock()
	ctx := s.t.Context()
	switch hand := s.Herdr.Agent(agent); {
	case !some || r.IntN(10) == 0:
		if id, err := s.Shepherd.Start(ctx, shepherd.Spec{Name: fmt.Sprint("agent", r.IntN(3))}); err == nil {
			s.mu.Lock()
			s.agents = append(s.agents, id)
			s.mu.Unlock()
		}
	case !prompted || r.IntN(3) == 0:
		if p, err := s.Shepherd.Prompt(ctx, agent, "work"); p.ID != "" {
			_ = err // a refused submission has a settled prompt
			s.mu.Lock()
			s.prompts = append(s.prompts, p)
			s.mu.Unlock()
		}
	default:
		s.stir(r, hand, agent, prompt)
	}
}

// stir is something that happens to an agent or to a prompt.
func (s *schedule) stir(r *rand.Rand, hand *lifecycletest.Agent, agent shepherd.AgentID, prompt shepherd.Prompt) {
	given := len(hand.Prompts()) > 0
	switch n := r.IntN(12); {
	case n < 4 && given:
		newest := hand.Prompts()[len(hand.Prompts())-1].Prompt
		hand.Signal(lifecycle.Signal{Prompt: newest, Kind: lifecycle.Finished, Text: "text of " + string(newest)})
	case n == 4 && given:
		hand.Fail("401")
	case n == 5:
		hand.Block()
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		hand.Work()
	case n == 6:
		hand.Human()
		time.Sleep(time.Second)
		hand.Rest()
	case n == 7:
		if r.IntN(3) == 0 {
			hand.Exit("exit status 1")
		}
	case n == 8:
		if r.IntN(3) == 0 {
			_ = s.CloseAgent(s.t.Context(), agent) // a fault may stop it
		}
	case n == 9:
		_, err := s.WaitFor(s.t.Context(), shepherd.WaitOptions{Timeout: time.Duration(r.IntN(60)+1) * time.Second, Keep: r.IntN(2) == 0}, prompt.ID)
		s.NoErr(err)
	default:
		s.watchSome(r)
	}
}

func (s *schedule) watchSome(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []shepherd.PromptID
	for range r.IntN(4) + 1 {
		p, _ := pick(r, s.prompts)
		ids = append(ids, p.ID)
	}
	reg, err := s.Shepherd.Watch(s.t.Context(), ids...)
	s.NoErr(err)
	s.watches[reg.WatcherID] = reg
	if r.IntN(6) == 0 {
		s.stopped[reg.WatcherID] = s.Unwatch(reg.WatcherID) == nil
	}
}

func (s *schedule) check() {
	s.results = map[shepherd.PromptID]shepherd.Result{}
	dir := ""
	for _, p := range s.prompts {
		got, ok := s.Result(p.ID)
		if !ok {
			s.t.Errorf("%s has not settled", p.ID)
			continue
		}
		s.results[p.ID] = got
		dir = p.SessionRelative
		if got.Status == shepherd.StatusDone && got.Text != "text of "+string(p.ID) {
			s.t.Errorf("%s has the text %q", p.ID, got.Text) // none is credited to the wrong prompt
		}
		s.Equal(got.NoteErr, nil)
		s.Equal(s.NoteStatus(p), string(shepherd.NoteStatus(got.Status)))
	}
	if dir == "" {
		return
	}
	s.Equal(directories(s.Disk), []string{dir}) // one parent, one project, one directory
	indexed := entries(s.t, s.Disk, dir)
	s.Equal(len(indexed), len(s.prompts))
	for _, p := range s.prompts {
		s.Equal(indexed[path.Base(p.NotePath)], s.NoteStatus(p))
	}
	s.checkReports()
}

// checkReports: each watcher has each of its prompts reported once, in its registration, to
// the notifier, or in the list of what could not be delivered.
func (s *schedule) checkReports() {
	type key struct {
		w shepherd.WatchID
		p shepherd.PromptID
	}
	reports := map[key]int{}
	count := func(cs []shepherd.Completion) {
		for _, c := range cs {
			reports[key{c.WatcherID, c.PromptID}]++
			s.Equal(c.Status, s.results[c.PromptID].Status)
		}
	}
	for _, reg := range s.watches {
		count(reg.Completed)
	}
	count(s.Told.Completions())
	for _, u := range s.Undelivered() {
		count(u.Notification.Completions)
	}
	for id, reg := range s.watches {
		for _, p := range reg.PromptIDs {
			if n := reports[key{id, p}]; n > 1 || (n == 0 && !s.stopped[id]) {
				s.t.Errorf("%s was reported to %s %d times", p, id, n)
			}
		}
	}
}
