package notes

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainYAML matches strings that every YAML reader takes for a string without quotes. The
// number in front is a session's: followed by a letter it is neither a number nor a date.
var plainYAML = regexp.MustCompile(`^([0-9]{4,9}-)?[A-Za-z][A-Za-z0-9._-]*(:[A-Za-z0-9._-]+)*$`)

// wordsYAML are plain words that some YAML version does not take for a string.
var wordsYAML = map[string]bool{
	"true": true, "false": true, "yes": true, "no": true, "on": true, "off": true,
	"null": true, "y": true, "n": true,
}

// yamlString writes a string as a YAML scalar on one line. Whatever is in it, a strict
// reader gives back the same string, and so does strconv.Unquote where it is quoted.
func yamlString(s string) string {
	if plainYAML.MatchString(s) && !wordsYAML[strings.ToLower(s)] {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
