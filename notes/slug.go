package notes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths of slugs in bytes, well below the 255 that file systems allow.
const (
	maxSessionSlug = 64
	maxAgentSlug   = 48
)

// slug turns any text into a part of a file name: letters and digits of any script in
// lower case, everything else a single dash, no dash at either end, at most limit bytes
// and never half a character. It is empty if the text has no letter and no digit.
func slug(text string, limit int) string {
	var b strings.Builder
	dash := false
	for _, r := range text {
		keep := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && b.Len() > 0 && !dash
		if !keep || r == utf8.RuneError {
			dash = b.Len() > 0
			continue
		}
		r = unicode.ToLower(r)
		size := utf8.RuneLen(r)
		if dash {
			size++
		}
		if b.Len()+size > limit {
			break
		}
		if dash {
			b.WriteByte('-')
			dash = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// slugOr is slug, or for a text without letters and digits a name made of its hash, so
// that two such texts stay apart.
func slugOr(text string, limit int, fallback string) string {
	if s := slug(text, limit); s != "" {
		return s
	}
	return fallback + "-" + shortHash(text)
}

// agentSlugs yields the slugs an agent may have, in order of preference. The first is the
// plain one; the others are told apart by more and more of the name's hash.
func agentSlugs(agent string) func(yield func(string) bool) {
	plain := slugOr(agent, maxAgentSlug, "agent")
	return func(yield func(string) bool) {
		if !yield(plain) {
			return
		}
		sum := sha256.Sum256([]byte(agent))
		for n := 4; n <= len(sum); n += 4 {
			if !yield(plain + "-" + hex.EncodeToString(sum[:n])) {
				return
			}
		}
	}
}

// shortHash is eight hex digits that depend on text only.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// noteFile is the name of an agent's n-th note.
func noteFile(slug string, ordinal int) string { return fmt.Sprintf("%s-%02d.md", slug, ordinal) }

// validNoteFile reports whether a name read from disk can be a note's: one plain component
// that cannot leave the directory it is read from.
func validNoteFile(name string) bool {
	base, ok := strings.CutSuffix(name, ".md")
	return ok && validName(base) && name != indexFile
}

// validName accepts what slugs and numbers are made of, and what older versions wrote.
func validName(name string) bool {
	if name == "" || len(name) > 250 || name[0] == '.' || name[0] == '-' || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("-_.", r) {
			return false
		}
	}
	return true
}

// sessionDir is the name of a session's directory; numbers grow beyond four digits.
func sessionDir(number int, slug string) string { return fmt.Sprintf("%04d-%s", number, slug) }

// sessionNumber is the number that a directory's name takes up, whatever it is: a session,
// an abandoned allocation or a stray. A name without one has none.
func sessionNumber(dir string) (int, bool) {
	digits := len(dir) - len(strings.TrimLeft(dir, "0123456789"))
	if digits < 4 || digits > 9 || digits < len(dir) && dir[digits] != '-' {
		return 0, false
	}
	n, err := strconv.Atoi(dir[:digits])
	return n, err == nil
}

// validSessionDir reports whether a name read from disk can be a session's directory.
func validSessionDir(dir string) bool {
	_, numbered := sessionNumber(dir)
	return numbered && validName(dir) && strings.Contains(dir, "-")
}
