package herdrtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// waits are the methods whose answer may come late. They look again at each tick.
func (s *Server) waits(method string, raw json.RawMessage, down <-chan struct{}) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	switch method {
	case "agent.prompt":
		return s.promptAndWait(p, down)
	case "agent.wait":
		until := orAtRest(p.Until)
		return s.poll(p.TimeoutMS, down, func() (any, *refusal) {
			q, r := s.model.target(p.Target)
			if r != nil || !slices.Contains(until, q.status()) {
				return nil, r
			}
			return s.agentInfo(q, p)
		})
	case "events.wait":
		return s.eventsWait(raw, p, down)
	default:
		return s.waitForOutput(raw, p, down)
	}
}

func orAtRest(until []string) []string {
	if len(until) == 0 {
		return []string{"idle", "done", "blocked"}
	}
	return until
}

// poll asks until there is an answer.
func (s *Server) poll(timeoutMS *int64, down <-chan struct{}, ask func() (any, *refusal)) (any, *refusal) {
	var late <-chan time.Time
	if timeoutMS != nil {
		late = time.After(time.Duration(*timeoutMS) * time.Millisecond)
	}
	for {
		s.mu.Lock()
		result, r := ask()
		s.mu.Unlock()
		if result != nil || r != nil {
			return result, r
		}
		select {
		case <-time.After(s.o.Tick):
		case <-late:
			return nil, refuse("timeout", "timed out")
		case <-down:
			return nil, errDown
		}
	}
}

// promptAndWait: a prompt with wait needs the state to change soon, or is reported as stalled
// whatever may come later.
func (s *Server) promptAndWait(p params, down <-chan struct{}) (any, *refusal) {
	s.mu.Lock()
	result, r := s.agentPrompt(p)
	s.mu.Unlock()
	if r != nil || p.Wait == nil {
		return result, r
	}
	before := result.(object)["agent"].(agentInfo)
	stall, stalled := int64(5000), "agent_prompt_stalled"
	if t := p.Wait.TimeoutMS; t != nil && *t <= stall {
		stall, stalled = *t, "timeout"
	}
	if before.AgentStatus != "working" {
		_, r = s.poll(&stall, down, func() (any, *refusal) {
			q, r := s.model.target(before.PaneID)
			if r != nil {
				return nil, refuse("agent_not_running", "agent is not running")
			}
			if q.agent != nil && q.agent.seq > before.StateChangeSeq {
				return true, nil
			}
			return nil, nil
		})
		if r != nil && r.Code == "timeout" {
			r = refuse(stalled, fmt.Sprintf("agent prompt produced no observed state change within %d ms; status is %s and state_change_seq remained %d",
				stall, before.AgentStatus, before.StateChangeSeq))
		}
		if r != nil {
			return nil, r
		}
	}
	until := orAtRest(p.Wait.Until)
	return s.poll(p.Wait.TimeoutMS, down, func() (any, *refusal) {
		q, r := s.model.target(before.PaneID)
		if r != nil {
			return nil, refuse("agent_not_running", "agent is not running")
		}
		if !slices.Contains(until, q.status()) {
			return nil, nil
		}
		return object{"type": "agent_prompted", "agent": s.model.agentInfo(q)}, nil
	})
}

func (s *Server) eventsWait(raw json.RawMessage, p params, down <-chan struct{}) (any, *refusal) {
	var w struct {
		Match struct {
			Event       string `json:"event"`
			PaneID      string `json:"pane_id"`
			AgentStatus string `json:"agent_status"`
		} `json:"match_event"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, invalid(err.Error())
	}
	if w.Match.Event != statusChanged {
		return nil, refuse("unsupported_event_wait_match", "only pane_agent_status_changed can be waited for")
	}
	return s.poll(p.TimeoutMS, down, func() (any, *refusal) {
		q := s.model.panes[w.Match.PaneID]
		if q == nil {
			return nil, refuse("pane_not_found", "pane "+w.Match.PaneID+" not found")
		}
		if q.status() != w.Match.AgentStatus {
			return nil, nil
		}
		return object{"type": "wait_matched", "event": object{"event": statusChanged, "data": object{
			"type": statusChanged, "pane_id": q.id, "workspace_id": q.in.in.id, "agent_status": q.status()}}}, nil
	})
}

func (s *Server) waitForOutput(raw json.RawMessage, p params, down <-chan struct{}) (any, *refusal) {
	var w struct {
		Match struct{ Type, Value string } `json:"match"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, invalid(err.Error())
	}
	matches := func(line string) bool { return strings.Contains(line, w.Match.Value) }
	if w.Match.Type == "regex" {
		re, err := regexp.Compile(w.Match.Value)
		if err != nil {
			return nil, refuse("invalid_regex", err.Error())
		}
		matches = re.MatchString
	}
	return s.poll(p.TimeoutMS, down, func() (any, *refusal) {
		q := s.model.panes[p.PaneID]
		if q == nil {
			return nil, refuse("pane_not_found", "pane "+p.PaneID+" not found")
		}
		for line := range strings.Lines(q.program.screen()) {
			if line = strings.TrimRight(line, "\n"); matches(line) {
				read, r := s.paneRead(q, p)
				if r != nil {
					return nil, r
				}
				return object{"type": "output_matched", "pane_id": q.id, "revision": 0, "matched_line": line, "read": read.(object)["read"]}, nil
			}
		}
		return nil, nil
	})
}
