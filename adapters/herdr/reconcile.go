package herdr

import (
	"context"
	"time"
)

// heard finds the agents that an event may be about. Most are about panes of others, or of
// long ago.
func (h *Herdr) heard(e pushed) {
	d := e.Data
	switch e.kind() {
	case "pane_agent_status_changed", "pane_agent_detected", "pane_closed", "pane_exited":
		h.hint(func(at place) bool { return at.pane == d.PaneID })
	case "pane_moved":
		h.hint(func(at place) bool { return at.pane == d.PreviousPaneID || at.terminal == d.Pane.TerminalID })
	case "tab_closed":
		h.hint(func(at place) bool { return at.tab == d.TabID })
	case "workspace_closed":
		h.hint(func(at place) bool { return at.workspace == d.WorkspaceID })
	}
}

func (h *Herdr) hint(about func(place) bool) {
	for _, a := range h.all() {
		if at := a.place(); at.pane != "" && about(at) {
			a.checkSoon()
		}
	}
}

// reconcileAgain reads everything now and then. If that brings news, events have been lost,
// and a subscription that loses events is made anew.
func (w *watcher) reconcileAgain() {
	tick := time.NewTicker(w.h.o.Reconcile)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		if news, err := w.h.reconcile(w.ctx); err == nil && news {
			w.h.o.Logger.Warn("events were lost; subscribing again")
			signal(w.rebuild[lifecycleStream])
			signal(w.rebuild[statusStream])
		}
	}
}

// reconcile reads the state of all agents with one request. It reports whether Herdr's word
// about any of them was news.
func (h *Herdr) reconcile(ctx context.Context) (news bool, err error) {
	agents := h.all() // before the request: who comes later is not missing in the answer
	var r snapshotResult
	if err := h.client.call(ctx, "session.snapshot", none{}, &r); err != nil {
		for _, a := range agents {
			a.unseen()
			a.checkSoon()
		}
		return false, err
	}
	byTerminal := make(map[string]paneInfo)
	for _, p := range r.Snapshot.Panes {
		byTerminal[p.TerminalID] = p
	}
	shown := make(map[string]agentInfo)
	for _, a := range r.Snapshot.Agents {
		shown[a.TerminalID] = a
	}
	for _, a := range agents {
		if a.reconcile(byTerminal, shown) {
			news = true
		}
	}
	return news, nil
}

// reconcile takes in what a snapshot shows of the agent. What it does not show as it should
// be is read by itself.
func (a *agent) reconcile(panes map[string]paneInfo, shown map[string]agentInfo) (news bool) {
	at := a.place()
	if at.pane == "" || a.isGone() {
		return false
	}
	p, there := panes[at.terminal]
	if there && a.linkUp() {
		a.takePlace(p, false)
		return false
	}
	i, visible := shown[at.terminal]
	if there && visible {
		news = a.fold(i)
		if a.link == nil && stateOf(i.AgentStatus) != 0 {
			return news
		}
	}
	a.checkSoon()
	return news
}
