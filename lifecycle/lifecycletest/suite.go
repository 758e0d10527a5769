package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Harness is a Herdr under test, and agents that can be told what to do.
type Harness struct {
	Herdr lifecycle.Herdr
	// Spec starts an agent; the suite fills in the id.
	Spec lifecycle.Spec
	// Say is a prompt that the agent answers with the text.
	Say func(text string) string
	// Fail is a prompt that ends with an error whose message contains why.
	Fail func(why string) string
	// Hang is a prompt at which the agent works until it is closed.
	Hang func() string
	// Exit is a prompt at which the agent's program ends, without an answer.
	Exit func() string
	// Received is the text of the newest prompt as it reached the agent, or nil if that
	// cannot be told.
	Received func(t lifecycle.Target) string
	// Signals says that the agents have a link. Without one the suite reads states only.
	Signals bool
	// Patience is how long the agent may take for one thing; default 10 s.
	Patience time.Duration
}

// TestHerdr checks every sentence of the contract of lifecycle.Herdr. open is called once for
// each subtest and registers its own cleaning up.
func TestHerdr(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		f    func(s *suite)
	}{
		{"Launch returns an agent at rest that can take a prompt", (*suite).launch},
		{"Launch under an ended ctx is an error", (*suite).launchEnded},
		{"Submit returns before the answer, and the answer is a signal", (*suite).answer},
		{"the text arrives byte for byte", (*suite).bytes},
		{"each prompt has its own signal, and the last one's is gone after the next Submit", (*suite).next},
		{"an agent at work refuses with ErrAgentBusy and is not disturbed", (*suite).busy},
		{"an error of the agent is a failed signal with its message", (*suite).fail},
		{"an agent that ends is Gone, with how, for Observe, Look and Submit", (*suite).exit},
		{"Observe never blocks, and a change wakes all observers", (*suite).observe},
		{"a late observer sees what an early one saw", (*suite).late},
		{"a Look that finds nothing new wakes nobody", (*suite).look},
		{"calls end with their ctx", (*suite).ended},
		{"an unknown target is Gone", (*suite).unknown},
		{"Close ends the agent, twice is fine, and others live on", (*suite).close},
		{"many agents at once", (*suite).many},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t)
			if h.Patience == 0 {
				h.Patience = 10 * time.Second
			}
			test.f(&suite{T: t, Harness: h})
		})
	}
}

type suite struct {
	*testing.T
	Harness
}

func (s *suite) start() lifecycle.Target {
	s.Helper()
	spec := s.Spec
	spec.ID = lifecycle.AgentID("shepherd-agent-00000000-" + uuid.NewString())
	if spec.Name == "" {
		spec.Name = "scout"
	}
	ctx, cancel := context.WithTimeout(s.Context(), s.Patience)
	defer cancel()
	t, err := s.Herdr.Launch(ctx, spec)
	if err != nil {
		s.Fatalf("launch: %v", err)
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if err := s.Herdr.Close(ctx, t); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return t
}

func (s *suite) submit(t lifecycle.Target, text string) (lifecycle.PromptID, error) {
	id := lifecycle.PromptID("shepherd-prompt-00000000-" + uuid.NewString())
	ctx, cancel := context.WithTimeout(s.Context(), s.Patience)
	defer cancel()
	return id, s.Herdr.Submit(ctx, t, lifecycle.Submission{Prompt: id, Text: text})
}

func (s *suite) mustSubmit(t lifecycle.Target, text string) lifecycle.PromptID {
	s.Helper()
	id, err := s.submit(t, text)
	if err != nil {
		s.Fatalf("submit: %v", err)
	}
	return id
}

// until waits for a level, by changes alone.
func (s *suite) until(t lifecycle.Target, what string, is func(lifecycle.Observation) bool) lifecycle.Observation {
	s.Helper()
	limit := time.After(s.Patience)
	turns := uint64(0)
	for {
		o, changed := s.Herdr.Observe(t)
		if o.Turns < turns {
			s.Fatalf("turns went down from %d to %d", turns, o.Turns)
		}
		turns = o.Turns
		if is(o) {
			return o
		}
		select {
		case <-changed:
		case <-limit:
			s.Fatalf("not %s within %v: %+v", what, s.Patience, o)
		}
	}
}

// settled waits for the end of a prompt: its signal, or rest after a turn.
func (s *suite) settled(t lifecycle.Target, p lifecycle.PromptID) lifecycle.Observation {
	s.Helper()
	if !s.Signals {
		return s.until(t, "at rest after a turn", func(o lifecycle.Observation) bool {
			return o.Turns > 0 && o.State == lifecycle.Idle
		})
	}
	o := s.until(t, "settled", func(o lifecycle.Observation) bool { return o.Signal.Prompt == p && o.Signal.Final() })
	if o.Signal.At.IsZero() {
		s.Errorf("the signal has no time: %+v", o.Signal)
	}
	return o
}

func (s *suite) launch() {
	t := s.start()
	if t == "" || strings.ContainsFunc(string(t), func(r rune) bool { return !unicode.IsPrint(r) }) {
		s.Errorf("target %q cannot be shown", t)
	}
	o, _ := s.Herdr.Observe(t)
	if o.State != lifecycle.Idle {
		s.Errorf("state %v after Launch, want idle", o.State)
	}
	if (o.Link == lifecycle.LinkUp) != s.Signals {
		s.Errorf("link is %v, the harness says signals: %v", o.Link, s.Signals)
	}
	if o.Since.IsZero() || o.Seen.IsZero() {
		s.Errorf("since %v and seen %v must be known", o.Since, o.Seen)
	}
	s.settled(t, s.mustSubmit(t, s.Say("here")))
}

func (s *suite) launchEnded() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if t, err := s.Herdr.Launch(ctx, s.Spec); err == nil {
		_ = s.Herdr.Close(context.Background(), t)
		s.Error("launched all the same")
	}
}

