package herdrtest

import (
	"fmt"
	"time"
)

// What a test, or the human whose terminal it is, does to a pane by hand. Panes are named as
// Herdr names them; a pane that does not exist is fatal.

// Panes returns the ids of all panes.
func (s *Server) Panes() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.model.allPanes() {
		ids = append(ids, p.id)
	}
	return ids
}

// Env returns the environment that the pane was made with.
func (s *Server) Env(id string) (env map[string]string) {
	s.onPane(id, func(q *pane) { env = q.env })
	return env
}

// ClosePane closes the pane, as a human does.
func (s *Server) ClosePane(id string) { s.Do("pane.close", map[string]any{"pane_id": id}) }

// MovePane moves the pane into a tab of its own in a workspace of its own, and returns its
// new id.
func (s *Server) MovePane(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.model.panes[id]
	if p == nil {
		s.fatal("no pane %s", id)
	}
	w := s.model.addWorkspace("elsewhere")
	s.move(p, s.model.addTab(w, ""))
	return p.id
}

// Human types a text into the pane's agent and presses Enter.
func (s *Server) Human(id, text string) {
	s.onPane(id, func(q *pane) {
		q.program.text(text)
		q.program.key("enter")
	})
}

// Key presses a key in the pane.
func (s *Server) Key(id, key string) { s.onPane(id, func(q *pane) { q.program.key(key) }) }

// Answer answers the dialog that the pane's agent has open.
func (s *Server) Answer(id string, yes bool) {
	s.onPane(id, func(q *pane) {
		if q.agent != nil && q.agent.turn != nil {
			q.agent.turn.answers <- yes
		}
	})
}

// Kill kills the agent's program. Herdr shows it as done for a moment before it notices.
func (s *Server) Kill(id string, notice time.Duration) {
	s.onPane(id, func(q *pane) {
		a := q.agent
		if a == nil {
			return
		}
		if a.child != nil {
			a.child.disconnect()
		}
		a.stopped = true // the process is not there any more
		s.setStatus(q, a, "idle")
		time.AfterFunc(notice, func() { s.with(q, a, func() { s.agentEnded(q, a) }) })
	})
}

// Look is a human who looks at the pane: done becomes idle.
func (s *Server) Look(id string) {
	s.onPane(id, func(q *pane) {
		if q.agent != nil && q.agent.status == "done" {
			q.agent.status = "idle"
			s.emitStatus(q)
		}
	})
}

// CutLink breaks the connection between the pane's agent and its host; both live on.
// MendLink makes it again.
func (s *Server) CutLink(id string) { s.setCut(id, true) }

// MendLink: see CutLink.
func (s *Server) MendLink(id string) { s.setCut(id, false) }

func (s *Server) setCut(id string, cut bool) {
	s.onPane(id, func(q *pane) {
		if q.agent == nil || q.agent.child == nil {
			s.fatal("pane %s has no link", id)
		}
		e := q.agent.child.e
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cut = cut
		if e.host != nil {
			e.host.poke()
		}
	})
}

// Replace ends what is in the pane and puts another terminal with another program there,
// under the same id.
func (s *Server) Replace(id, kind string) {
	s.onPane(id, func(q *pane) {
		q.program.kill()
		q.agent, q.env, q.terminal = nil, nil, newTerminal()
		q.program = s.newProgram(q)
		q.program.run(kind, nil)
	})
}

// Integrate installs Herdr's own integration: agents that are started from now on, with a
// session file, tell Herdr what they do, and nobody else does.
func (s *Server) Integrate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrated = true
}

// Session says which session file the agent keeps, as Herdr's integration does.
func (s *Server) Session(id, file string) {
	s.onPane(id, func(q *pane) {
		q.agent.session = &sessionRef{Source: "herdr:pi", Agent: "pi", Kind: "path", Value: file}
	})
}

func (s *Server) onPane(id string, f func(*pane)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.model.panes[id]
	if p == nil {
		panic(fmt.Sprintf("herdrtest: no pane %s", id))
	}
	f(p)
}
