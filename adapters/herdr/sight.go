package herdr

import (
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

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

func (a *agent) place() place {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}
