package herdrtest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// model is what a session consists of. The server's mutex guards all of it.
type model struct {
	ring
	workspaces []*workspace
	active     *workspace
	panes      map[string]*pane // by all ids that they have had
	spaces     int              // workspaces so far
	seq        uint64           // of state changes
	pids       int              // given out
}

type workspace struct {
	id, label  string
	number     int
	tabs       []*tab
	active     *tab
	tabsSoFar  int
	panesSoFar int
}

type tab struct {
	id, label string
	number    int
	in        *workspace
	panes     []*pane
	focus     *pane
}

type pane struct {
	id, terminal string
	in           *tab
	cwd, label   string
	env          map[string]string
	program      program
	agent        *agent // nil: a shell
	name         string // of the agent
	tokens       map[string]string
}

func (m *model) init() { m.panes = make(map[string]*pane) }

const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func number(n int) string {
	if n < 32 {
		return digits[n : n+1]
	}
	return number(n/32) + digits[n%32:n%32+1]
}

func newTerminal() string {
	var b [7]byte
	_, _ = rand.Read(b[:])
	return "term_" + hex.EncodeToString(b[:])
}

func (m *model) addWorkspace(label string) *workspace {
	m.spaces++
	w := &workspace{id: "w" + number(m.spaces), label: label, number: len(m.workspaces) + 1}
	m.workspaces = append(m.workspaces, w)
	if m.active == nil {
		m.active = w
	}
	return w
}

func (m *model) addTab(w *workspace, label string) *tab {
	w.tabsSoFar++
	t := &tab{id: w.id + ":t" + number(w.tabsSoFar), number: w.tabsSoFar, label: label, in: w}
	if label == "" {
		t.label = fmt.Sprint(len(w.tabs) + 1)
	}
	w.tabs = append(w.tabs, t)
	if w.active == nil {
		w.active = t
	}
	return t
}

func (m *model) addPane(t *tab, cwd string, env map[string]string) *pane {
	t.in.panesSoFar++
	p := &pane{id: t.in.id + ":p" + number(t.in.panesSoFar), terminal: newTerminal(), in: t, cwd: cwd, env: env}
	t.panes = append(t.panes, p)
	if t.focus == nil {
		t.focus = p
	}
	m.panes[p.id] = p
	return p
}

// removePane takes the pane out, and what is empty without it. It returns what ended with it.
func (m *model) removePane(p *pane) (closedTab *tab, closedSpace *workspace) {
	t, w := p.in, p.in.in
	for id, q := range m.panes {
		if q == p {
			delete(m.panes, id)
		}
	}
	t.panes = drop(t.panes, p)
	if t.focus == p {
		t.focus = first(t.panes)
	}
	if len(t.panes) > 0 {
		return nil, nil
	}
	w.tabs = drop(w.tabs, t)
	if w.active == t {
		w.active = first(w.tabs)
	}
	if len(w.tabs) > 0 {
		return t, nil
	}
	m.workspaces = drop(m.workspaces, w)
	if m.active == w {
		m.active = first(m.workspaces)
	}
	return t, w
}

func drop[T any](all []*T, x *T) []*T {
	return slices.DeleteFunc(all, func(y *T) bool { return x == y })
}

func first[T any](all []*T) *T {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func (m *model) workspace(id string) *workspace {
	for _, w := range m.workspaces {
		if w.id == id {
			return w
		}
	}
	return nil
}

func (m *model) tab(id string) *tab {
	for _, w := range m.workspaces {
		for _, t := range w.tabs {
			if t.id == id {
				return t
			}
		}
	}
	return nil
}

func (m *model) allPanes() (all []*pane) {
	for _, w := range m.workspaces {
		for _, t := range w.tabs {
			all = append(all, t.panes...)
		}
	}
	return all
}

// target finds an agent by its name or its pane's current id.
func (m *model) target(name string) (*pane, *refusal) {
	for _, p := range m.allPanes() {
		if p.id == name || p.name == name && name != "" {
			if p.agent == nil && p.name == "" {
				break
			}
			return p, nil
		}
	}
	return nil, refuse("agent_not_found", "agent target "+name+" not found")
}

func (m *model) focused(p *pane) bool {
	return m.active == p.in.in && p.in.in.active == p.in && p.in.focus == p
}

// killAll ends all programs. What it returns waits for them.
func (m *model) killAll() (waits []func()) {
	for _, p := range m.allPanes() {
		if p.program != nil {
			waits = append(waits, p.program.kill())
		}
		p.agent, p.name = nil, ""
	}
	return waits
}

// restart is what a session looks like to the next server.
func (m *model) restart(s *Server) {
	m.ring, m.seq = ring{}, 0
	for _, p := range m.allPanes() {
		p.terminal = newTerminal()
		p.program = s.newProgram(p)
	}
}

func (m *model) handoff() {
	m.ring, m.seq = ring{}, 0
	for _, p := range m.allPanes() {
		p.terminal = newTerminal()
		if p.agent != nil {
			p.agent.seq = 0
		}
	}
}

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

func (p *pane) status() string {
	if p.agent == nil || !p.agent.found {
		return "unknown"
	}
	return p.agent.status
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
