package notes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// object is a JSON object as it was read: its members in order, their values untouched.
// What this version does not know stays in it and is written back (ruling R18).
type object []member

type member struct {
	key string
	raw json.RawMessage
}

func parseObject(data []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errors.New("not a JSON object"), err)
	}
	var o object
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)}
		if err := dec.Decode(&m.raw); err != nil {
			return nil, err
		}
		if _, twice := o.get(m.key); twice {
			return nil, fmt.Errorf("member %q twice", m.key)
		}
		o = append(o, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	return o, nil
}

func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.key == key {
			return m.raw, true
		}
	}
	return nil, false
}

// field ties a member's key to the variable that holds its value.
type field struct {
	key  string
	into any  // a pointer
	keep bool // written also when zero
}

// read stores the members that fields name and returns the others. Keys are matched
// exactly, and a value of another type is an error.
func (o object) read(fields []field) (others object, err error) {
next:
	for _, m := range o {
		for _, f := range fields {
			if f.key != m.key {
				continue
			}
			if err := json.Unmarshal(m.raw, f.into); err != nil {
				return nil, fmt.Errorf("%s: %w", m.key, err)
			}
			continue next
		}
		others = append(others, m)
	}
	return others, nil
}

// collect turns fields, and then the members nobody knows, into an object to be written.
func collect(fields []field, others object) object {
	o := make(object, 0, len(fields)+len(others))
	for _, f := range fields {
		v := reflect.ValueOf(f.into).Elem()
		if f.keep || !v.IsZero() {
			o = append(o, member{f.key, marshal(v.Interface())})
		}
	}
	return append(o, others...)
}

// appendCompact writes the object on one line.
func (o object) appendCompact(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, marshal(m.key)...)
		dst = append(dst, ':')
		dst = appendOneLine(dst, m.raw)
	}
	return append(dst, '}')
}

func appendOneLine(dst []byte, raw json.RawMessage) []byte {
	b := bytes.NewBuffer(dst)
	if err := json.Compact(b, raw); err != nil {
		panic(err) // raw was read or made by encoding/json
	}
	return b.Bytes()
}

func marshal(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only our own simple types get here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
