package pi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pi-shepherd/go-shepherd/shepherd"
)

// The host's own tools answer in the structure that shepherd's have.

// hostFields are named values in an order.
type hostFields []hostField

type hostField struct {
	name  string
	value any
}

// MarshalJSON makes an object that keeps the order.
func (f hostFields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, field := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", hostJSON(field.name), hostJSON(field.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// hostArgs decodes the arguments, whatever a model made of them, and refuses unknown ones.
func hostArgs(raw json.RawMessage, into any) error {
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

func hostResult(service, tool string, call json.RawMessage, value any, details hostFields) shepherd.ToolResult {
	return hostRender(service, tool, call, value, append(details, hostField{"return code", 0}))
}

func hostFailure(tool string, call json.RawMessage, err error) shepherd.ToolResult {
	action := strings.TrimPrefix(tool, "shepherd_")
	service := fmt.Sprintf("Herd %s failed (return code 1): %s", action, err)
	r := hostRender(service, tool, call, hostFields{{"error", err.Error()}, {"returnCode", 1}},
		hostFields{{"action", action}, {"error", err.Error()}, {"return code", 1}})
	r.IsError, r.ReturnCode = true, 1
	return r
}

// hostRender lays a result out. Values stand as JSON, so no text of a child can end a
// section or begin another.
func hostRender(service, tool string, call json.RawMessage, value any, details hostFields) shepherd.ToolResult {
	if len(bytes.TrimSpace(call)) == 0 {
		call = json.RawMessage("{}")
	}
	shown := hostJSON(value)
	if list, ok := value.([]any); ok && len(list) > 1 {
		lines := make([]string, len(list))
		for i, v := range list {
			lines[i] = hostJSON(v)
		}
		shown = "[" + strings.Join(lines, ",\n     ") + "]"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\ncall:\n    %s %s\n\nreturn:\n    %s\n\ndetails:", hostLine(service), tool, hostJSON(call), shown)
	data := map[string]any{"return": value}
	for _, f := range details {
		data[f.name] = f.value
		text, ok := f.value.(string)
		if !ok {
			text = hostJSON(f.value)
		}
		fmt.Fprintf(&b, "\n   %s: %s", f.name, hostLine(text))
	}
	return shepherd.ToolResult{Text: b.String(), Details: data}
}

// hostLine keeps a text on its line.
func hostLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}

// hostJSON is JSON without the escapes that are only for HTML.
func hostJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