func (s *suite) answer() {
	t := s.start()
	p := s.mustSubmit(t, s.Say("the answer"))
	o := s.settled(t, p)
	if s.Signals && (o.Signal.Kind != lifecycle.Finished || o.Signal.Text != "the answer") {
		s.Errorf("signal %+v", o.Signal)
	}
	if o.Turns == 0 {
		s.Error("no turn was counted")
	}
	s.until(t, "at rest", func(o lifecycle.Observation) bool { return o.State == lifecycle.Idle })
}

func (s *suite) bytes() {
	if s.Received == nil {
		s.Skip("the harness cannot tell what reached the agent")
	}
	t := s.start()
	odd := "! rm\n/quit\r\n\ttab  \"quoted\" 'x' `y` $HOME \\n @file [paste #1 +2 lines]\n---\n\u2028 \u00e4\u4e2d\U0001F411 "
	text := s.Say("ok") + "\n" + odd + strings.Repeat("long ", 4000)
	s.settled(t, s.mustSubmit(t, text))
	if got := s.Received(t); got != text {
		s.Errorf("%d bytes were sent, %d arrived; first difference at byte %d", len(text), len(got), difference(text, got))
	}
}

func difference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func (s *suite) next() {
	t := s.start()
	for i := range 3 {
		text := fmt.Sprintf("answer %d", i)
		p := s.mustSubmit(t, s.Say(text))
		if o, _ := s.Herdr.Observe(t); o.Signal.Prompt != p && o.Signal.Kind != lifecycle.NoSignal {
			s.Fatalf("after Submit of %s there is still the signal %+v", p, o.Signal)
		}
		if o := s.settled(t, p); s.Signals && o.Signal.Text != text {
			s.Errorf("prompt %d was answered with %q, want %q", i, o.Signal.Text, text)
		}
		s.until(t, "at rest", func(o lifecycle.Observation) bool { return o.State == lifecycle.Idle })
	}
}

func (s *suite) busy() {
	t := s.start()
	p := s.mustSubmit(t, s.Hang())
	s.until(t, "at work", func(o lifecycle.Observation) bool { return o.State == lifecycle.Working })
	if _, err := s.submit(t, s.Say("second")); !errors.Is(err, lifecycle.ErrAgentBusy) {
		s.Errorf("second submission: %v, want ErrAgentBusy", err)
	}
	o, _ := s.Herdr.Observe(t)
	if o.State != lifecycle.Working || (o.Signal.Kind != lifecycle.NoSignal && o.Signal.Prompt != p) {
		s.Errorf("the refusal disturbed the agent: %+v", o)
	}
}

func (s *suite) fail() {
	if !s.Signals {
		s.Skip("agents without a link cannot say why they failed")
	}
	t := s.start()
	o := s.settled(t, s.mustSubmit(t, s.Fail("no credit left")))
	if o.Signal.Kind != lifecycle.Failed || !strings.Contains(o.Signal.Error, "no credit left") {
		s.Errorf("signal %+v", o.Signal)
	}
}

