package shepherd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// schema describes the arguments of one tool; it makes the JSON schema and checks what came.
type schema map[string]param

type param struct {
	kind        kind
	description string
	must        bool
}

type kind int

const (
	kindText kind = iota
	kindIDs
	kindMinutes
	kindFlag
)

func text(description string) param    { return param{kind: kindText, description: description} }
func ids(description string) param     { return param{kind: kindIDs, description: description} }
func minutes(description string) param { return param{kind: kindMinutes, description: description} }
func flag(description string) param    { return param{kind: kindFlag, description: description} }

func (p param) required() param { p.must = true; return p }

func (s schema) json() json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		p := s[name]
		properties[name] = p.json()
		if p.must {
			required = append(required, name)
		}
	}
	raw, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil {
		panic(err) // strings, lists and maps of them always marshal
	}
	return raw
}

func (p param) json() map[string]any {
	m := map[string]any{"description": p.description}
	str := map[string]any{"type": "string", "minLength": 1}
	switch p.kind {
	case kindText:
		m["type"] = "string"
	case kindIDs: // anyOf, since a list of types crashes some hosts
		m["anyOf"] = []any{str, map[string]any{"type": "array", "items": str, "minItems": 1}}
	case kindMinutes:
		m["type"], m["exclusiveMinimum"], m["maximum"] = "number", 0, maxMinutes
	case kindFlag:
		m["type"] = "boolean"
	}
	return m
}

// maxMinutes is a week: more than any wait, and far from where durations overflow.
const maxMinutes = 7 * 24 * 60

// args are checked arguments: string, []string, time.Duration or bool by name.
type args map[string]any

func (a args) text(name string) string           { v, _ := a[name].(string); return v }
func (a args) minutes(name string) time.Duration { v, _ := a[name].(time.Duration); return v }
func (a args) flag(name string) bool             { v, _ := a[name].(bool); return v }
func (a args) given(name string) any             { return a[name] }

func (a args) ids(name string) []string {
	switch v := a[name].(type) {
	case string:
		return []string{v}
	case []string:
		return v
	}
	return nil
}

// parseArgs checks what a model, and the host between, made of the arguments. The error
// names the argument.
func parseArgs(raw json.RawMessage, s schema) (args, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("%w: the arguments are not a JSON object: %v", ErrInvalid, err)
		}
	}
	for name := range given {
		if _, ok := s[name]; !ok {
			return nil, fmt.Errorf("%w: there is no argument %q; there are: %s", ErrInvalid, name, strings.Join(slices.Sorted(maps.Keys(s)), ", "))
		}
	}
	a := args{}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		p := s[name]
		v, err := p.parse(given[name])
		if err != nil {
			return nil, invalid(name, "cannot be used: "+err.Error())
		}
		switch {
		case v != nil:
			a[name] = v
		case p.must:
			return nil, invalid(name, "is missing; expected: "+p.description)
		}
	}
	return a, nil
}

// errInvalidHandle marks an argument that should be an id and is none.
var errInvalidHandle = fmt.Errorf("%w (an opaque id is expected)", ErrInvalid)

func invalid(name, why string) error {
	sentinel := ErrInvalid
	if name == "id" {
		sentinel = errInvalidHandle
	}
	return fmt.Errorf("%w: argument %q %s", sentinel, name, why)
}

// parse returns nil for what was not given: absent, null, or an optional blank.
func (p param) parse(raw json.RawMessage) (any, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	switch p.kind {
	case kindIDs:
		return p.parseIDs(raw)
	case kindMinutes:
		var n float64
		if json.Unmarshal(raw, &n) != nil || math.IsNaN(n) || n <= 0 || n > maxMinutes {
			return nil, fmt.Errorf("%s is not a number of minutes above 0 and at most %d", raw, maxMinutes)
		}
		return time.Duration(n * float64(time.Minute)), nil
	case kindFlag:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, fmt.Errorf("%s is neither true nor false", raw)
		}
		return b, nil
	default:
		var t string
		if json.Unmarshal(raw, &t) != nil {
			return nil, fmt.Errorf("%s is not a string", raw)
		}
		if t == "" && !p.must {
			return nil, nil
		}
		return t, nil
	}
}

// parseIDs takes one id or a list, also as JSON inside a string, which models are fond of.
func (p param) parseIDs(raw json.RawMessage) (any, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		inner := strings.TrimSpace(one)
		switch {
		case strings.HasPrefix(inner, "["):
			raw = json.RawMessage(inner)
		case inner == "" || inner == "null":
			if p.must {
				return nil, fmt.Errorf("%q is no id", one)
			}
			return nil, nil
		default:
			return one, nil
		}
	}
	var list []any
	if json.Unmarshal(raw, &list) != nil {
		return nil, fmt.Errorf("%s is neither an id nor a list of ids", raw)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the list is empty; one or more ids are expected")
	}
	ids := make([]string, len(list))
	for i, v := range list {
		id, ok := v.(string)
		if !ok || id == "" {
			return nil, fmt.Errorf("%v in the list is no id", v)
		}
		ids[i] = id
	}
	return ids, nil
}
