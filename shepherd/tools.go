package shepherd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Tool is one operation as data, for a host that hands tools to a model: an extension, an
// MCP server, a test.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments, an object.
	Schema json.RawMessage
	// Call checks the arguments, whatever a model made of them, and carries the operation
	// out. It never fails: an error is a result. ctx bounds it. Any number of calls may be
	// under way at once.
	Call func(ctx context.Context, args json.RawMessage) ToolResult
}

// ToolResult is what a call returns, in the structure that all shepherd tools have: a
// service message, call, return and details (watcher spec, Public API).
type ToolResult struct {
	Text       string         // all of it, as a model reads it
	Details    map[string]any // the details, for a host's own use; safe to marshal as JSON
	IsError    bool           // the call itself failed; a failed prompt is no error
	ReturnCode int            // 0, or that of the error or of the first prompt that failed
}

// NewTool makes a tool that answers, and fails, in the structure that shepherd's own have. A
// host makes its own tools with it. Its result's text names the call with its arguments;
// errors of this package get the code that shepherd's tools give them.
func NewTool(name, description string, schema json.RawMessage, run func(ctx context.Context, args json.RawMessage) (ToolAnswer, error)) Tool {
	return Tool{Name: name, Description: description, Schema: schema, Call: func(ctx context.Context, args json.RawMessage) ToolResult {
		a, err := run(ctx, args)
		if err != nil {
			return failure(name, args, err)
		}
		return a.result(name, args)
	}}
}

// Tools lists the operations for a model. A host may add its own; see [NewTool].
func (s *Shepherd) Tools() []Tool {
	var tools []Tool
	for _, t := range []struct {
		name, description string
		schema            schema
		run               func(context.Context, args) (ToolAnswer, error)
	}{
		{"shepherd_start", "Start a child agent in a place of its own and return its agent id. It waits for work: give it some with shepherd_prompt.",
			schema{"agent": text("which agent, for example scout").required(), "label": text("what this one is for, a few words; shown beside its name"), "dir": text("its working directory, absolute; default: the project")}, s.toolStart},
		{"shepherd_prompt", "Hand work to a child agent and return a prompt id at once, without waiting for the answer. Then use shepherd_watch to be told, or shepherd_wait to block. One prompt at a time for each agent.",
			schema{"id": text("the agent id that shepherd_start returned").required(), "message": text("the work, complete in itself").required(), "timeoutMinutes": minutes("how long the work may take; default 60")}, s.toolPrompt},
		{"shepherd_wait", "Block until prompts have settled and return their results, in the order of the ids.",
			schema{"id": ids("one prompt id, or several").required(), "timeoutMinutes": minutes("how long to wait; default 20. When it is over, what has not settled is settled as timed out"), "keep": flag("let prompts go on when the time is over, and only say that they have not settled")}, s.toolWait},
		{"shepherd_watch", "Watch prompts and return at once. A message arrives by itself when a watched prompt settles; what has settled already is in the answer. Go on working, or end your turn.",
			schema{"id": ids("one prompt id, or several").required()}, s.toolWatch},
		{"shepherd_unwatch", "Stop a watcher. Its prompts go on, and their results can still be waited for.",
			schema{"id": ids("one watcher id, or several").required()}, s.toolUnwatch},
		{"shepherd_status", "Say what child agents are doing: state, since when, the prompt in flight.",
			schema{"id": ids("one agent id, or several; default: all")}, s.toolStatus},
		{"shepherd_close", "Close child agents that are not needed any more. A prompt in flight is cancelled; notes stay.",
			schema{"id": ids("one agent id, or several").required()}, s.toolClose},
	} {
		tools = append(tools, NewTool(t.name, t.description, t.schema.json(), func(ctx context.Context, raw json.RawMessage) (ToolAnswer, error) {
			a, err := parseArgs(raw, t.schema)
			if err != nil {
				return ToolAnswer{}, err
			}
			return t.run(ctx, a)
		}))
	}
	return tools
}

