package herdr

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// agent is one agent in its pane: where it is, and the level that its link and Herdr's word
// make together.
type agent struct {
	h      *Herdr
	spec   lifecycle.Spec
	kind   string
	name   string // in Herdr: unique
	target lifecycle.Target
	log    *slog.Logger
	level  lifecycle.Level
	link   link.Link // nil: this kind has none
	made   time.Time

	recordKey string // what its record is called: the name it was first given

	mu       sync.Mutex
	starting bool // being launched
	at       place
	pid      int        // of the agent's program; 0 while it is not known
	child    link.Event // the link's newest word
	met      bool       // the link has been up
	earlier  uint64     // turns that a child counted which has started anew since
	sight    sight      // Herdr's newest word that counts
	turns    uint64     // turns that Herdr showed; of agents without a link
	prompt   lifecycle.PromptID
	trial    lifecycle.PromptID // being submitted: perhaps the next prompt
	signal   lifecycle.Signal
	gone     string // how it ended
	foreign  bool   // its pane is somebody else's now
	closing  bool
	checking bool // a check is under way
	again    bool // and another has to follow
}

func newAgent(h *Herdr, s lifecycle.Spec, kind, name string) *agent {
	return &agent{
		h: h, spec: s, kind: kind, name: name, recordKey: name,
		log:  h.o.Logger.With("agent", string(s.ID)),
		made: time.Now().UTC().Truncate(time.Second),
	}
}

// heard is the link's callback: the child's level has changed.
func (a *agent) heard(e link.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.child
	if e.Turns < was.Turns {
		a.earlier += was.Turns
	}
	if !e.Up { // what was known stays known
		e.PID, e.Turns = was.PID, was.Turns
	}
	a.child = e
	if e.PID != 0 {
		a.pid = e.PID
	}
	if e.Up {
		a.met = true
	}
	if e.Up != was.Up {
		a.sight = sight{} // only what Herdr shows since the loss counts (ruling R2)
		a.h.watchedSetChanged()
	}
	a.take(e.Current)
	a.show(time.Now())
	if was.Up && !e.Up {
		a.lost()
	}
}

// take keeps a signal if it is about our prompt. One about a prompt that is still being
// submitted says that the child has it. Callers hold mu.
func (a *agent) take(s lifecycle.Signal) {
	if s.Prompt == "" || s.Kind == lifecycle.NoSignal {
		return
	}
	if s.Prompt == a.trial {
		a.prompt, a.trial, a.signal = a.trial, "", lifecycle.Signal{}
	}
	if s.Prompt != a.prompt || (a.signal.Final() && !s.Final()) {
		return
	}
	if s.At.IsZero() {
		s.At = time.Now()
	}
	a.signal = s
}

// lost looks where the child is: at once, and again when what has happened shows in Herdr.
// End of file is a hint and no more (ruling R6). Callers hold mu.
func (a *agent) lost() {
	a.log.Debug("link lost")
	a.checkSoonLocked()
	a.h.spawn(func() {
		for _, d := range []time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second} {
			if sleep(a.h.life, d) != nil || a.linkUp() || a.isGone() {
				return
			}
			a.checkSoon()
		}
	})
}

// show makes the level what is known. Callers hold mu.
func (a *agent) show(now time.Time) {
	a.level.Set(now, func(o *lifecycle.Observation) {
		o.Link, o.State, o.Detail = lifecycle.NoLink, a.sight.shown(), a.gone
		if a.link != nil {
			o.Link = lifecycle.LinkLost
			o.Turns = a.earlier + a.child.Turns
		} else {
			o.Turns = a.turns
		}
		if a.child.Up {
			o.Link, o.State = lifecycle.LinkUp, childState(a.child)
		}
		if a.gone != "" {
			o.State = lifecycle.Gone
			if o.Link == lifecycle.LinkUp {
				o.Link = lifecycle.LinkLost
			}
		}
		o.Signal = a.signal
	})
}

func childState(e link.Event) lifecycle.State {
	switch {
	case e.Dialog:
		return lifecycle.Blocked
	case e.Busy:
		return lifecycle.Working
	}
	return lifecycle.Idle
}

// bury makes the agent gone, after a read of its pane has shown it. A child that speaks is
// not dead.
func (a *agent) bury(how string, foreign bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone != "" || (a.child.Up && !a.closing) {
		return
	}
	a.gone, a.foreign = how, foreign
	a.log.Debug("agent gone", "how", how)
	a.show(time.Now())
	a.h.watchedSetChanged()
}

func (a *agent) linkUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.child.Up
}

func (a *agent) isGone() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone != ""
}

// needsStatus: only Herdr can tell what this agent does.
func (a *agent) needsStatus() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone == "" && !a.child.Up && !(a.link != nil && !a.met)
}

// detach lets go of the agent and leaves it what it has.
func (a *agent) detach() error {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	if d, ok := a.link.(link.Detacher); ok {
		if err := d.Detach(); err != nil {
			return fmt.Errorf("detach %s: %w", a.target, err)
		}
	}
	return nil
}

// close closes the pane and what belongs to it.
func (a *agent) close(ctx context.Context) error {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	if err := a.closePane(ctx); err != nil {
		return err
	}
	a.bury("closed", false)
	if a.link != nil {
		if err := a.link.Close(); err != nil {
			return err
		}
	}
	return a.h.o.Store.Delete(a.recordKey)
}
