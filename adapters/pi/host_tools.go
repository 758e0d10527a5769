package pi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// call carries out a tool call of the parent's model.
func (s *hostSession) call(ctx context.Context, p bridgeCall) (bridgeResult, error) {
	s.parent.update("", p.Model)
	tool, ok := s.tools[p.Name]
	if !ok {
		return bridgeResult{}, fmt.Errorf("there is no tool %q in this shepherd-pi", p.Name)
	}
	r := tool.Call(ctx, p.Args)
	if r.Details == nil {
		r.Details = map[string]any{}
	}
	return bridgeResult{Text: r.Text, Details: r.Details, IsError: r.IsError, ReturnCode: r.ReturnCode}, nil
}

// allTools are shepherd's own, three of them with a little bookkeeping, and the host's.
func (s *hostSession) allTools() map[string]shepherd.Tool {
	all := map[string]shepherd.Tool{}
	for _, t := range append(s.sh.Tools(), s.hostTools()...) {
		call := t.Call
		switch t.Name {
		case "shepherd_start":
			t.Call = func(ctx context.Context, args json.RawMessage) shepherd.ToolResult { return s.started(call(ctx, args)) }
		case "shepherd_prompt":
			t.Call = func(ctx context.Context, args json.RawMessage) shepherd.ToolResult {
				return s.prompted(call(ctx, args))
			}
		case "shepherd_watch":
			t.Call = func(ctx context.Context, args json.RawMessage) shepherd.ToolResult {
				s.watching.Lock()
				defer s.watching.Unlock()
				return s.watched(call(ctx, args))
			}
		}
		all[t.Name] = t
	}
	return all
}

// started makes the ledger, by which a later host knows that there is something to look
// after, and says once where children live.
func (s *hostSession) started(r shepherd.ToolResult) shepherd.ToolResult {
	s.tellHerd()
	if r.IsError {
		return r
	}
	if _, err := s.ledger.take(context.Background(), true); err != nil {
		s.host.o.Logger.Error("no ledger: a notice may be lost with its process", "err", err)
	}
	s.mu.Lock()
	said := s.placed
	s.placed = true
	s.mu.Unlock()
	if end := strings.LastIndex(r.Text, "\n   return code:"); !said && end >= 0 && s.parts.Place != "" {
		r.Text = r.Text[:end] + "\n   agents live in: " + s.parts.Place + r.Text[end:]
		r.Details["place"] = s.parts.Place
	}
	return r
}

func (s *hostSession) prompted(r shepherd.ToolResult) shepherd.ToolResult {
	id, _ := r.Details["promptId"].(lifecycle.PromptID)
	agent, _ := r.Details["agentId"].(lifecycle.AgentID)
	path, _ := r.Details["notePath"].(string)
	if id != "" {
		p := bridgePrompt{ID: id, AgentID: agent, NotePath: path, Started: time.Now()}
		if st, err := s.sh.Status(agent); err == nil {
			p.Agent, p.Label = st.Name, st.Label
			if st.PromptID == id {
				p.Started = st.Submitted
			}
		}
		s.mu.Lock()
		s.prompts[id], s.newest[agent] = p, id
		s.mu.Unlock()
	}
	s.tellHerd()
	return r
}

// watched records a new watch on both sides of the bridge, before its first notice.
func (s *hostSession) watched(r shepherd.ToolResult) shepherd.ToolResult {
	id, _ := r.Details["watcherId"].(watch.ID)
	if id == "" {
		return r
	}
	all, _ := r.Details["promptIds"].([]lifecycle.PromptID)
	pending, _ := r.Details["pending"].([]lifecycle.PromptID)
	s.mu.Lock()
	w := bridgeWatch{ID: id, Order: s.nextOrder()}
	s.orders[id], s.inputs[id] = w.Order, all
	for _, p := range pending {
		known, ok := s.prompts[p]
		if !ok {
			known.ID = p
		}
		known.Input = slices.Index(all, p)
		w.Prompts = append(w.Prompts, known)
	}
	if len(pending) > 0 {
		s.watches[id] = w
	}
	s.mu.Unlock()
	if len(pending) > 0 {
		s.host.push("watch", w)
	}
	return r
}

// nextOrder is called with the lock held.
func (s *hostSession) nextOrder() int {
	order := 0
	for _, o := range s.orders {
		order = max(order, o)
	}
	return order + 1
}

