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

// place is where the agent's pane is. A pane is known by its terminal: it may be moved, and
// ids of panes are used again.
type place struct{ pane, terminal, tab, workspace string }

func (p paneInfo) place() place { return place{p.PaneID, p.TerminalID, p.TabID, p.WorkspaceID} }

// sight is what Herdr shows of an agent that has no link, or has lost it.
type sight struct {
	seen  bool // anything at all
	blind bool // it cannot be asked at the moment
	state lifecycle.State
	seq   uint64 // goes up with each change of the state, for one terminal
}

func (s sight) shown() lifecycle.State {
	if s.blind {
		return lifecycle.Unknown
	}
	return s.state
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

// fold takes in what Herdr shows, unless it is older than what is known. It reports whether
// that was news. While the link is up it is not even looked at (ruling R2).
func (a *agent) fold(i agentInfo) (news bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if i.TerminalID != a.at.terminal || a.gone != "" {
		return false
	}
	a.moved(i.paneInfo)
	if a.child.Up {
		a.level.Touch(now)
		return false
	}
	next := sight{seen: true, state: stateOf(i.AgentStatus), seq: i.StateChangeSeq}
	if a.sight.seen && next.seq < a.sight.seq {
		return false // a slow answer
	}
	news = next != a.sight
	if began(a.sight, next) {
		a.turns++
	}
	a.sight = next
	a.show(now)
	return news
}

// began reports whether a turn has begun between two sights. A short one may show by the
// sequence number alone.
func began(a, b sight) bool {
	if !a.seen || b.seq == a.seq {
		return false
	}
	switch {
	case b.state == lifecycle.Working:
		return true
	case b.state == lifecycle.Idle:
		return a.state == lifecycle.Idle
	}
	return false
}

// stateOf reads a status. At rest and seen, or not yet seen, by a human is the same (idle and
// done); what is not known is Unknown.
func stateOf(status string) lifecycle.State {
	switch status {
	case "idle", "done":
		return lifecycle.Idle
	case "working":
		return lifecycle.Working
	case "blocked":
		return lifecycle.Blocked
	}
	return lifecycle.Unknown
}

// moved follows the pane to its place. Callers hold mu and know that the terminal is ours.
func (a *agent) moved(p paneInfo) {
	if next := p.place(); next != a.at {
		if next.pane != a.at.pane {
			a.log.Debug("pane moved", "pane", next.pane)
			a.h.watchedSetChanged()
		}
		a.at = next
	}
}

// unseen: the server could not be asked. What it showed last does not count any more.
func (a *agent) unseen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sight.seen && !a.child.Up {
		a.sight.blind = true
		a.show(time.Now())
	}
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

func (a *agent) place() place {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
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
