package agentdir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Catalog is what Load found. It does not change any more, and may be used by many at once.
type Catalog struct {
	definitions []Definition
	broken      []*FileError
	untrusted   []string
}

// add adds what was found in the next place. A name that is taken stays as it is.
func (c *Catalog) add(found contents) {
	for _, d := range found.definitions {
		if !c.takes(d.Name) {
			c.definitions = append(c.definitions, d)
		}
	}
	c.broken = append(c.broken, found.broken...)
}

func (c *Catalog) takes(name string) bool {
	return slices.ContainsFunc(c.definitions, func(d Definition) bool { return d.Name == name }) || c.brokenFile(name) != nil
}

func (c *Catalog) brokenFile(name string) *FileError {
	for _, b := range c.broken {
		if b.name == name {
			return b
		}
	}
	return nil
}

// All returns the definitions that Find finds, in the order of their names.
func (c Catalog) All() []Definition {
	all := make([]Definition, len(c.definitions))
	for i, d := range c.definitions {
		all[i] = d.clone()
	}
	slices.SortFunc(all, func(a, b Definition) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Broken returns what could not be used, and why, in the order in which it was found: files
// that are no definitions, second ones of one name in one directory, unreadable directories.
// Nothing from a directory that is not trusted.
func (c Catalog) Broken() []*FileError { return slices.Clone(c.broken) }

// Untrusted returns the project's directories that have definitions but are not trusted.
func (c Catalog) Untrusted() []string { return slices.Clone(c.untrusted) }

// Find returns the definition with exactly this name.
//
// An unknown name is an error that matches ErrUnknown, suggests the nearest name and lists
// all. Where the name's file is broken, the error is a *FileError that says what is wrong with
// it; a definition of that name in a later place does not take over.
func (c Catalog) Find(name string) (Definition, error) {
	for _, d := range c.definitions {
		if d.Name == name {
			return d.clone(), nil
		}
	}
	if b := c.brokenFile(name); b != nil {
		return Definition{}, fmt.Errorf("agentdir: the definition of agent %q is broken: %w", name, b)
	}
	return Definition{}, c.unknown(name)
}

func (c Catalog) unknown(wanted string) error {
	var names []string
	for _, d := range c.All() {
		names = append(names, d.Name)
	}
	msg := strconv.Quote(cut(wanted))
	if near := nearest(cut(wanted), names); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	msg += "; there are " + cmp.Or(enumerate(names), "none")
	if len(c.untrusted) > 0 {
		msg += "; not used, because not trusted: " + strings.Join(eachPrintable(c.untrusted), ", ")
	}
	return fmt.Errorf("agentdir: %w %s", ErrUnknown, msg)
}

// enumerate lists names in a sentence. Nobody reads hundreds.
func enumerate(names []string) string {
	const most = 50
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// cut keeps what could be a name: the one asked for may be as long as a model likes.
func cut(name string) string {
	if r := []rune(name); len(r) > maxName {
		return string(r[:maxName]) + "…"
	}
	return name
}

// printable returns s as it is, or in quotes if it would do something to a terminal.
func printable(s string) string {
	if isPrintable(s) {
		return s
	}
	return strconv.Quote(s)
}

func eachPrintable(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = printable(list[i])
	}
	return list
}

func (d Definition) clone() Definition {
	d.Tools = slices.Clone(d.Tools)
	return d
}
