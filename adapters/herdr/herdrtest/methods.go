package herdrtest

import (
	"encoding/json"
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

func (s *Server) integrationInstall(json.RawMessage) (any, *refusal) {
	s.integrated = true
	return object{"type": "integration_install", "target": "pi", "details": object{"messages": []string{"installed pi integration to nowhere"}}}, nil
}
