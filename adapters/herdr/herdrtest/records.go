package herdrtest

// The records, as they are on the wire.

type workspaceInfo struct {
	WorkspaceID string `json:"workspace_id"`
	Number      int    `json:"number"`
	Label       string `json:"label"`
	Focused     bool   `json:"focused"`
	PaneCount   int    `json:"pane_count"`
	TabCount    int    `json:"tab_count"`
	ActiveTabID string `json:"active_tab_id"`
	AgentStatus string `json:"agent_status"`
}

type tabInfo struct {
	TabID       string `json:"tab_id"`
	WorkspaceID string `json:"workspace_id"`
	Number      int    `json:"number"`
	Label       string `json:"label"`
	Focused     bool   `json:"focused"`
	PaneCount   int    `json:"pane_count"`
	AgentStatus string `json:"agent_status"`
}

type paneInfo struct {
	PaneID        string            `json:"pane_id"`
	TerminalID    string            `json:"terminal_id"`
	WorkspaceID   string            `json:"workspace_id"`
	TabID         string            `json:"tab_id"`
	Focused       bool              `json:"focused"`
	Cwd           string            `json:"cwd"`
	ForegroundCwd string            `json:"foreground_cwd"`
	Label         string            `json:"label,omitempty"`
	Agent         string            `json:"agent,omitempty"`
	AgentStatus   string            `json:"agent_status"`
	Tokens        map[string]string `json:"tokens,omitempty"`
	AgentSession  *sessionRef       `json:"agent_session,omitempty"`
	Scroll        *scroll           `json:"scroll,omitempty"`
	Revision      int               `json:"revision"`
}

type scroll struct {
	Offset int `json:"offset_from_bottom"`
	Max    int `json:"max_offset_from_bottom"`
	Rows   int `json:"viewport_rows"`
}

type sessionRef struct {
	Source string `json:"source"`
	Agent  string `json:"agent"`
	Kind   string `json:"kind"`
	Value  string `json:"value"`
}

type agentInfo struct {
	TerminalID       string      `json:"terminal_id"`
	Name             string      `json:"name,omitempty"`
	Agent            string      `json:"agent,omitempty"`
	AgentStatus      string      `json:"agent_status"`
	Skipped          bool        `json:"screen_detection_skipped,omitempty"`
	AgentSession     *sessionRef `json:"agent_session,omitempty"`
	WorkspaceID      string      `json:"workspace_id"`
	TabID            string      `json:"tab_id"`
	PaneID           string      `json:"pane_id"`
	Focused          bool        `json:"focused"`
	LaunchPending    bool        `json:"launch_pending,omitempty"`
	InteractiveReady bool        `json:"interactive_ready,omitempty"`
	StateChangeSeq   uint64      `json:"state_change_seq"`
	Cwd              string      `json:"cwd"`
	ForegroundCwd    string      `json:"foreground_cwd"`
	Revision         int         `json:"revision"`
}

func (m *model) workspaceInfo(w *workspace) workspaceInfo {
	i := workspaceInfo{WorkspaceID: w.id, Number: w.number, Label: w.label, Focused: w == m.active,
		TabCount: len(w.tabs), AgentStatus: "unknown"}
	for _, t := range w.tabs {
		i.PaneCount += len(t.panes)
	}
	if w.active != nil {
		i.ActiveTabID = w.active.id
	}
	return i
}

func (m *model) tabInfo(t *tab) tabInfo {
	i := tabInfo{TabID: t.id, WorkspaceID: t.in.id, Number: t.number, Label: t.label,
		Focused: t.in == m.active && t == t.in.active, PaneCount: len(t.panes), AgentStatus: "unknown"}
	if p := first(t.panes); p != nil {
		i.AgentStatus = p.status()
	}
	return i
}

func (m *model) paneInfo(p *pane) paneInfo {
	i := paneInfo{PaneID: p.id, TerminalID: p.terminal, WorkspaceID: p.in.in.id, TabID: p.in.id,
		Focused: m.focused(p), Cwd: p.cwd, ForegroundCwd: p.cwd, Label: p.label,
		AgentStatus: p.status(), Tokens: p.tokens, Scroll: &scroll{Rows: 23}}
	if p.agent != nil && p.agent.found {
		i.Agent, i.AgentSession = p.agent.kind, p.agent.session
	}
	return i
}

func (m *model) agentInfo(p *pane) agentInfo {
	i := agentInfo{TerminalID: p.terminal, Name: p.name, AgentStatus: p.status(),
		WorkspaceID: p.in.in.id, TabID: p.in.id, PaneID: p.id, Focused: m.focused(p), Cwd: p.cwd, ForegroundCwd: p.cwd}
	if a := p.agent; a != nil {
		i.LaunchPending, i.InteractiveReady, i.StateChangeSeq = a.pending, a.ready, a.seq
		if a.found {
			i.Agent, i.AgentSession, i.Skipped = a.kind, a.session, a.session != nil
		}
	}
	return i
}
