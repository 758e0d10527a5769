package herdrtest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// newPane makes a pane. A directory that does not exist is replaced in silence.
func (s *Server) newPane(t *tab, cwd string, env map[string]string) *pane {
	if info, err := os.Stat(cwd); cwd == "" || (err != nil || !info.IsDir()) && !s.o.NoDisk {
		cwd = s.elsewhere(t, cwd)
	}
	p := s.model.addPane(t, cwd, env)
	p.program = s.newProgram(p)
	s.model.emit("pane_created", object{"pane": s.model.paneInfo(p)})
	return p
}

func (s *Server) elsewhere(t *tab, wanted string) string {
	if q := first(s.model.allPanes()); q != nil && wanted == "" {
		return q.cwd
	}
	return os.TempDir()
}

func (s *Server) paneSplit(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	if p.Direction != "right" && p.Direction != "down" {
		return nil, invalid("unknown variant `" + p.Direction + "`, expected `right` or `down`")
	}
	beside := s.model.panes[p.TargetPaneID]
	if p.TargetPaneID == "" && s.model.active != nil { // the focused one
		beside = s.model.active.active.focus
	}
	if beside == nil {
		return nil, refuse("pane_not_found", "pane not found")
	}
	if p.Cwd == "" {
		p.Cwd = beside.cwd
	}
	q := s.newPane(beside.in, p.Cwd, p.Env)
	all := drop(q.in.panes, q)
	q.in.panes = slices.Insert(all, slices.Index(all, beside)+1, q)
	if p.Focus {
		q.in.focus = q
	}
	return object{"type": "pane_info", "pane": s.model.paneInfo(q)}, nil
}

func (s *Server) paneList(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	all := []paneInfo{}
	for _, q := range s.model.allPanes() {
		if p.WorkspaceID == "" || p.WorkspaceID == q.in.in.id {
			all = append(all, s.model.paneInfo(q))
		}
	}
	return object{"type": "pane_list", "panes": all}, r
}

func (s *Server) paneCurrent(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	q := s.model.panes[p.CallerPaneID]
	if p.CallerPaneID == "" && s.model.active != nil {
		q = s.model.active.active.focus
	}
	if q == nil {
		return nil, refuse("no_active_pane", "no active pane")
	}
	return object{"type": "pane_current", "pane": s.model.paneInfo(q)}, nil
}

func (s *Server) paneInfo(q *pane, _ params) (any, *refusal) {
	return object{"type": "pane_info", "pane": s.model.paneInfo(q)}, nil
}

func (s *Server) paneFocus(q *pane, p params) (any, *refusal) {
	s.model.active, q.in.in.active, q.in.focus = q.in.in, q.in, q
	if q.agent != nil && q.agent.status == "done" {
		q.agent.status = "idle"
		s.emitStatus(q)
	}
	s.model.emit("pane_focused", object{"pane_id": q.id, "workspace_id": q.in.in.id})
	return s.paneInfo(q, p)
}

func (s *Server) paneFocusAgent(q *pane, p params) (any, *refusal) {
	_, _ = s.paneFocus(q, p)
	return s.agentInfo(q, p)
}

func (s *Server) paneRename(q *pane, p params) (any, *refusal) {
	q.label = p.Label
	return s.paneInfo(q, p)
}

func (s *Server) paneClose(q *pane, _ params) (any, *refusal) {
	w := q.in.in
	info := s.model.workspaceInfo(w)
	s.endPane(q)
	s.model.emit("pane_closed", object{"pane_id": q.id, "workspace_id": w.id})
	if len(w.tabs) == 0 {
		s.model.emit("workspace_closed", object{"workspace_id": w.id, "workspace": info})
	}
	return ok, nil
}

// endPane ends what is in the pane and takes it out. It emits nothing.
func (s *Server) endPane(q *pane) {
	wait := q.program.kill()
	q.agent, q.name = nil, ""
	s.model.removePane(q)
	go wait()
}

