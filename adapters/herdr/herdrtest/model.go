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

func (p *pane) status() string {
	if p.agent == nil || !p.agent.found {
		return "unknown"
	}
	return p.agent.status
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
