package agentdir

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// field is one line of a front matter. Its value is a node as it was written, not a decoded
// value: so `name: 007` can be refused instead of becoming 7, and an alias costs nothing.
type field struct {
	key   string
	value ast.Node
}

// fields reads a front matter's fields in their order. Of the YAML library nobody else knows.
func fields(header []byte) (list []field, err error) {
	defer func() {
		if p := recover(); p != nil { // the text is a stranger's, and the parser is not ours
			list, err = nil, fmt.Errorf("the YAML parser gave up: %v", p)
		}
	}()
	file, err := parser.ParseBytes(header, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, nil
	}
	if len(file.Docs) > 1 {
		return nil, errors.New("the front matter is more than one YAML document")
	}
	mapping, ok := file.Docs[0].Body.(ast.MapNode)
	if !ok {
		return nil, errors.New("the front matter is not a list of fields (`name: value`)")
	}
	for m := mapping.MapRange(); m.Next(); {
		key, ok := m.Key().(*ast.StringNode)
		if !ok {
			return nil, fmt.Errorf("a field's name is not plain text: %s", m.Key())
		}
		list = append(list, field{key.Value, m.Value()})
	}
	return list, nil
}

// syntaxError is the parser's error on one line, with the line's number in the file.
func syntaxError(err error) error {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil || e.GetToken().Position == nil {
		return fmt.Errorf("the front matter is not YAML: %w", err)
	}
	return fmt.Errorf("line %d of the front matter: %s", e.GetToken().Position.Line, e.GetMessage())
}

func (f field) isNull() bool { return f.value == nil || f.value.Type() == ast.NullType }

func (f field) text() (string, error) { return text(f.key, f.value) }

func text(key string, value ast.Node) (string, error) {
	switch v := value.(type) {
	case *ast.StringNode:
		return v.Value, nil
	case *ast.LiteralNode:
		return v.Value.Value, nil
	}
	return "", fmt.Errorf("%s is not text; put quotes around it, or leave it out", key)
}

// texts returns a list's texts. A single text comes as isList == false.
func (f field) texts() (texts []string, isList bool, err error) {
	list, isList := f.value.(*ast.SequenceNode)
	if !isList {
		one, err := f.text()
		return []string{one}, false, err
	}
	for _, v := range list.Values {
		one, err := text("an entry of "+f.key, v)
		if err != nil {
			return nil, true, err
		}
		texts = append(texts, one)
	}
	return texts, true, nil
}

func (f field) flag() (bool, error) {
	if v, ok := f.value.(*ast.BoolNode); ok {
		return v.Value, nil
	}
	return false, fmt.Errorf("%s is neither true nor false", f.key)
}
