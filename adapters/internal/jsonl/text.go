package jsonl

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string, of which at most limit bytes are kept.
func (r *Reader) text(limit int) (string, error) {
	if err := r.expect('"'); err != nil {
		return "", err
	}
	var kept bytes.Buffer
	keep := func(b []byte) {
		if room := limit - kept.Len(); room > 0 {
			kept.Write(b[:min(room, len(b))])
		}
	}
	char := make([]byte, 0, utf8.UTFMax)
	for {
		if _, err := r.in.Peek(1); err != nil {
			return "", short(err)
		}
		chunk, _ := r.in.Peek(r.in.Buffered())
		n := bytes.IndexAny(chunk, "\"\\\n")
		if n < 0 {
			keep(chunk)
			r.drop(len(chunk))
			continue
		}
		keep(chunk[:n])
		special := chunk[n]
		r.drop(n)
		switch special {
		case '\n':
			return "", fmt.Errorf("%w: a string without end", ErrSyntax)
		case '"':
			r.drop(1)
			return whole(kept.Bytes(), kept.Len() == limit), nil
		}
		c, err := r.escape()
		if err != nil {
			return "", err
		}
		keep(utf8.AppendRune(char[:0], c))
	}
}

// escape reads one escape sequence, or the two that make one character.
func (r *Reader) escape() (rune, error) {
	two, err := r.in.Peek(2)
	if err != nil {
		return 0, short(err)
	}
	if two[1] != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, two[1])
		if i < 0 {
			return 0, r.broken(two[1])
		}
		r.drop(2)
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	c, err := r.unit()
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	if next, _ := r.in.Peek(6); len(next) == 6 && next[0] == '\\' && next[1] == 'u' {
		if pair := utf16.DecodeRune(c, decode(next)); pair != utf8.RuneError {
			r.drop(6)
			return pair, nil
		}
	}
	return utf8.RuneError, nil
}

func (r *Reader) unit() (rune, error) {
	six, err := r.in.Peek(6)
	if err != nil {
		return 0, short(err)
	}
	c := decode(six)
	if c < 0 {
		return 0, fmt.Errorf("%w: %q", ErrSyntax, six)
	}
	r.drop(6)
	return c, nil
}

// decode returns the code unit that \uXXXX stands for, or -1.
func decode(six []byte) rune {
	if len(six) != 6 {
		return -1
	}
	var c rune
	for _, b := range six[2:] {
		digit := strings.IndexByte("0123456789abcdef", b|0x20)
		if b < '0' || digit < 0 {
			return -1
		}
		c = c<<4 | rune(digit)
	}
	return c
}

// whole mends broken UTF-8, and drops a character that the limit has cut.
func whole(b []byte, cut bool) string {
	for i := 1; cut && i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				b = b[:len(b)-i]
			}
			break
		}
	}
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b))) // one replacement for each bad byte, as encoding/json has it
}
