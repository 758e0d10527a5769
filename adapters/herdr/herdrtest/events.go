package herdrtest

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"
)

// ring keeps the newest events of all kinds. What falls out of it is lost in silence.
type ring struct {
	events  []event
	next    uint64 // number of the next event
	dropped map[string]int
}

const ringSize = 512

type event struct {
	n    uint64
	kind string // underscored
	pane string // of a status
	data any
}

// emit appends an event. Callers hold the server's mutex.
func (r *ring) emit(kind string, data map[string]any) {
	if r.dropped[kind] > 0 {
		r.dropped[kind]--
		return
	}
	e := event{n: r.next, kind: kind, data: data}
	if kind == statusChanged {
		e.pane = data["pane_id"].(string)
	} else {
		data["type"] = kind
	}
	r.next++
	r.events = append(r.events, e)
	if len(r.events) > ringSize {
		r.events = r.events[len(r.events)-ringSize:]
	}
}

// Lose makes the next n events of the kind ("pane_agent_status_changed") never happen.
func (s *Server) Lose(kind string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model.dropped == nil {
		s.model.dropped = make(map[string]int)
	}
	s.model.dropped[kind] += n
}

// Noise puts n events into the ring that are about nobody.
func (s *Server) Noise(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := []string{"pane_closed", "pane_exited", "tab_closed", "pane_agent_detected"}
	for i := range n {
		s.model.emit(kinds[i%len(kinds)], map[string]any{"pane_id": fmt.Sprintf("w9:p%d", i), "tab_id": fmt.Sprintf("w9:t%d", i), "workspace_id": "w9"})
	}
}

// Emit puts an event into the ring, true or not.
func (s *Server) Emit(kind string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.emit(kind, data)
}

const statusChanged = "pane_agent_status_changed"

// globalEvents are what can be subscribed to without a pane.
var globalEvents = func() map[string]bool {
	all := make(map[string]bool)
	for _, kinds := range []string{
		"workspace: created updated metadata_updated renamed moved reordered closed focused",
		"worktree: created opened removed",
		"tab: created closed focused renamed moved",
		"pane: created closed updated focused moved exited agent_detected",
		"layout: updated",
	} {
		of, names, _ := strings.Cut(kinds, ":")
		for _, name := range strings.Fields(names) {
			all[of+"."+name] = true
		}
	}
	return all
}()

// entry is one line of a subscription.
type entry struct {
	kind   string // underscored
	pane   string
	status string // a filter
	from   uint64
}

func (s *Server) subscribe(c net.Conn, r call, down <-chan struct{}) {
	entries, refusal := s.entries(r)
	if refusal != nil {
		id := r.ID
		if refusal.unheard {
			id = ""
		} else if i := strings.Index(refusal.Message, "\x00"); i >= 0 {
			id, refusal.Message = refusal.Message[:i], refusal.Message[i+1:]
		}
		write(c, reply{ID: id, Error: refusal})
		return
	}
	s.countStream(1) // before the answer, so that whoever has it finds the stream counted
	defer s.countStream(-1)
	if !write(c, reply{ID: r.ID, Result: map[string]string{"type": "subscription_started"}}) {
		return
	}
	left := make(chan struct{})
	go func() { // any byte, and any end, is the client's leaving
		defer close(left)
		_, _ = c.Read(make([]byte, 1))
	}()
	tick := time.NewTicker(s.o.Tick)
	defer tick.Stop()
	for {
		for _, line := range s.due(entries) {
			if !write(c, line) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-left:
			return
		case <-down:
			return
		}
	}
}

func (s *Server) countStream(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams += n
}

// entries checks a subscription. The first bad entry rejects all of it.
func (s *Server) entries(r call) ([]*entry, *refusal) {
	var p struct {
		Subscriptions []struct {
			Type        string `json:"type"`
			PaneID      string `json:"pane_id"`
			AgentStatus string `json:"agent_status"`
		} `json:"subscriptions"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, invalid(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []*entry
	for i, sub := range p.Subscriptions {
		e := &entry{kind: strings.ReplaceAll(sub.Type, ".", "_"), pane: sub.PaneID, status: sub.AgentStatus}
		switch {
		case globalEvents[sub.Type]:
		case e.kind == statusChanged:
			if s.model.panes[sub.PaneID] == nil {
				return nil, refuse("pane_not_found", fmt.Sprintf("%s:sub:%d:probe\x00pane %s not found", r.ID, i, sub.PaneID))
			}
			e.from = s.model.next
		case sub.Type == "pane.output_matched" || sub.Type == "pane.scroll_changed":
		default:
			return nil, invalid("unknown variant `" + sub.Type + "`, expected one of `workspace.created`, …")
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// due returns what a tick brings: at most one line for each entry.
func (s *Server) due(entries []*entry) (lines []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		for _, ev := range s.model.events {
			if ev.n < e.from || ev.kind != e.kind || ev.pane != e.pane {
				continue
			}
			e.from = ev.n + 1
			if e.status != "" && ev.data.(map[string]any)["agent_status"] != e.status {
				continue
			}
			name := ev.kind
			if e.pane != "" {
				name = strings.Replace(ev.kind, "_", ".", 1)
			}
			lines = append(lines, map[string]any{"event": name, "data": ev.data})
			break
		}
	}
	return lines
}
