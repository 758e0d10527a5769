package herdrtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type method func(s *Server, params json.RawMessage) (any, *refusal)

// methods are what the server can do. Those that wait are in waits.go.
var methods map[string]method

func init() {
	methods = map[string]method{
		"ping":                (*Server).ping,
		"server.stop":         nil,
		"integration.install": (*Server).integrationInstall,
		"session.snapshot":    (*Server).snapshot,

		"workspace.create": (*Server).workspaceCreate,
		"workspace.list":   (*Server).workspaceList,
		"workspace.get":    onWorkspace((*Server).workspaceInfo),
		"workspace.focus":  onWorkspace((*Server).workspaceFocus),
		"workspace.rename": onWorkspace((*Server).workspaceRename),
		"workspace.close":  onWorkspace((*Server).workspaceClose),

		"tab.create": (*Server).tabCreate,
		"tab.list":   (*Server).tabList,
		"tab.get":    onTab((*Server).tabInfo),
		"tab.focus":  onTab((*Server).tabFocus),
		"tab.rename": onTab((*Server).tabRename),
		"tab.close":  onTab((*Server).tabClose),

		"pane.split":                 (*Server).paneSplit,
		"pane.list":                  (*Server).paneList,
		"pane.current":               (*Server).paneCurrent,
		"pane.get":                   onPane((*Server).paneInfo),
		"pane.focus":                 onPane((*Server).paneFocus),
		"pane.rename":                onPane((*Server).paneRename),
		"pane.close":                 onPane((*Server).paneClose),
		"pane.move":                  onPane((*Server).paneMove),
		"pane.read":                  onPane((*Server).paneRead),
		"pane.process_info":          onPane((*Server).paneProcesses),
		"pane.send_text":             onPane((*Server).paneInput),
		"pane.send_keys":             onPane((*Server).paneInput),
		"pane.send_input":            onPane((*Server).paneInput),
		"pane.report_agent":          onPane((*Server).paneReport),
		"pane.report_agent_session":  onPane((*Server).accepted),
		"pane.report_metadata":       onPane((*Server).paneMetadata),
		"pane.release_agent":         onPane((*Server).accepted),
		"pane.clear_agent_authority": onPane((*Server).accepted),

		"agent.start":     (*Server).agentStart,
		"agent.list":      (*Server).agentList,
		"agent.get":       onAgent((*Server).agentInfo),
		"agent.focus":     onAgent((*Server).paneFocusAgent),
		"agent.rename":    onAgent((*Server).agentRename),
		"agent.read":      onAgent((*Server).paneRead),
		"agent.send_keys": onAgent((*Server).paneInput),

		"agent.prompt": nil, "agent.wait": nil, "events.wait": nil, "pane.wait_for_output": nil,
	}
}

type object = map[string]any

var ok = object{"type": "ok"}

// params are those of all methods; each reads what is its.
type params struct {
	WorkspaceID  string            `json:"workspace_id"`
	TabID        string            `json:"tab_id"`
	PaneID       string            `json:"pane_id"`
	TargetPaneID string            `json:"target_pane_id"`
	CallerPaneID string            `json:"caller_pane_id"`
	Target       string            `json:"target"`
	Cwd          string            `json:"cwd"`
	Focus        bool              `json:"focus"`
	Label        string            `json:"label"`
	Env          map[string]string `json:"env"`
	Direction    string            `json:"direction"`
	Name         string            `json:"name"`
	Kind         string            `json:"kind"`
	Args         []string          `json:"args"`
	TimeoutMS    *int64            `json:"timeout_ms"`
	Text         string            `json:"text"`
	Keys         []string          `json:"keys"`
	Source       string            `json:"source"`
	Lines        int               `json:"lines"`
	State        string            `json:"state"`
	Agent        string            `json:"agent"`
	Tokens       map[string]string `json:"tokens"`
	Until        []string          `json:"until"`
	Wait         *struct {
		Until     []string `json:"until"`
		TimeoutMS *int64   `json:"timeout_ms"`
	} `json:"wait"`
	Destination struct {
		Type        string `json:"type"`
		WorkspaceID string `json:"workspace_id"`
	} `json:"destination"`
}

