package agentdir

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxHeader = 8 << 10 // bytes; the YAML parser takes up to a second for so many, and a quarter for half
	maxName   = 64      // characters; lifecycle.Spec.Name takes no more
)

// errNoHeader: the text is a document, not a definition.
var errNoHeader = errors.New("no front matter: the file does not begin with a line `---`")

// parse reads one definition. Without a name of its own it gets the name otherwise. The name
// is right also where there is an error, as far as it can be read.
func parse(data []byte, otherwise string) (Definition, error) {
	d := Definition{Name: otherwise}
	header, body, err := split(data)
	if err != nil {
		return d, err
	}
	list, err := fields(header)
	if err != nil {
		return d, err
	}
	d.Prompt = string(body)
	for _, f := range list {
		if f.isNull() {
			continue
		}
		if e := d.set(f); err == nil {
			err = e // the first; a name may still follow
		}
	}
	if err == nil {
		err = d.check()
	}
	return d, err
}

// split separates front matter and body, with line ends made \n and no blanks around the body.
func split(data []byte) (header, body []byte, err error) {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, nil, errors.New("the file is not UTF-8 text")
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if !isFence(first) {
		return nil, nil, errNoHeader
	}
	for i := 0; i < len(rest); {
		line, _, _ := bytes.Cut(rest[i:], []byte("\n"))
		end := min(i+len(line)+1, len(rest))
		if isFence(line) {
			return rest[:i], bytes.TrimSpace(rest[end:]), nil
		}
		if i = end; i > maxHeader {
			return nil, nil, fmt.Errorf("the front matter has more than %d bytes, or no line `---` ends it", maxHeader)
		}
	}
	return nil, nil, errors.New("the front matter is not closed: no line `---` ends it")
}

func isFence(line []byte) bool { return string(bytes.TrimRight(line, " \t")) == "---" }

// known are the fields of a definition.
var known = []string{
	"name", "description", "model", "tools", "omit-system-prompt", "omit-context-files",
	"omit-pi-documentation", "user-invocable", "disable-model-invocation",
}

func (d *Definition) set(f field) (err error) {
	switch f.key {
	case "name":
		d.Name, err = name(f, d.Name)
	case "description":
		d.Description, err = f.text()
		d.Description = strings.Join(strings.Fields(d.Description), " ")
	case "model":
		d.Model, err = model(f)
	case "tools":
		d.Tools, err = tools(f)
		d.NoTools = err == nil && len(d.Tools) == 0
	case "omit-system-prompt":
		d.OmitSystemPrompt, err = f.flag()
	case "omit-context-files":
		d.OmitContextFiles, err = f.flag()
	case "omit-pi-documentation":
		d.OmitPiDocumentation, err = f.flag()
	case "user-invocable":
		var yes bool
		yes, err = f.flag()
		d.HiddenFromUser = !yes
	case "disable-model-invocation":
		d.HiddenFromModel, err = f.flag()
	default:
		err = foreign(f.key)
	}
	return err
}

func name(f field, otherwise string) (string, error) {
	name, err := f.text()
	if err != nil {
		return otherwise, err
	}
	name = strings.TrimSpace(name)
	if err := checkName(name); err != nil {
		return otherwise, err
	}
	return name, nil
}

func model(f field) (string, error) {
	names, _, err := f.texts()
	if err != nil || len(names) == 0 {
		return "", err
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	name := names[max(0, slices.IndexFunc(names, func(s string) bool { return strings.Contains(s, "/") }))]
	switch strings.ToLower(name) {
	case "default", "inherit":
		return "", nil
	case "":
		return "", errors.New("model is empty; leave it out to inherit the parent's")
	}
	return name, nil
}

func tools(f field) ([]string, error) {
	names, isList, err := f.texts()
	if err != nil {
		return nil, err
	}
	if !isList {
		names = strings.Split(names[0], ",")
	}
	var tools []string
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, errors.New("tools has an empty name; leave tools out for pi's own choice, or write [] for none")
		case strings.ContainsAny(name[:1], "+-"):
			return nil, fmt.Errorf("tools: %q: tools are named, not added to a selection or taken from it", name)
		case strings.Contains(name, ",") || !isPrintable(name):
			return nil, fmt.Errorf("tools: %q is not a tool's name", name)
		case !slices.Contains(tools, name):
			tools = append(tools, name)
		}
	}
	return tools, nil
}

// foreign says what is wrong with a field that is not ours: mostly nothing.
func foreign(key string) error {
	switch key {
	case "disallowedTools":
		return errors.New("disallowedTools has no effect here; name what the agent may use in tools")
	case "mode": // other programs'; next to model only in spelling
		return nil
	}
	for _, k := range known {
		if distance(plain(key), plain(k)) <= min(len(k)/4, 3) {
			return fmt.Errorf("unknown field %q; did you mean %s?", key, k)
		}
	}
	return nil
}

// plain is a field's name without what people write differently: omitContextFiles.
func plain(key string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
}

// check holds for the whole what set cannot see in one field.
func (d *Definition) check() error {
	if err := checkName(d.Name); err != nil {
		return err
	}
	switch {
	case d.Description == "":
		return errors.New("description is missing; it is what the agent is chosen by")
	case !isPrintable(d.Description):
		return errors.New("description has a character that cannot be shown")
	case !isPrintable(d.Model):
		return errors.New("model has a character that cannot be shown")
	case d.OmitSystemPrompt && d.Prompt == "":
		return errors.New("omit-system-prompt: there is no text below the front matter to take its place")
	}
	return nil
}

// checkName holds names to what lifecycle.Spec.Name takes.
func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n > maxName {
		return fmt.Errorf("name has %d characters, at most %d are allowed", n, maxName)
	}
	if name == "" || !isPrintable(name) {
		return fmt.Errorf("name %q is empty or has a character that cannot be shown", name)
	}
	return nil
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}
