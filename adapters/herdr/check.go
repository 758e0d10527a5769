package herdr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Snapshots are the truth, events a hint (ruling R1): whatever an event says, the pane is
// read before anything follows from it.

// checkSoon reads the agent's pane in a goroutine of its own, so that one call that hangs
// holds up no other agent. Hints that come meanwhile make one more reading.
func (a *agent) checkSoon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checkSoonLocked()
}

func (a *agent) checkSoonLocked() {
	a.again = true
	if a.checking || a.gone != "" {
		return
	}
	a.checking = true
	a.h.spawn(func() {
		for a.nextCheck() {
			if err := a.check(a.h.life, false); err != nil && a.h.life.Err() == nil {
				a.log.Debug("pane not read", "error", err)
			}
		}
	})
}

func (a *agent) nextCheck() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checking, a.again = a.again && a.gone == "" && !a.closing, false
	return a.checking
}

// check asks the server about the agent and folds the answers. deep also asks whether the
// program is still there when the status looks healthy.
func (a *agent) check(ctx context.Context, deep bool) error {
	if a.isGone() {
		return nil
	}
	a.takeStored()
	err := a.read(ctx, deep)
	if err != nil {
		a.unseen()
		a.buryWithServer(err)
	}
	return err
}

func (a *agent) read(ctx context.Context, deep bool) error {
	at := a.place()
	if !a.linkUp() {
		healthy, err := a.readStatus(ctx)
		if err != nil || (healthy && !deep && a.link == nil) {
			return err
		}
	}
	var r paneResult
	switch err := a.h.client.call(ctx, "pane.get", paneParams{at.pane}, &r); {
	case isGone(err):
		a.takeStored()
		a.bury(fmt.Sprintf("pane %s is closed", at.pane), false)
		return nil
	case err != nil:
		return err
	}
	if err := a.inspect(ctx, r.Pane); err != nil {
		return err
	}
	if a.place() != at && !a.linkUp() { // another id, or another terminal, by which to ask
		_, err := a.readStatus(ctx)
		return err
	}
	return nil
}

// readStatus folds what Herdr shows of the agent. It is healthy when Herdr shows an agent in
// our terminal and knows what that does.
func (a *agent) readStatus(ctx context.Context) (healthy bool, err error) {
	at := a.place()
	var r agentResult
	err = a.h.client.call(ctx, "agent.get", targetParams{at.pane}, &r)
	switch {
	case isGone(err): // which is not yet the agent's end
		return false, nil
	case err != nil:
		return false, err
	}
	a.fold(r.Agent)
	return r.Agent.TerminalID == at.terminal && stateOf(r.Agent.AgentStatus) != lifecycle.Unknown, nil
}

// inspect looks at what runs in a pane that has our pane's id.
func (a *agent) inspect(ctx context.Context, pane paneInfo) error {
	if a.linkUp() && a.takePlace(pane, false) {
		return nil
	}
	var r processResult
	switch err := a.h.client.call(ctx, "pane.process_info", paneParams{pane.PaneID}, &r); {
	case isGone(err):
		a.bury(fmt.Sprintf("pane %s is closed", pane.PaneID), false)
		return nil
	case err != nil:
		return err
	}
	if !a.takePlace(pane, a.proves(r.Info)) {
		a.takeStored()
		a.bury(fmt.Sprintf("pane %s was replaced; what runs in it now is not the agent", pane.PaneID), true)
		return nil
	}
	if !a.runsIn(r.Info) {
		a.takeStored()
		a.bury(fmt.Sprintf("its program has ended in pane %s", pane.PaneID), false)
		return nil
	}
	return nil
}

// takePlace accepts the pane as the agent's, if it has our terminal, or if the agent is
// proved to be in it: after a live handoff the programs are the same and the terminals are
// not; after a restart neither is.
func (a *agent) takePlace(p paneInfo, proved bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.TerminalID != a.at.terminal {
		if !proved && !a.child.Up {
			return false
		}
		a.log.Debug("the server has changed under a running agent", "pane", p.PaneID)
		a.sight = sight{} // sequence numbers start anew
	}
	a.moved(p)
	a.level.Touch(time.Now())
	return true
}

// proves reports whether our own program is among a pane's.
func (a *agent) proves(p processInfo) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pid != 0 && p.has(a.pid)
}

// runsIn reports whether the agent's program still runs. It may be stopped, with the shell in
// front. While it is being started that is for Launch to judge.
func (a *agent) runsIn(p processInfo) bool {
	a.mu.Lock()
	pid, starting := a.pid, a.starting
	a.mu.Unlock()
	if pid == 0 {
		return starting || !p.shellAlone()
	}
	return p.has(pid) || processLives(pid)
}

// buryWithServer: the server is not there to be asked, and its end is the end of what runs in
// its panes. That is believed when the operating system says the same.
func (a *agent) buryWithServer(err error) {
	a.mu.Lock()
	pid := a.pid
	a.mu.Unlock()
	if errors.Is(err, ErrNotRunning) && pid != 0 && !processLives(pid) {
		a.takeStored()
		a.bury(fmt.Sprintf("process %d has ended, and Herdr is not running", pid), false)
	}
}

// takeStored takes the signal that the child left on disk while nobody listened.
func (a *agent) takeStored() {
	a.mu.Lock()
	p := a.prompt
	ask := a.link != nil && !a.child.Up && p != "" && !a.signal.Final()
	a.mu.Unlock()
	if !ask {
		return
	}
	if s, ok := a.link.Stored(p); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.take(s)
		a.show(time.Now())
	}
}