// paneExited is when the pane's shell has ended: one event, whatever ends with it.
func (s *Server) paneExited(q *pane) {
	s.model.removePane(q)
	s.model.emit("pane_exited", object{"pane_id": q.id, "workspace_id": q.in.in.id})
}

func (s *Server) paneMove(q *pane, p params) (any, *refusal) {
	w := s.model.workspace(p.Destination.WorkspaceID)
	if w == nil || p.Destination.Type != "new_tab" {
		return nil, refuse("pane_move_failed", "no such destination")
	}
	moved := s.move(q, s.model.addTab(w, ""))
	moved["changed"] = true
	delete(moved, "type")
	return object{"type": "pane_move", "move_result": moved}, nil
}

// move moves a pane to another workspace's tab: with a new id, by which alone agents are
// found, and the old one as an alias.
func (s *Server) move(q *pane, to *tab) object {
	from, old := q.in, q.id
	from.panes = drop(from.panes, q)
	to.in.panesSoFar++
	q.id, q.in = to.in.id+":p"+number(to.in.panesSoFar), to
	to.panes, to.focus = append(to.panes, q), q
	s.model.panes[q.id] = q
	e := object{"previous_pane_id": old, "previous_workspace_id": from.in.id, "previous_tab_id": from.id,
		"pane": s.model.paneInfo(q), "created_tab": s.model.tabInfo(to)}
	if len(from.panes) == 0 {
		from.in.tabs = drop(from.in.tabs, from)
		if from.in.active == from {
			from.in.active = first(from.in.tabs)
		}
		e["closed_tab_id"] = from.id
	} else if from.focus == q {
		from.focus = from.panes[0]
	}
	s.model.emit("pane_moved", e)
	if len(from.panes) == 0 {
		s.model.emit("tab_closed", object{"tab_id": from.id, "workspace_id": from.in.id})
	}
	return e
}

func (s *Server) paneRead(q *pane, p params) (any, *refusal) {
	n := p.Lines
	if n == 0 {
		n = 80
	}
	text := lastLines(q.program.screen(), n)
	return object{"type": "pane_read", "read": object{"pane_id": q.id, "workspace_id": q.in.in.id, "tab_id": q.in.id,
		"source": p.Source, "format": "text", "text": text, "revision": 0, "truncated": false}}, nil
}

func (s *Server) paneProcesses(q *pane, _ params) (any, *refusal) {
	i := q.program.processes()
	i.PaneID = q.id
	return object{"type": "pane_process_info", "process_info": i}, nil
}

// keyNames are the keys that can be pressed.
var keyNames = map[string]string{
	"enter": "enter", "return": "enter", "esc": "esc", "escape": "esc", "tab": "tab", "space": "space", "backspace": "backspace",
	"up": "up", "down": "down", "left": "left", "right": "right", "ctrl+c": "ctrl+c", "ctrl+d": "ctrl+d", "alt+enter": "alt+enter", "ctrl+z": "ctrl+z",
}

func (s *Server) paneInput(q *pane, p params) (any, *refusal) {
	var keys []string
	for _, k := range p.Keys {
		name, known := keyNames[strings.ToLower(k)]
		if !known {
			return nil, refuse("invalid_key", "unsupported key "+k)
		}
		keys = append(keys, name)
	}
	if p.Text != "" {
		q.program.text(p.Text)
	}
	for _, k := range keys {
		q.program.key(k)
	}
	return ok, nil
}

// paneReport is a state that an integration reports. It counts once the agent is recognised,
// unless Herdr's own integration speaks for it.
func (s *Server) paneReport(q *pane, p params) (any, *refusal) {
	if a := q.agent; a != nil && a.found && a.session == nil {
		s.setStatus(q, a, p.State)
	}
	return ok, nil
}

func (s *Server) paneMetadata(q *pane, p params) (any, *refusal) {
	q.tokens = p.Tokens
	return ok, nil
}

func (s *Server) accepted(*pane, params) (any, *refusal) { return ok, nil }
