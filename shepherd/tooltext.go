package shepherd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ToolAnswer is what a tool has to say, before it is put into the common structure.
type ToolAnswer struct {
	Service string // what happened, in a line
	// Return is what the operation returns: a string as it is, on one line; a list ([]any)
	// with an element on each line; everything else as JSON.
	Return any
	// Details are shown with their names as words: sessionPath is "session path".
	Details    ToolFields
	ReturnCode int
}

// ToolFields are named values in an order. As JSON they are an object that keeps it.
type ToolFields []ToolField

// ToolField is a named value. The name is in camel case.
type ToolField struct {
	Name  string
	Value any
}

// with adds a field if it is to be shown.
func (f ToolFields) with(show bool, name string, value any) ToolFields {
	if !show {
		return f
	}
	if err, ok := value.(error); ok {
		value = err.Error()
	}
	return append(f, ToolField{name, value})
}

// MarshalJSON makes an object of the fields, in their order.
func (f ToolFields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, field := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", compact(field.Name), compact(field.Value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (a ToolAnswer) result(tool string, call json.RawMessage) ToolResult {
	details := append(a.Details[:len(a.Details):len(a.Details)], ToolField{"returnCode", a.ReturnCode})
	data := map[string]any{}
	for _, f := range details {
		data[f.Name] = f.Value
	}
	data["return"] = a.Return
	return ToolResult{Text: render(a.Service, tool, call, a.Return, details), Details: data, ReturnCode: a.ReturnCode}
}

func failure(tool string, call json.RawMessage, err error) ToolResult {
	action := strings.TrimPrefix(tool, "shepherd_")
	code, returnCode := classify(err)
	out := ToolAnswer{
		Service:    fmt.Sprintf("Herd %s failed (return code %d): %s", action, returnCode, err),
		Return:     ToolFields{{"code", code}, {"error", err.Error()}, {"returnCode", returnCode}},
		Details:    ToolFields{{"action", action}, {"code", code}, {"error", err.Error()}},
		ReturnCode: returnCode,
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
func render(service, tool string, call json.RawMessage, value any, details ToolFields) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\ncall:\n    %s %s\n\nreturn:\n    %s\n\ndetails:", oneLine(service), tool, callText(call), valueText(value))
	for _, f := range details {
		fmt.Fprintf(&b, "\n   %s: %s", words(f.Name), plainOrJSON(f.Value))
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
