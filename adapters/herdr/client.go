package herdr

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// client talks to one server: each call has a connection of its own, because the server
// answers one request on each and then hangs up. It keeps no state and may be used from
// many goroutines.
type client struct {
	socket  string
	timeout time.Duration // of one call
	ids     *atomic.Uint64
}

func newClient(socket string, timeout time.Duration) *client {
	return &client{socket: socket, timeout: timeout, ids: new(atomic.Uint64)}
}

// call sends one request and decodes the answer into result, which may be nil. It ends with
// ctx and after the client's timeout.
//
// Errors: ErrNotRunning and ErrTooLong, when nothing was sent; *Error, when the server
// refused; ErrNoAnswer, when the request may have been carried out.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, id, err := c.send(ctx, method, params)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return answer(ctx, bufio.NewReader(conn), method, id, result)
}

// send opens a connection and writes the request, in one write.
func (c *client) send(ctx context.Context, method string, params any) (net.Conn, string, error) {
	id := "s" + strconv.FormatUint(c.ids.Add(1), 10)
	line, err := encode(request{id, method, params})
	if err != nil {
		return nil, "", err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, "", fmt.Errorf("%w at %s", ErrNotRunning, c.socket)
	case err != nil && ctx.Err() != nil:
		return nil, "", fmt.Errorf("herdr: %s was not sent: %w", method, context.Cause(ctx))
	case err != nil:
		return nil, "", fmt.Errorf("herdr: %s was not sent: %w", method, err)
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetWriteDeadline(deadline)
	// Without its end the server does not act on a line.
	if n, err := conn.Write(line); n < len(line) {
		conn.Close()
		return nil, "", fmt.Errorf("herdr: %s was not sent: %w", method, err)
	}
	return conn, id, nil
}

// encode returns the request's line.
func encode(r request) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("herdr: %s: %w", r.Method, err)
	}
	if b.Len() > maxRequest {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are read", ErrTooLong, r.Method, b.Len(), maxRequest)
	}
	return b.Bytes(), nil
}

// answer reads the one line that answers a request. A refusal counts whatever its id: a
// request that was not understood is answered without one.
func answer(ctx context.Context, in *bufio.Reader, method, id string, result any) error {
	line, err := readLine(in)
	var r response
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w to %s: %w", ErrNoAnswer, method, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%w to %s: %w", ErrNoAnswer, method, err)
	case r.Error != nil && r.Error.Code == "server_unavailable":
		return fmt.Errorf("%w to %s: the server is going away", ErrNoAnswer, method)
	case r.Error != nil:
		return &Error{Method: method, Code: r.Error.Code, Message: r.Error.Message, ID: r.ID}
	case r.ID != id:
		return fmt.Errorf("%w to %s: the answer is for request %q", ErrNoAnswer, method, r.ID)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return fmt.Errorf("%w to %s that makes sense: %w", ErrNoAnswer, method, err)
	}
	return nil
}

// readLine reads one line, also one that lacks its newline at the end of the stream.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		chunk, err := in.ReadSlice('\n')
		line = append(line, chunk...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		case err == nil, err == io.EOF && len(line) > 0:
			return line, nil
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// stream is one subscription.
type stream struct {
	conn net.Conn
	in   *bufio.Reader
}

// subscribe opens a subscription and returns once the server has acknowledged it. It ends
// with ctx and after the client's timeout; the stream goes on until it is closed. Nothing is
// ever written on it again: the server takes any byte for a hang-up.
func (c *client) subscribe(ctx context.Context, subs []subscription) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, id, err := c.send(ctx, "events.subscribe", subscribeParams{subs})
	if err != nil {
		return nil, err
	}
	s := &stream{conn, bufio.NewReader(conn)}
	unhook := context.AfterFunc(ctx, func() { conn.Close() })
	err = answer(ctx, s.in, "events.subscribe", id, nil)
	if !unhook() && err == nil {
		err = fmt.Errorf("%w to events.subscribe: %w", ErrNoAnswer, context.Cause(ctx))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// next blocks until the next event or the end of the stream.
func (s *stream) next() (pushed, error) {
	line, err := readLine(s.in)
	if err != nil {
		return pushed{}, err
	}
	var p pushed
	if err := json.Unmarshal(line, &p); err != nil {
		return pushed{}, nil // an event without a kind, which nobody knows
	}
	return p, nil
}

func (s *stream) close() { s.conn.Close() }