func read(raw json.RawMessage) (p params, r *refusal) {
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, invalid(err.Error())
	}
	for key := range p.Env {
		switch {
		case key == "":
			return p, refuse("invalid_env", "env key must not be empty")
		case strings.ContainsAny(key, "=\x00"):
			return p, refuse("invalid_env", "env key must not contain '=' or NUL")
		}
	}
	return p, nil
}

func onWorkspace(f func(*Server, *workspace, params) (any, *refusal)) method {
	return func(s *Server, raw json.RawMessage) (any, *refusal) {
		p, r := read(raw)
		if r != nil {
			return nil, r
		}
		w := s.model.workspace(p.WorkspaceID)
		if w == nil {
			return nil, refuse("workspace_not_found", "workspace "+p.WorkspaceID+" not found")
		}
		return f(s, w, p)
	}
}

func onTab(f func(*Server, *tab, params) (any, *refusal)) method {
	return func(s *Server, raw json.RawMessage) (any, *refusal) {
		p, r := read(raw)
		if r != nil {
			return nil, r
		}
		t := s.model.tab(p.TabID)
		if t == nil {
			return nil, refuse("tab_not_found", "tab "+p.TabID+" not found")
		}
		return f(s, t, p)
	}
}

func onPane(f func(*Server, *pane, params) (any, *refusal)) method {
	return func(s *Server, raw json.RawMessage) (any, *refusal) {
		p, r := read(raw)
		if r != nil {
			return nil, r
		}
		q := s.model.panes[p.PaneID]
		if q == nil {
			return nil, refuse("pane_not_found", "pane "+p.PaneID+" not found")
		}
		return f(s, q, p)
	}
}

func onAgent(f func(*Server, *pane, params) (any, *refusal)) method {
	return func(s *Server, raw json.RawMessage) (any, *refusal) {
		p, r := read(raw)
		if r != nil {
			return nil, r
		}
		q, r := s.model.target(p.Target)
		if r != nil {
			return nil, r
		}
		return f(s, q, p)
	}
}

func (s *Server) ping(json.RawMessage) (any, *refusal) {
	pong := object{"type": "pong", "version": s.o.Version,
		"capabilities": object{"live_handoff": true, "detached_server_daemon": true}}
	if s.o.Protocol > 0 {
		pong["protocol"] = s.o.Protocol
	}
	return pong, nil
}

func (s *Server) snapshot(json.RawMessage) (any, *refusal) {
	m := &s.model
	snap := object{"version": s.o.Version, "protocol": s.o.Protocol, "layouts": []any{}}
	if w := m.active; w != nil {
		snap["focused_workspace_id"], snap["focused_tab_id"] = w.id, w.active.id
		snap["focused_pane_id"] = w.active.focus.id
	}
	spaces, tabs, panes, agents := []workspaceInfo{}, []tabInfo{}, []paneInfo{}, []agentInfo{}
	for _, w := range m.workspaces {
		spaces = append(spaces, m.workspaceInfo(w))
		for _, t := range w.tabs {
			tabs = append(tabs, m.tabInfo(t))
		}
	}
	for _, p := range m.allPanes() {
		panes = append(panes, m.paneInfo(p))
		if p.agent != nil || p.name != "" {
			agents = append(agents, m.agentInfo(p))
		}
	}
	snap["workspaces"], snap["tabs"], snap["panes"], snap["agents"] = spaces, tabs, panes, agents
	return object{"type": "session_snapshot", "snapshot": snap}, nil
}

func (s *Server) workspaceCreate(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	if p.Label == "" {
		p.Label = filepath.Base(p.Cwd)
	}
	w := s.model.addWorkspace(p.Label)
	if p.Focus {
		s.model.active = w
	}
	t := s.model.addTab(w, "")
	q := s.newPane(t, p.Cwd, p.Env)
	s.model.emit("tab_created", object{"tab": s.model.tabInfo(t)})
	s.model.emit("workspace_created", object{"workspace": s.model.workspaceInfo(w)})
	return object{"type": "workspace_created", "workspace": s.model.workspaceInfo(w),
		"tab": s.model.tabInfo(t), "root_pane": s.model.paneInfo(q)}, nil
}

