package herdr

import (
	"regexp"
	"strings"
	"unicode"
)

// escapes are whole control sequences of a terminal: with only their first byte removed, the
// rest would stay as rubbish.
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\a\x1b]*(?:\a|\x1b\\\\|$)|\x1b[ -/]*[0-~]")

// clean returns a name or label as one line without anything a terminal would act on (C50).
func clean(s string) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// typed returns a text as it can be typed into a pane: line ends are LF, and of control
// characters only those and tabs are left. An escape could end the paste early.
func typed(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	s = escapes.ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && isControl(r) {
			return -1
		}
		return r
	}, s)
}

func isControl(r rune) bool { return unicode.IsControl(r) }
