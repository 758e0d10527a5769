// Package jsonl reads JSON lines of any length in bounded memory. A line is walked, not
// loaded: the caller picks the members that it wants and the rest goes by unread, so one
// line of 30 MB costs no more than one of 30 bytes.
//
// A record ends at LF and at nothing else; CR and U+2028 are ordinary inside it. A line that
// is not JSON, or ends too early, spoils itself only: the next call of Next starts afresh.
package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax: the line is not JSON. The rest of it is skipped by the next Next.
var ErrSyntax = errors.New("jsonl: not JSON")

const (
	buffer   = 64 << 10
	maxKey   = 256  // bytes of a member's name that are kept
	maxDepth = 1000 // levels of Object and Array in one another
)

// Reader walks a stream of JSON lines. It belongs to one goroutine.
type Reader struct {
	in    *bufio.Reader
	pos   int64 // bytes consumed
	depth int
	begun bool
}

// NewReader returns a Reader on in. It blocks as in does.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, buffer)} }

// Next leaves the current line, wherever in it the reader stands, and goes to the next one
// that is not blank. It returns io.EOF when there is none, or the error of the stream.
func (r *Reader) Next() error {
	for {
		if r.begun {
			if err := r.leaveLine(); err != nil {
				return err
			}
		}
		r.begun, r.depth = true, 0
		if r.More() {
			return nil
		}
		if _, err := r.in.Peek(1); err != nil {
			return err
		}
	}
}

func (r *Reader) leaveLine() error {
	for {
		chunk, err := r.in.ReadSlice('\n')
		r.pos += int64(len(chunk))
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}

// More reports whether anything is left on this line: another value, when two records
// stand on one line.
func (r *Reader) More() bool {
	_, err := r.peek()
	return err == nil
}

// Object reads an object and calls field for each member, which may read the value with
// any method of r or leave it. What is not an object is skipped.
func (r *Reader) Object(field func(key string) error) error {
	if ok, err := r.open('{'); !ok {
		return err
	}
	defer func() { r.depth-- }()
	return r.list('}', func() error {
		key, err := r.text(maxKey)
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		return r.value(func() error { return field(key) })
	})
}

// Array reads an array and calls item for each element, as Object does.
func (r *Reader) Array(item func() error) error {
	if ok, err := r.open('['); !ok {
		return err
	}
	defer func() { r.depth-- }()
	return r.list(']', func() error { return r.value(item) })
}

// String reads a string and keeps at most limit bytes of it, never half a character. Text
// that is not UTF-8 is mended. What is not a string is skipped and gives "".
func (r *Reader) String(limit int) (string, error) {
	if b, err := r.peek(); err != nil || b != '"' {
		return "", r.Skip()
	}
	return r.text(limit)
}

// Bool reads true or false; anything else is skipped and gives false.
func (r *Reader) Bool() (bool, error) {
	b, err := r.peek()
	if err != nil {
		return false, err
	}
	return b == 't', r.Skip()
}

// Kind returns the first byte of the value that comes next, 0 if there is none: '{', '[',
// '"', 't', 'f', 'n' or the start of a number.
func (r *Reader) Kind() byte {
	b, _ := r.peek()
	return b
}

// Skip goes past one value of any size and depth. It looks at brackets and strings only.
func (r *Reader) Skip() error {
	for depth := 0; ; {
		b, err := r.peek()
		if err != nil {
			return err
		}
		switch b {
		case '"':
			_, err = r.text(0)
		case '{', '[':
			depth++
			r.drop(1)
		case '}', ']':
			if depth == 0 {
				return r.broken(b)
			}
			depth--
			r.drop(1)
		case ',', ':':
			if depth == 0 {
				return r.broken(b)
			}
			r.drop(1)
		default:
			err = r.word()
		}
		if err != nil || depth == 0 {
			return err
		}
	}
}

// open consumes the bracket that begins a value, or skips the value.
func (r *Reader) open(bracket byte) (bool, error) {
	b, err := r.peek()
	switch {
	case err != nil:
		return false, err
	case b != bracket:
		return false, r.Skip()
	case r.depth == maxDepth:
		return false, fmt.Errorf("%w: nested too deeply", ErrSyntax)
	}
	r.depth++
	r.drop(1)
	return true, nil
}

// list reads comma-separated elements up to the closing bracket.
func (r *Reader) list(end byte, element func() error) error {
	if b, err := r.peek(); err == nil && b == end {
		r.drop(1)
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		b, err := r.peek()
		switch {
		case err != nil:
			return err
		case b == end:
			r.drop(1)
			return nil
		case b != ',':
			return r.broken(b)
		}
		r.drop(1)
	}
}

// value calls read and skips the value if read left it alone.
func (r *Reader) value(read func() error) error {
	if _, err := r.peek(); err != nil {
		return err
	}
	before := r.pos
	if err := read(); err != nil || r.pos != before {
		return err
	}
	return r.Skip()
}

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
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// word goes past a number, true, false or null.
func (r *Reader) word() error {
	for n := 0; ; n++ {
		b, err := r.in.Peek(1)
		if err == io.EOF && n > 0 {
			return nil
		}
		if err != nil {
			return short(err)
		}
		if strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", b[0]) < 0 {
			if n == 0 {
				return r.broken(b[0])
			}
			return nil
		}
		r.drop(1)
	}
}

// peek returns the next byte of this line that is not blank, and leaves it there.
func (r *Reader) peek() (byte, error) {
	for {
		b, err := r.in.Peek(1)
		if err != nil {
			return 0, short(err)
		}
		switch b[0] {
		case ' ', '\t', '\r':
			r.drop(1)
		case '\n':
			return 0, fmt.Errorf("%w: the line ends too early", ErrSyntax)
		default:
			return b[0], nil
		}
	}
}

func (r *Reader) expect(want byte) error {
	b, err := r.peek()
	if err != nil {
		return err
	}
	if b != want {
		return r.broken(b)
	}
	r.drop(1)
	return nil
}

func (r *Reader) drop(n int) {
	n, _ = r.in.Discard(n)
	r.pos += int64(n)
}

func (r *Reader) broken(b byte) error { return fmt.Errorf("%w: unexpected %q", ErrSyntax, b) }

// short says of a stream that ended inside a value that it ended inside a value.
func short(err error) error {
	if err == io.EOF {
		return fmt.Errorf("%w: %w", ErrSyntax, io.ErrUnexpectedEOF)
	}
	return err
}