func (s *suite) exit() {
	t := s.start()
	if _, err := s.submit(t, s.Exit()); err != nil && !errors.Is(err, lifecycle.ErrOutcomeUnknown) {
		s.Errorf("submit: %v", err)
	}
	o := s.until(t, "gone", func(o lifecycle.Observation) bool { return o.State == lifecycle.Gone })
	if o.Detail == "" {
		s.Error("no detail says how it went")
	}
	if o, err := s.Herdr.Look(s.Context(), t); err != nil || o.State != lifecycle.Gone {
		s.Errorf("look: %v %v", o.State, err)
	}
	if _, err := s.submit(t, s.Say("x")); !errors.Is(err, lifecycle.ErrAgentGone) {
		s.Errorf("submit to what is gone: %v, want ErrAgentGone", err)
	}
}

func (s *suite) observe() {
	t := s.start()
	_, one := s.Herdr.Observe(t)
	_, two := s.Herdr.Observe(t)
	s.mustSubmit(t, s.Hang())
	limit := time.After(s.Patience)
	for i, changed := range []<-chan struct{}{one, two} {
		select {
		case <-changed:
		case <-limit:
			s.Fatalf("observer %d was not woken", i+1)
		}
	}
}

func (s *suite) late() {
	t := s.start()
	early := s.settled(t, s.mustSubmit(t, s.Say("done")))
	late, _ := s.Herdr.Observe(t)
	if late.Signal != early.Signal || late.Turns != early.Turns {
		s.Errorf("early %+v, late %+v", early, late)
	}
}

func (s *suite) look() {
	t := s.start()
	before, changed := s.Herdr.Observe(t)
	o, err := s.Herdr.Look(s.Context(), t)
	if err != nil || o.State != before.State {
		s.Errorf("look: %v %v, observed %v", o.State, err, before.State)
	}
	select {
	case <-changed:
		after, _ := s.Herdr.Observe(t)
		s.Errorf("woken for nothing: %+v, then %+v", before, after)
	default:
	}
}

func (s *suite) ended() {
	t := s.start()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = s.Herdr.Look(ctx, t)
		_, _ = s.Herdr.Reply(ctx, t, "shepherd-prompt-00000000-none")
		if err := s.Herdr.Submit(ctx, t, lifecycle.Submission{Prompt: "shepherd-prompt-00000000-none", Text: s.Say("x")}); err == nil {
			s.Error("submitted under an ended ctx")
		}
	}()
	select {
	case <-back:
	case <-time.After(s.Patience):
		s.Fatal("a call did not end with its ctx")
	}
}

func (s *suite) unknown() {
	if o, _ := s.Herdr.Observe("no-such-target"); o.State != lifecycle.Gone {
		s.Errorf("observed %v", o.State)
	}
	if _, err := s.submit("no-such-target", s.Say("x")); !errors.Is(err, lifecycle.ErrAgentGone) {
		s.Errorf("submit: %v, want ErrAgentGone", err)
	}
	if err := s.Herdr.Close(s.Context(), "no-such-target"); err != nil {
		s.Errorf("close: %v", err)
	}
}

func (s *suite) close() {
	idle, working, other := s.start(), s.start(), s.start()
	s.mustSubmit(working, s.Hang())
	for _, t := range []lifecycle.Target{idle, working, working} {
		ctx, cancel := context.WithTimeout(s.Context(), s.Patience)
		if err := s.Herdr.Close(ctx, t); err != nil {
			s.Errorf("close: %v", err)
		}
		cancel()
		if o, _ := s.Herdr.Observe(t); o.State != lifecycle.Gone {
			s.Errorf("closed, and %v", o.State)
		}
	}
	s.settled(other, s.mustSubmit(other, s.Say("alive")))
}

func (s *suite) many() {
	var wg sync.WaitGroup
	for i := range 4 {
		t := s.start()
		text := fmt.Sprintf("agent %d", i)
		p := s.mustSubmit(t, s.Say(text))
		wg.Go(func() {
			if o := s.settled(t, p); s.Signals && o.Signal.Text != text {
				s.Errorf("%q answered %q", text, o.Signal.Text)
			}
		})
	}
	wg.Wait()
}