func (s *Server) workspaceList(json.RawMessage) (any, *refusal) {
	all := []workspaceInfo{}
	for _, w := range s.model.workspaces {
		all = append(all, s.model.workspaceInfo(w))
	}
	return object{"type": "workspace_list", "workspaces": all}, nil
}

func (s *Server) workspaceInfo(w *workspace, _ params) (any, *refusal) {
	return object{"type": "workspace_info", "workspace": s.model.workspaceInfo(w)}, nil
}

func (s *Server) workspaceFocus(w *workspace, p params) (any, *refusal) {
	s.model.active = w
	s.model.emit("workspace_focused", object{"workspace_id": w.id})
	return s.workspaceInfo(w, p)
}

func (s *Server) workspaceRename(w *workspace, p params) (any, *refusal) {
	w.label = p.Label
	return s.workspaceInfo(w, p)
}

// workspaceClose emits one event, and none for what was in it.
func (s *Server) workspaceClose(w *workspace, _ params) (any, *refusal) {
	info := s.model.workspaceInfo(w)
	for _, t := range append([]*tab{}, w.tabs...) {
		for _, p := range append([]*pane{}, t.panes...) {
			s.endPane(p)
		}
	}
	s.model.emit("workspace_closed", object{"workspace_id": w.id, "workspace": info})
	return ok, nil
}

func (s *Server) tabCreate(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	w := s.model.active
	if p.WorkspaceID != "" {
		if w = s.model.workspace(p.WorkspaceID); w == nil {
			return nil, refuse("workspace_not_found", "workspace "+p.WorkspaceID+" not found")
		}
	}
	if w == nil {
		return nil, refuse("workspace_not_found", "no active workspace")
	}
	t := s.model.addTab(w, p.Label)
	q := s.newPane(t, p.Cwd, p.Env)
	if p.Focus {
		s.model.active, w.active = w, t
	}
	s.model.emit("tab_created", object{"tab": s.model.tabInfo(t)})
	return object{"type": "tab_created", "tab": s.model.tabInfo(t), "root_pane": s.model.paneInfo(q)}, nil
}

func (s *Server) tabList(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	all := []tabInfo{}
	for _, w := range s.model.workspaces {
		for _, t := range w.tabs {
			if p.WorkspaceID == "" || p.WorkspaceID == w.id {
				all = append(all, s.model.tabInfo(t))
			}
		}
	}
	return object{"type": "tab_list", "tabs": all}, r
}

func (s *Server) tabInfo(t *tab, _ params) (any, *refusal) {
	return object{"type": "tab_info", "tab": s.model.tabInfo(t)}, nil
}

func (s *Server) tabFocus(t *tab, p params) (any, *refusal) {
	s.model.active, t.in.active = t.in, t
	s.model.emit("tab_focused", object{"tab_id": t.id, "workspace_id": t.in.id})
	return s.tabInfo(t, p)
}

func (s *Server) tabRename(t *tab, p params) (any, *refusal) {
	t.label = p.Label
	return s.tabInfo(t, p)
}

// tabClose emits no event for the panes.
func (s *Server) tabClose(t *tab, _ params) (any, *refusal) {
	w := t.in
	info := s.model.workspaceInfo(w)
	for _, p := range append([]*pane{}, t.panes...) {
		s.endPane(p)
	}
	s.model.emit("tab_closed", object{"tab_id": t.id, "workspace_id": w.id})
	if len(w.tabs) == 0 {
		s.model.emit("workspace_closed", object{"workspace_id": w.id, "workspace": info})
	}
	return ok, nil
}

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

func (s *Server) integrationInstall(json.RawMessage) (any, *refusal) {
	s.integrated = true
	return object{"type": "integration_install", "target": "pi", "details": object{"messages": []string{"installed pi integration to nowhere"}}}, nil
}