func (s *Shepherd) toolStart(ctx context.Context, a args) (ToolAnswer, error) {
	spec := Spec{Name: a.text("agent"), Label: a.text("label"), Dir: a.text("dir")}
	id, err := s.Start(ctx, spec)
	if err != nil {
		return ToolAnswer{}, err
	}
	session, err := s.Session(ctx)
	if err != nil {
		return ToolAnswer{}, err
	}
	return ToolAnswer{
		Service: "shepherd_start started " + display(spec.Name, spec.Label),
		Return:  ToolFields{{"id", id}, {"agent", spec.Name}, {"label", spec.Label}, {"sessionName", session.Name}, {"sessionPath", session.Path}, {"sessionRelativePath", session.RelPath}},
		Details: ToolFields{{"agentId", id}, {"sessionName", session.Name}, {"sessionPath", session.Path}, {"sessionRelativePath", session.RelPath}},
	}, nil
}

func (s *Shepherd) toolPrompt(ctx context.Context, a args) (ToolAnswer, error) {
	o := Order{Agent: AgentID(a.text("id")), Text: a.text("message"), Timeout: a.minutes("timeoutMinutes")}
	prompts, err := s.PromptAll(ctx, o)
	if err != nil {
		return ToolAnswer{}, err
	}
	p := prompts[0]
	st, err := s.Status(p.Agent)
	if err != nil {
		return ToolAnswer{}, err
	}
	return ToolAnswer{
		Service: "Prompted " + display(st.Name, st.Label),
		Return:  ToolFields{{"id", p.ID}, {"agentId", p.Agent}, {"notePath", p.NotePath}, {"sessionName", p.SessionName}, {"sessionPath", p.SessionPath}, {"sessionRelativePath", p.SessionRelative}},
		Details: ToolFields{{"promptId", p.ID}, {"agentId", p.Agent}, {"notePath", p.NotePath}, {"sessionName", p.SessionName}, {"sessionPath", p.SessionPath}, {"sessionRelativePath", p.SessionRelative}},
	}, nil
}

func (s *Shepherd) toolWait(ctx context.Context, a args) (ToolAnswer, error) {
	ids := as[PromptID](a.ids("id"))
	results, err := s.WaitFor(ctx, WaitOptions{Timeout: a.minutes("timeoutMinutes"), Keep: a.flag("keep")}, ids...)
	if err != nil {
		return ToolAnswer{}, err
	}
	out := ToolAnswer{Details: ToolFields{{"promptIds", ids}}}
	var names []string
	var list []any
	for _, r := range results {
		names = append(names, display(r.Agent, r.Label))
		list = append(list, resultFields(r))
		if out.ReturnCode == 0 {
			out.ReturnCode = r.ReturnCode
		}
	}
	out.Service, out.Return = "waited for "+strings.Join(names, ", "), oneOrList(a, "id", list)
	return out, nil
}

func (s *Shepherd) toolWatch(ctx context.Context, a args) (ToolAnswer, error) {
	reg, err := s.Watch(ctx, as[PromptID](a.ids("id"))...)
	if err != nil {
		return ToolAnswer{}, err
	}
	service := "watch registered; all prompts were already settled"
	if n := len(reg.Pending); n > 0 {
		service = fmt.Sprintf("watching %s asynchronously", count(n, "prompt"))
	}
	completed := []any{}
	for _, c := range reg.Completed {
		completed = append(completed, completionFields(c))
	}
	return ToolAnswer{
		Service: service,
		Return:  ToolFields{{"watcherId", reg.WatcherID}, {"promptIds", reg.PromptIDs}, {"pending", emptyList(reg.Pending)}, {"completed", completed}},
		Details: ToolFields{{"watcherId", reg.WatcherID}, {"promptIds", reg.PromptIDs}, {"pending", emptyList(reg.Pending)}},
	}, nil
}

