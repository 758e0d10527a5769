package pi

import (
	"crypto/subtle"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
)

// helloLimit is how long a new connection may take to say who it is.
const helloLimit = 5 * time.Second

// childLink is the host's end of one child's link.
type childLink struct {
	dir   string
	token string
	on    func(link.Event)
	ln    net.Listener

	running sync.WaitGroup // the listener and the readers

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]struct{} // all that are open, also before their hello
	child   *connection           // the child's; nil while the link is down
	sending bool
	session string // the child's newest session file
}

var (
	_ link.Link     = (*childLink)(nil)
	_ link.Detacher = (*childLink)(nil)
	_ link.Replier  = (*childLink)(nil)
)

func newLink(dir, token string, ln net.Listener, on func(link.Event)) *childLink {
	l := &childLink{
		dir: dir, token: token, on: on, ln: ln,
		conns:   make(map[net.Conn]struct{}),
		session: filepath.Join(dir, sessionFile),
	}
	l.running.Go(l.accept)
	return l
}

// Dir returns the launch directory.
func (l *childLink) Dir() string { return l.dir }

func (l *childLink) accept() {
	for {
		conn, err := l.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, for example: the child comes again
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if l.admit(conn) {
			l.running.Go(func() {
				defer l.dismiss(conn)
				l.serve(conn)
			})
		}
	}
}

func (l *childLink) admit(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *childLink) dismiss(conn net.Conn) {
	conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

// serve listens to one connection to its end. Only the child's own gets past the hello, and
// only one at a time; so levels are told in order.
func (l *childLink) serve(conn net.Conn) {
	in := newMessages(conn)
	_ = conn.SetReadDeadline(time.Now().Add(helloLimit))
	hello, err := in.next()
	if err != nil || hello.Type != "hello" || hello.Protocol != protocol ||
		subtle.ConstantTimeCompare([]byte(hello.Token), []byte(l.token)) != 1 {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	c := &connection{Conn: conn, answers: make(chan message, 1), lost: make(chan struct{})}
	if !l.begin(c) {
		return
	}
	e := link.Event{Up: true, PID: hello.PID}
	l.tell(&e, hello.Level)
	for {
		m, err := in.next()
		if err != nil {
			break
		}
		l.tell(&e, m.Level)
		if m.Type == "answer" {
			select {
			case <-c.answers: // an older one, which nobody waited for any more
			default:
			}
			c.answers <- m
		}
	}
	close(c.lost)
	if e.Up = false; !l.hungUp() {
		l.on(e)
	}
	l.end()
}

// begin makes c the child's connection, unless there is one.
func (l *childLink) begin(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child != nil || l.closed {
		return false
	}
	if _, err := c.Write(welcomeLine()); err != nil {
		return false
	}
	l.child = c
	return true
}

// hungUp: the end of the connection is our own doing, and no news.
func (l *childLink) hungUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *childLink) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.child = nil
}

// tell folds what the child says of itself into e and passes it on.
func (l *childLink) tell(e *link.Event, now level) {
	e.Busy, e.Dialog, e.Turns = now.Busy, now.Dialog, now.Turns
	if now.Signal != nil {
		e.Current = now.Signal.decode()
	}
	if now.Session != "" {
		l.mu.Lock()
		l.session = now.Session
		l.mu.Unlock()
	}
	l.on(*e)
}

// Detach stops listening and lets go of the child, which goes on. What it has stored can
// still be read. A later Reopen finds it.
func (l *childLink) Detach() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	for conn := range l.conns {
		conn.Close()
	}
	l.mu.Unlock()
	var err error
	if first {
		err = l.ln.Close()
	}
	l.running.Wait()
	return err
}

// Close is Detach and removes the launch directory with all that is in it. It must not be
// called from the function that is told levels.
func (l *childLink) Close() error {
	return errors.Join(l.Detach(), os.RemoveAll(l.dir))
}