// hostTools are the tools that only a host has.
func (s *hostSession) hostTools() []shepherd.Tool {
	const (
		none = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`
		read = `{"type":"object","properties":{"id":{"description":"the agent id that shepherd_start returned","type":"string"},"lines":{"description":"at most so many lines from the end; default 40","type":"number","exclusiveMinimum":0,"maximum":1000}},"required":["id"],"additionalProperties":false}`
	)
	var tools []shepherd.Tool
	for _, t := range []struct {
		name, description, schema string
		run                       func(context.Context, json.RawMessage) (shepherd.ToolAnswer, error)
	}{
		{"shepherd_agents", "List the kinds of agents that shepherd_start knows, with what they are good for and where each is defined.", none, s.toolAgents},
		{"shepherd_herd", "Show the whole herd: every child agent of this session, what it is doing and for how long, and how its last prompt ended.", none, s.toolHerd},
		{"shepherd_read", "Look at the end of what a child agent has been saying, while it works or afterwards. Its final answer comes with shepherd_watch or shepherd_wait.", read, s.toolRead},
		{"shepherd_prune", "Close what earlier, dead processes of this very session have left running, and nothing else.", none, s.toolPrune},
	} {
		tools = append(tools, shepherd.NewTool(t.name, t.description, json.RawMessage(t.schema), t.run))
	}
	return tools
}

// field is a named value of a tool's answer.
func field(name string, value any) shepherd.ToolField {
	return shepherd.ToolField{Name: name, Value: value}
}

func (s *hostSession) toolAgents(ctx context.Context, args json.RawMessage) (shepherd.ToolAnswer, error) {
	if err := decodeArgs(args, &struct{}{}); err != nil {
		return shepherd.ToolAnswer{}, err
	}
	if s.parts.Agents == nil {
		return shepherd.ToolAnswer{Service: "no agents are defined; shepherd_start takes any name, and what it does is up to your prompt.", Return: []any{}}, nil
	}
	found, err := s.parts.Agents(ctx)
	if err != nil {
		return shepherd.ToolAnswer{}, err
	}
	list := []any{}
	for _, d := range found {
		list = append(list, shepherd.ToolFields{
			field("agent", d.Name), field("description", d.Description), field("model", orWord(d.Model, "as the parent")), field("source", d.Source),
		})
	}
	return shepherd.ToolAnswer{Service: fmt.Sprintf("%d agents are defined.", len(list)), Return: list}, nil
}

func (s *hostSession) toolHerd(_ context.Context, args json.RawMessage) (shepherd.ToolAnswer, error) {
	if err := decodeArgs(args, &struct{}{}); err != nil {
		return shepherd.ToolAnswer{}, err
	}
	list := []any{}
	for _, c := range s.children() {
		list = append(list, shepherd.ToolFields{
			field("agentId", c.ID), field("agent", c.Agent), field("label", c.Label), field("state", c.State), field("for", c.age().String()),
		})
	}
	return shepherd.ToolAnswer{
		Service: fmt.Sprintf("%d agents in the herd.", len(list)), Return: list,
		Details: shepherd.ToolFields{field("agentsLiveIn", s.parts.Place)},
	}, nil
}

func (s *hostSession) toolRead(ctx context.Context, args json.RawMessage) (shepherd.ToolAnswer, error) {
	id, lines, err := readArgs(args)
	if err != nil {
		return shepherd.ToolAnswer{}, err
	}
	text, err := s.sh.Recent(ctx, id)
	if err != nil {
		return shepherd.ToolAnswer{}, err
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return shepherd.ToolAnswer{
		Service: "recent output of " + string(id),
		Return:  shepherd.ToolFields{field("text", cutText(strings.Join(all, "\n"), ""))}, // in JSON, so that its lines stay
		Details: shepherd.ToolFields{field("agentId", id)},
	}, nil
}

func readArgs(raw json.RawMessage) (id lifecycle.AgentID, lines int, err error) {
	args := struct {
		ID    lifecycle.AgentID `json:"id"`
		Lines float64           `json:"lines"`
	}{Lines: 40}
	switch err := decodeArgs(raw, &args); {
	case err != nil:
		return "", 0, err
	case args.ID == "" || args.ID == "null":
		return "", 0, fmt.Errorf("%w: argument \"id\" is missing; expected: the agent id that shepherd_start returned", shepherd.ErrInvalid)
	case args.Lines < 1 || args.Lines > 1000:
		return "", 0, fmt.Errorf("%w: argument \"lines\" is not a number from 1 to 1000", shepherd.ErrInvalid)
	}
	return args.ID, int(args.Lines), nil
}

func (s *hostSession) toolPrune(ctx context.Context, args json.RawMessage) (shepherd.ToolAnswer, error) {
	if err := decodeArgs(args, &struct{}{}); err != nil {
		return shepherd.ToolAnswer{}, err
	}
	list := []any{}
	if s.parts.Prune != nil {
		gone, err := s.parts.Prune(ctx)
		if err != nil {
			return shepherd.ToolAnswer{}, err
		}
		for _, g := range gone {
			list = append(list, g)
		}
	}
	return shepherd.ToolAnswer{Service: fmt.Sprintf("closed %d orphans.", len(list)), Return: list}, nil
}

// decodeArgs decodes the arguments, whatever a model made of them, and refuses unknown ones.
func decodeArgs(raw json.RawMessage, into any) error {
	if t := bytes.TrimSpace(raw); len(t) == 0 || string(t) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: the arguments cannot be used: %v", shepherd.ErrInvalid, err)
	}
	return nil
}

func orWord(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