func (s *Shepherd) toolUnwatch(_ context.Context, a args) (ToolAnswer, error) {
	ids := as[WatchID](a.ids("id"))
	for _, id := range ids {
		if err := s.Unwatch(id); err != nil {
			return ToolAnswer{}, err
		}
	}
	return ToolAnswer{Service: "stopped " + count(len(ids), "watcher"), Return: a.given("id"), Details: ToolFields{{"watcherIds", ids}}}, nil
}

func (s *Shepherd) toolStatus(_ context.Context, a args) (ToolAnswer, error) {
	all := s.Agents()
	if asked := as[AgentID](a.ids("id")); len(asked) > 0 {
		all = nil
		for _, id := range asked {
			st, err := s.Status(id)
			if err != nil {
				return ToolAnswer{}, err
			}
			all = append(all, st)
		}
	}
	now := s.config.Clock.Now()
	var states []string
	list := []any{}
	ids := []AgentID{}
	for _, st := range all {
		states = append(states, "agent "+stateWord(st)+".")
		list = append(list, statusFields(st, now))
		ids = append(ids, st.ID)
	}
	if len(all) == 0 {
		states = []string{"no agents were started."}
	}
	return ToolAnswer{Service: strings.Join(states, " "), Return: oneOrList(a, "id", list), Details: ToolFields{{"agentIds", ids}}}, nil
}

func (s *Shepherd) toolClose(ctx context.Context, a args) (ToolAnswer, error) {
	ids := as[AgentID](a.ids("id"))
	var names []string
	for _, id := range ids {
		st, err := s.Status(id)
		if err == nil {
			err = s.CloseAgent(ctx, id)
		}
		if err != nil {
			return ToolAnswer{}, err
		}
		names = append(names, display(st.Name, st.Label))
	}
	return ToolAnswer{Service: "closed " + strings.Join(names, ", "), Return: a.given("id"), Details: ToolFields{{"agentIds", ids}}}, nil
}

func resultFields(r Result) ToolFields {
	f := ToolFields{
		{"promptId", r.PromptID}, {"agentId", r.AgentID}, {"agent", r.Agent}, {"label", r.Label},
		{"status", r.Status}, {"ok", r.OK()}, {"returnCode", r.ReturnCode},
	}
	f = f.with(r.Error != "", "error", r.Error).with(r.Text != "", "text", r.Text)
	f = f.with(r.NotePath != "", "notePath", r.NotePath).with(r.NoteErr != nil, "noteError", r.NoteErr)
	return f.with(r.Inferred, "inferred", true).with(r.Running, "running", true)
}

func completionFields(c Completion) ToolFields {
	f := append(ToolFields{{"watcherId", c.WatcherID}}, resultFields(c.Result)...)
	return f.with(c.Waited, "waited", true).with(true, "pending", c.Pending)
}

func statusFields(st AgentStatus, now time.Time) ToolFields {
	f := ToolFields{{"id", st.ID}, {"agent", st.Name}, {"label", st.Label}, {"state", stateWord(st)}}
	f = f.with(!st.Since.IsZero(), "since", st.Since).with(!st.Seen.IsZero(), "lastSign", st.Seen)
	f = f.with(st.PromptID != "", "promptId", st.PromptID)
	f = f.with(!st.Submitted.IsZero(), "promptAge", now.Sub(st.Submitted).Round(time.Second).String())
	return f.with(st.Detail != "", "error", st.Detail)
}

func stateWord(st AgentStatus) string {
	if st.Closed {
		return "closed"
	}
	return st.State.String()
}

func display(name, label string) string {
	switch {
	case name == "":
		return "unknown"
	case label == "":
		return name
	}
	return name + ": " + label
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func as[T ~string](ids []string) []T {
	out := make([]T, len(ids))
	for i, id := range ids {
		out[i] = T(id)
	}
	return out
}

// emptyList makes an empty list of nil, so that it is shown as one.
func emptyList[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// oneOrList answers a single id with a single value, a list with a list.
func oneOrList(a args, name string, list []any) any {
	if _, single := a.given(name).(string); single && len(list) == 1 {
		return list[0]
	}
	return list
}
