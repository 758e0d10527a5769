package pi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/creachadair/jrpc2/channel"
)

// maxBridgeLine is the longest line that is read from the extension, in bytes.
const maxBridgeLine = 16 << 20

// lineChannel frames JSON-RPC as lines. A line that is too long is answered with an error
// and skipped in bounded memory; it harms no other line.
type lineChannel struct {
	in  *bufio.Reader
	end []io.Closer

	mu  sync.Mutex // one line at a time: the server sends, and so does Recv
	out io.Writer
}

var _ channel.Channel = (*lineChannel)(nil)

func newLineChannel(in io.ReadCloser, out io.WriteCloser) *lineChannel {
	return &lineChannel{in: bufio.NewReaderSize(in, 64<<10), out: out, end: []io.Closer{out, in}}
}

func (c *lineChannel) Send(record []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(record[:len(record):len(record)], '\n'))
	return err
}

// Recv returns the next line that is not blank.
func (c *lineChannel) Recv() ([]byte, error) {
	for {
		line, size, err := c.line()
		switch {
		case err != nil:
			return nil, err // an unfinished last line is nobody's request
		case size > maxBridgeLine:
			refusal := fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a line of %s was skipped; at most %s are read"}}`, sizeOf(size), sizeOf(maxBridgeLine))
			if err := c.Send([]byte(refusal)); err != nil {
				return nil, err
			}
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		}
	}
}

// line reads one line; of one that is too long it keeps nothing.
func (c *lineChannel) line() (kept []byte, size int, err error) {
	for {
		chunk, err := c.in.ReadSlice('\n')
		size += len(chunk)
		if size <= maxBridgeLine {
			kept = append(kept, chunk...)
		} else {
			kept = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return kept, size, err
		}
	}
}

func (c *lineChannel) Close() error {
	var errs []error
	for _, e := range c.end {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// sizeOf is a number of bytes for people.
func sizeOf(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
