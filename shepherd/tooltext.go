package shepherd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// answer is what a tool has to say, before it is put into the common structure.
type answer struct {
	service    string
	value      any // returned: a string as it is, everything else as JSON
	details    fields
	returnCode int
}

// fields are named values in an order.
type fields []field

type field struct {
	name  string
	value any
}

// with adds a field if it is to be shown.
func (f fields) with(show bool, name string, value any) fields {
	if !show {
		return f
	}
	if err, ok := value.(error); ok {
		value = err.Error()
	}
	return append(f, field{name, value})
}

// MarshalJSON makes an object that keeps the order.
func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, field := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", compact(field.name), compact(field.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (a answer) result(tool string, call json.RawMessage) ToolResult {
	details := append(a.details[:len(a.details):len(a.details)], field{"returnCode", a.returnCode})
	data := map[string]any{}
	for _, f := range details {
		data[f.name] = f.value
	}
	data["return"] = a.value
	return ToolResult{Text: render(a.service, tool, call, a.value, details), Details: data, ReturnCode: a.returnCode}
}

func failure(tool string, call json.RawMessage, err error) ToolResult {
	action := strings.TrimPrefix(tool, "shepherd_")
	code, returnCode := classify(err)
	out := answer{
		service:    fmt.Sprintf("Herd %s failed (return code %d): %s", action, returnCode, err),
		value:      fields{{"code", code}, {"error", err.Error()}, {"returnCode", returnCode}},
		details:    fields{{"action", action}, {"code", code}, {"error", err.Error()}},
		returnCode: returnCode,
	}
	r := out.result(tool, call)
	r.IsError = true
	return r
}

// classify gives an error a word that a program can act on.
func classify(err error) (code string, returnCode int) {
	for _, c := range []struct {
		sentinel error
		code     string
	}{
		{ErrUnknownAgent, "unknown_handle"}, {ErrUnknownPrompt, "unknown_handle"}, {ErrUnknownWatcher, "unknown_handle"},
		{ErrAgentBusy, "active_prompt"}, {ErrAgentBlocked, "blocked_agent"},
		{ErrAgentClosed, "closed_handle"}, {ErrAgentGone, "agent_gone"},
		{ErrTooManyAgents, "too_many_agents"}, {ErrLabelTaken, "label_taken"},
		{ErrUnreachable, "unreachable_parent"}, {ErrClosed, "shepherd_closed"},
		{errInvalidHandle, "invalid_handle"}, {ErrInvalid, "invalid_argument"},
	} {
		if errors.Is(err, c.sentinel) {
			return c.code, 1
		}
	}
	return "shepherd_error", 1
}

// render lays a result out as all shepherd tools do. Values stand as JSON, so no text of a
// child can end a section or begin another.
func render(service, tool string, call json.RawMessage, value any, details fields) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\ncall:\n    %s %s\n\nreturn:\n    %s\n\ndetails:", oneLine(service), tool, callText(call), valueText(value))
	for _, f := range details {
		fmt.Fprintf(&b, "\n   %s: %s", words(f.name), plainOrJSON(f.value))
	}
	return b.String()
}

func callText(call json.RawMessage) string {
	var b bytes.Buffer
	switch {
	case len(bytes.TrimSpace(call)) == 0:
		return "{}"
	case json.Compact(&b, call) != nil:
		return compact(string(call))
	}
	return b.String()
}

// valueText is a value on lines of its own: each element of a list begins one.
func valueText(value any) string {
	list, ok := value.([]any)
	if !ok || len(list) < 2 {
		return plainOrJSON(value)
	}
	lines := make([]string, len(list))
	for i, v := range list {
		lines[i] = compact(v)
	}
	return "[" + strings.Join(lines, ",\n     ") + "]"
}

func plainOrJSON(v any) string {
	if s, ok := v.(string); ok {
		return oneLine(s)
	}
	raw := compact(v)
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil { // an id, a status: a string of its own type
		return oneLine(s)
	}
	return raw
}

// oneLine keeps a text on its line.
func oneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}

// compact is JSON without the escapes that are only for HTML.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// words takes a field's name apart: sessionPath is "session path".
func words(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
