package notes

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine is how many bytes of a text are shown on a line of the index or a section.
const maxLine = 200

// markdown makes any text safe inside a line of Markdown: one line, no control characters,
// nothing that begins a link, an emphasis, a tag or a table cell.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune("\\`*_[]<>|~&#!$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// shorten cuts a text to one line of at most limit bytes, never inside a character.
func shorten(s string, limit int) string {
	s = strings.TrimSpace(s)
	line, _, cut := strings.Cut(s, "\n")
	if len(line) > limit {
		line, cut = clip(line, limit), true
	}
	if cut {
		return strings.TrimSpace(line) + "…"
	}
	return line
}

// clip cuts a text to at most limit bytes, never inside a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// link is a link to a note beside it.
func (e *entry) link() string {
	return "[" + markdown(title(e)) + "](./" + url.PathEscape(e.File) + ")"
}

// title names a note: "Scout 01".
func title(e *entry) string {
	name := []rune(strings.Join(strings.Fields(e.Agent), " "))
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	return fmt.Sprintf("%s %02d", string(name), e.Ordinal)
}
