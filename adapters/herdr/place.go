package herdr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// makePane makes the agent's pane. When the answer to the request is lost, the pane is
// looked for by its label before anything else happens: it is never made twice.
func (h *Herdr) makePane(ctx context.Context, a *agent, dir string, env map[string]string) (paneInfo, error) {
	label := strings.TrimSpace(a.name + " " + clean(a.spec.Label))
	params := placeParams{Cwd: dir, Label: label, Env: env}
	var pane paneInfo
	var err error
	switch h.o.Placement {
	case InTab:
		pane, err = h.makeTab(ctx, params)
	case InWorkspace:
		pane, err = h.create(ctx, "workspace.create", params)
	case ToTheRight, Below:
		pane, err = h.split(ctx, params)
	default:
		return pane, fmt.Errorf("%w: placement %q; there are tab, right, down and workspace", lifecycle.ErrInvalid, h.o.Placement)
	}
	if err != nil {
		return pane, fmt.Errorf("make a pane: %w", err)
	}
	return pane, nil
}

func (h *Herdr) makeTab(ctx context.Context, p placeParams) (paneInfo, error) {
	home, err := h.home(ctx)
	if err != nil {
		return paneInfo{}, err
	}
	if home.WorkspaceID != "" {
		p.WorkspaceID = home.WorkspaceID
		return h.create(ctx, "tab.create", p)
	}
	return h.makeTabInOwn(ctx, p)
}

// makeTabInOwn makes the tab in the workspace of all agents that are started from a plain
// terminal. The first agent makes it, and it ends with the last.
func (h *Herdr) makeTabInOwn(ctx context.Context, p placeParams) (paneInfo, error) {
	h.ownMu.Lock()
	defer h.ownMu.Unlock()
	if h.workspace != "" {
		p.WorkspaceID = h.workspace
		pane, err := h.create(ctx, "tab.create", p)
		if !isGone(err) {
			return pane, err
		}
		p.WorkspaceID = ""
	}
	pane, err := h.create(ctx, "workspace.create", p)
	h.workspace = pane.WorkspaceID
	return pane, err
}

// create makes a tab or a workspace. The request is not cut off by ctx, which would leave
// open whether it was carried out: it takes milliseconds, and has its own limit.
func (h *Herdr) create(ctx context.Context, method string, p placeParams) (paneInfo, error) {
	var r placeResult
	err := h.client.call(context.WithoutCancel(ctx), method, p, &r)
	if err == nil && p.WorkspaceID != "" && r.RootPane.WorkspaceID != p.WorkspaceID {
		return r.RootPane, fmt.Errorf("%w: pane %s was made in workspace %s, not in %s", ErrStart, r.RootPane.PaneID, r.RootPane.WorkspaceID, p.WorkspaceID)
	}
	if !errors.Is(err, ErrNoAnswer) {
		return r.RootPane, err
	}
	pane, found, lookErr := h.findLabel(ctx, p.Label)
	switch {
	case found:
		return pane, nil
	case lookErr != nil:
		return pane, fmt.Errorf("%w; whether a tab %q was made is not known: %w", err, p.Label, lookErr)
	}
	return pane, err
}

// findLabel finds the only pane of the tab or workspace with the label, which is unique.
func (h *Herdr) findLabel(ctx context.Context, label string) (paneInfo, bool, error) {
	ctx, cancel := h.cleaning(ctx)
	defer cancel()
	var r snapshotResult
	if err := h.client.call(ctx, "session.snapshot", none{}, &r); err != nil {
		return paneInfo{}, false, err
	}
	in := make(map[string]bool)
	for _, t := range r.Snapshot.Tabs {
		in[t.TabID] = t.Label == label
	}
	for _, w := range r.Snapshot.Workspaces {
		in[w.WorkspaceID] = w.Label == label
	}
	for _, p := range r.Snapshot.Panes {
		if in[p.TabID] || in[p.WorkspaceID] {
			return p, true, nil
		}
	}
	return paneInfo{}, false, nil
}

// split makes a pane beside ours. It names that pane: without a name Herdr splits whatever
// has the focus. A pane has no label, so one whose answer was lost cannot be told from the
// user's own and is left.
func (h *Herdr) split(ctx context.Context, p placeParams) (paneInfo, error) {
	beside, err := h.home(ctx)
	if err != nil {
		return paneInfo{}, err
	}
	if beside.PaneID == "" {
		return paneInfo{}, fmt.Errorf("%w: placement %q needs a pane to be beside; this process runs in none, and Options.Beside names none", lifecycle.ErrInvalid, h.o.Placement)
	}
	q := splitParams{TargetPaneID: beside.PaneID, Direction: string(h.o.Placement), Cwd: p.Cwd, Env: p.Env}
	var r placeResult
	if err := h.client.call(context.WithoutCancel(ctx), "pane.split", q, &r); err != nil {
		return paneInfo{}, err
	}
	if r.Pane.WorkspaceID != beside.WorkspaceID {
		return r.Pane, fmt.Errorf("%w: pane %s was made in workspace %s, not beside %s", ErrStart, r.Pane.PaneID, r.Pane.WorkspaceID, beside.PaneID)
	}
	return r.Pane, nil
}

// home returns the pane that this process runs in, as it is called now, or Options.Beside;
// or nothing, when it runs in none of this server's.
func (h *Herdr) home(ctx context.Context) (paneInfo, error) {
	id := h.o.Beside
	if id == "" {
		if !samePath(os.Getenv("HERDR_SOCKET_PATH"), h.client.socket) {
			return paneInfo{}, nil
		}
		id = os.Getenv("HERDR_PANE_ID")
	}
	if id == "" {
		return paneInfo{}, nil
	}
	var r paneResult
	err := h.client.call(ctx, "pane.get", paneParams{id}, &r)
	if isGone(err) && h.o.Beside == "" {
		return paneInfo{}, nil
	}
	return r.Pane, err
}

func samePath(a, b string) bool {
	return a != "" && filepath.Clean(a) == filepath.Clean(b)
}

// closePane closes the agent's pane if it is still the agent's.
func (a *agent) closePane(ctx context.Context) error {
	at := a.place()
	if at.pane == "" || a.isGone() && a.foreign {
		return nil
	}
	var err error
	for range 2 { // an answer that was lost is looked for once
		var mine bool
		if at, mine, err = a.mine(ctx); err != nil || !mine {
			break
		}
		err = a.h.client.call(ctx, "pane.close", paneParams{at.pane}, nil)
		if isGone(err) {
			err = nil
		}
		if !errors.Is(err, ErrNoAnswer) {
			break
		}
	}
	if errors.Is(err, ErrNotRunning) && (a.pidOf() == 0 || !processLives(a.pidOf())) {
		return nil // the panes have ended with the server
	}
	return err
}

// mine finds the pane and proves that it is the agent's: by its terminal, by the link, or by
// the program in it.
func (a *agent) mine(ctx context.Context) (place, bool, error) {
	at := a.place()
	var r paneResult
	switch err := a.h.client.call(ctx, "pane.get", paneParams{at.pane}, &r); {
	case isGone(err):
		return at, false, nil
	case err != nil:
		return at, false, err
	}
	if a.takePlace(r.Pane, false) {
		return r.Pane.place(), true, nil
	}
	var p processResult
	switch err := a.h.client.call(ctx, "pane.process_info", paneParams{r.Pane.PaneID}, &p); {
	case isGone(err):
		return at, false, nil
	case err != nil:
		return at, false, err
	}
	return r.Pane.place(), a.takePlace(r.Pane, a.proves(p.Info)), nil
}

func (a *agent) pidOf() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pid
}
