package herdrtest

import (
	"slices"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// agent is a program that Herdr knows as an agent.
type agent struct {
	kind    string
	pid     int
	found   bool // recognised
	pending bool
	ready   bool
	stopped bool // in the background, with the shell in front
	status  string
	seq     uint64
	session *sessionRef

	// of scripted agents
	editor string
	out    string
	turn   *Turn
	child  *child // its end of the link, if it has one
	dead   bool
}

// startAgent starts a scripted agent in the pane.
func (s *Server) startAgent(p *pane, kind string, args []string) {
	a := &agent{kind: kind, pid: s.newPID(), pending: true, status: "idle"}
	if i := slices.Index(args, "--session"); s.integrated && i >= 0 && i+1 < len(args) {
		a.session = &sessionRef{Source: "herdr:pi", Agent: "pi", Kind: "path", Value: args[i+1]}
	}
	p.agent = a
	a.child = s.links.childOf(p.env[linkVar], a.pid)
	if a.child != nil {
		a.child.accept = func(sub lifecycle.Submission, text string) error { return s.acceptPrompt(p, a, sub, text) }
	}
	go func() {
		time.Sleep(s.o.FoundAfter)
		s.with(p, a, func() { s.found(p, a) })
		if a.child != nil {
			a.child.connect()
		}
		time.Sleep(s.o.ReadyAfter)
		s.with(p, a, func() { s.interactive(p, a) })
	}()
}

// found is when Herdr recognises the agent.
func (s *Server) found(p *pane, a *agent) {
	a.found = true
	s.model.seq++
	a.seq = s.model.seq
	s.model.emit("pane_agent_detected", map[string]any{"pane_id": p.id, "workspace_id": p.in.in.id, "agent": a.kind})
	s.emitStatus(p)
}

func (s *Server) interactive(p *pane, a *agent) {
	a.pending, a.ready = false, true
	s.model.emit("pane_updated", map[string]any{"pane": s.model.paneInfo(p)})
}

// with runs f with the mutex, if the agent is still there.
func (s *Server) with(p *pane, a *agent, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.agent == a && !a.dead {
		f()
	}
}

// setStatus changes what Herdr shows. At rest is idle where somebody looks, and done where
// nobody does.
func (s *Server) setStatus(p *pane, a *agent, status string) {
	if status == "idle" && a.status != "idle" && !s.model.focused(p) {
		status = "done"
	}
	if status == a.status || (status == "idle" && a.status == "done") {
		return
	}
	a.status = status
	s.model.seq++
	a.seq = s.model.seq
	s.emitStatus(p)
}

func (s *Server) emitStatus(p *pane) {
	d := map[string]any{"pane_id": p.id, "workspace_id": p.in.in.id, "agent_status": p.status()}
	if p.agent != nil && p.agent.found {
		d["agent"] = p.agent.kind
	}
	s.model.emit(statusChanged, d)
}

// agentEnded is when the program has ended and the shell is alone again.
func (s *Server) agentEnded(p *pane, a *agent) {
	last := p.status()
	p.agent, p.name = nil, ""
	a.die()
	if a.found {
		s.model.emit("pane_agent_detected", map[string]any{"pane_id": p.id, "workspace_id": p.in.in.id, "agent": a.kind, "released": true, "final_status": last})
		s.emitStatus(p)
	}
}

// die ends the program.
func (a *agent) die() {
	if a.dead {
		return
	}
	a.dead = true
	if a.turn != nil {
		close(a.turn.gone)
	}
	if a.child != nil {
		a.child.disconnect()
	}
}

// agentKey is a key pressed in the agent's terminal.
func (s *Server) agentKey(p *pane, a *agent, name string) {
	switch name {
	case "enter":
		text := a.editor
		a.editor = ""
		if text == "" {
			return
		}
		a.out += "\n" + text
		if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "/") {
			return // a command: no turn
		}
		if a.turn == nil { // else it joins the turn
			s.begin(p, a, lifecycle.Submission{}, text)
		}
	case "esc", "escape":
		if a.turn != nil {
			a.turn.abort()
		}
	case "ctrl+d":
		if a.turn == nil {
			s.agentEnded(p, a)
		}
	}
}

// acceptPrompt is a prompt that comes through the link.
func (s *Server) acceptPrompt(p *pane, a *agent, sub lifecycle.Submission, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.dead:
		return lifecycle.ErrAgentGone
	case a.turn != nil:
		return lifecycle.ErrAgentBusy
	}
	s.begin(p, a, sub, text)
	return nil
}

// begin begins a turn. Callers hold the mutex.
func (s *Server) begin(p *pane, a *agent, sub lifecycle.Submission, text string) {
	if marker, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(marker, "[sheep:") {
		text = rest
	}
	t := &Turn{Text: text, s: s, p: p, a: a, prompt: sub.Prompt,
		aborted: make(chan struct{}), gone: make(chan struct{}), answers: make(chan bool, 1)}
	a.turn = t
	if !s.o.Blind || a.session != nil {
		s.setStatus(p, a, "working")
	}
	if a.child != nil {
		a.child.began(sub)
	}
	go t.run()
}
