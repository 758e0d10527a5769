package notes

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// Brief is the context that the parent appends to the child's message, after a blank line
// (note-session spec, API and integration requirements). The paths are the parent's word;
// nothing a child says changes them.
func (n *Note) Brief() string {
	dir := n.s.Path()
	return `Shepherd note session context:
- Session directory: ` + onOneLine(dir) + `
- Session fieldnotes: ` + onOneLine(filepath.Join(dir, indexFile)) + `
- Your note: ` + onOneLine(n.Path()) + `
- Relative note: ` + onOneLine(n.RelPath()) + `

Read the fieldnotes first. Write detailed findings to your assigned note when
appropriate. Do not edit shepherd.md or another agent's note.`
}

// onOneLine quotes a path that would break out of its line.
func onOneLine(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}
