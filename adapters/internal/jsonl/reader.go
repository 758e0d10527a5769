// Package jsonl reads JSON lines of any length in bounded memory. A line is walked, not
// loaded: the caller picks the members that it wants and the rest goes by unread, so one
// line of 30 MB costs no more than one of 30 bytes.
//
// A record ends at LF and at nothing else; CR and U+2028 are ordinary inside it. A line that
// is not JSON, or ends too early, spoils itself only: the next call of Next starts afresh.
package jsonl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
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
// that is not UTF-8 is mended as encoding/json does. What is not a string is skipped and
// gives "".
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
