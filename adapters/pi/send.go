package pi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

var errRefused = errors.New("the agent refused it")

// connection is one that has said hello.
type connection struct {
	net.Conn
	answers chan message  // the newest answer
	lost    chan struct{} // closed when nothing more is read
}

// Send hands a prompt to the child; see link.Link. While the link is down it fails at once.
func (l *childLink) Send(ctx context.Context, s lifecycle.Submission) error {
	c, err := l.claim()
	if err == nil {
		err = c.ask(ctx, s)
		l.release()
	}
	if err != nil {
		return fmt.Errorf("pi: send prompt %s: %w", s.Prompt, err)
	}
	return nil
}

func (l *childLink) claim() (*connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, fmt.Errorf("%w: the link", lifecycle.ErrClosed)
	case l.child == nil:
		return nil, errors.New("the link to the agent is down; the prompt was not sent")
	case l.sending:
		return nil, fmt.Errorf("%w: another prompt is just being sent", lifecycle.ErrAgentBusy)
	}
	l.sending = true
	return l.child, nil
}

func (l *childLink) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending = false
}

// ask writes the prompt and waits for the answer to it.
func (c *connection) ask(ctx context.Context, s lifecycle.Submission) error {
	if err := c.writeAll(ctx, promptLine(s)); err != nil {
		return err
	}
	for {
		select {
		case m := <-c.answers:
			if m.Prompt == s.Prompt {
				return refused(m.Refused)
			}
		case <-c.lost:
			select {
			case m := <-c.answers:
				if m.Prompt == s.Prompt {
					return refused(m.Refused)
				}
			default:
			}
			return fmt.Errorf("%w: the link was lost before the agent answered", lifecycle.ErrOutcomeUnknown)
		case <-ctx.Done():
			return fmt.Errorf("%w: no answer yet: %w", lifecycle.ErrOutcomeUnknown, context.Cause(ctx))
		}
	}
}

// writeAll ends with ctx. A line that could not be written whole is never acted on; with its
// rest missing the connection is of no more use, and the child makes a new one.
func (c *connection) writeAll(ctx context.Context, line []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = c.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := c.Write(line)
	if !stop() {
		<-cut
		_ = c.SetWriteDeadline(time.Time{})
	}
	if n == len(line) {
		return nil
	}
	c.Close()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("the prompt was not sent, the agent does not read: %w", err)
}

func refused(why string) error {
	reason, busy := strings.CutPrefix(why, "busy: ")
	switch {
	case why == "":
		return nil
	case busy:
		return fmt.Errorf("%w: %s", lifecycle.ErrAgentBusy, reason)
	}
	return fmt.Errorf("%w: %s", errRefused, why)
}
