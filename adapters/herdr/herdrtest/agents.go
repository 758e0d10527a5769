package herdrtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

var (
	agentName  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	agentKinds = []string{"pi", "claude", "codex", "gemini", "opencode", "amp", "droid", "cursor"}
)

// agentStart checks in Herdr's order, types the command and answers at once.
func (s *Server) agentStart(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	if !agentName.MatchString(p.Name) {
		return nil, refuse("invalid_agent_name", "agent name must start with a lowercase letter and contain only lowercase letters, digits, '-' or '_' (1-32 characters)")
	}
	if _, real := s.o.Programs[p.Kind]; !real && !slices.Contains(agentKinds, p.Kind) {
		return nil, refuse("unsupported_agent_kind", "unsupported interactive agent kind "+p.Kind)
	}
	for _, arg := range p.Args {
		if strings.ContainsFunc(arg, unicode.IsControl) {
			return nil, refuse("invalid_agent_argument", "agent arguments cannot be encoded safely for the target shell")
		}
	}
	for _, q := range s.model.allPanes() {
		if q.name == p.Name {
			return nil, refuse("agent_name_taken", fmt.Sprintf("agent name %s is already used; candidates: terminal_id=%s pane_id=%s workspace_id=%s tab_id=%s cwd=%s status=Unknown",
				p.Name, q.terminal, q.id, q.in.in.id, q.in.id, q.cwd))
		}
	}
	q := s.model.panes[p.PaneID]
	switch {
	case q == nil || q.id != p.PaneID:
		return nil, refuse("agent_pane_not_found", "agent target pane "+p.PaneID+" not found")
	case p.TimeoutMS != nil && (*p.TimeoutMS <= 3000 || *p.TimeoutMS > 300000):
		return nil, refuse("invalid_agent_timeout", "agent start timeout must be greater than 3000ms and at most 300000ms")
	case q.agent != nil || q.program.busy():
		return nil, refuse("agent_pane_busy", "agent target pane "+q.id+" is not an available shell")
	}
	q.name = p.Name
	info := s.model.agentInfo(q)
	info.LaunchPending, info.AgentStatus = true, "unknown"
	q.program.run(p.Kind, p.Args)
	if q.agent == nil { // nothing has started; the name goes when the time is over
		timeout := 30 * time.Second
		if p.TimeoutMS != nil {
			timeout = time.Duration(*p.TimeoutMS) * time.Millisecond
		}
		time.AfterFunc(timeout, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if q.agent == nil {
				q.name = ""
			}
		})
	}
	return object{"type": "agent_started", "agent": info, "argv": append([]string{p.Kind}, p.Args...)}, nil
}

func (s *Server) agentList(json.RawMessage) (any, *refusal) {
	all := []agentInfo{}
	for _, q := range s.model.allPanes() {
		if q.agent != nil || q.name != "" {
			all = append(all, s.model.agentInfo(q))
		}
	}
	return object{"type": "agent_list", "agents": all}, nil
}

func (s *Server) agentInfo(q *pane, _ params) (any, *refusal) {
	return object{"type": "agent_info", "agent": s.model.agentInfo(q)}, nil
}

func (s *Server) agentRename(q *pane, p params) (any, *refusal) {
	if q.agent != nil && q.agent.pending {
		return nil, refuse("agent_launch_pending", "agent launch is pending")
	}
	q.name = p.Name
	return s.agentInfo(q, p)
}

// LoseEnter makes the Enter that follows the next n prompts get lost.
func (s *Server) LoseEnter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lostEnters = n
}

// agentPrompt types the text; Enter follows later, and the answer does not wait for it.
func (s *Server) agentPrompt(p params) (any, *refusal) {
	if p.Text == "" {
		return nil, refuse("empty_agent_prompt", "agent prompt must not be empty")
	}
	q, r := s.model.target(p.Target)
	switch {
	case r != nil:
		return nil, r
	case q.agent == nil || q.agent.pending || q.agent.stopped:
		return nil, refuse("agent_not_ready", "agent "+p.Target+" is not ready")
	}
	q.program.text(p.Text)
	a, terminal := q.agent, q.terminal
	if s.lostEnters > 0 {
		s.lostEnters--
	} else {
		time.AfterFunc(s.o.EnterAfter, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if q.agent == a && q.terminal == terminal {
				q.program.key("enter")
			}
		})
	}
	return object{"type": "agent_prompted", "agent": s.model.agentInfo(q)}, nil
}
