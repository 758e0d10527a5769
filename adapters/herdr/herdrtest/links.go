package herdrtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Links are links to scripted agents, in memory. They keep the contract of herdr.Links,
// private directories included.
type Links struct {
	mu     sync.Mutex
	places map[string]*endpoint // by token
	byDir  map[string]*endpoint
}

const linkVar = "HERDRTEST_LINK"

type level = link.Event

// endpoint is what a link's directory is to the two that meet there. It outlives either.
type endpoint struct {
	links *Links
	token string
	dir   string

	mu     sync.Mutex
	now    level
	cut    bool // the connection is down although both are there
	child  *child
	stored map[lifecycle.PromptID]lifecycle.Signal
	host   *hostLink
}

func newLinks() *Links {
	return &Links{places: make(map[string]*endpoint), byDir: make(map[string]*endpoint)}
}

// Links are the links of this server's agents.
func (s *Server) Links() *Links { return s.links }

// Open makes a directory and waits there for the child.
func (ls *Links) Open(ctx context.Context, _ lifecycle.Spec, on func(link.Event)) (link.Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "link") // mode 0700
	if err != nil {
		return nil, err
	}
	e := &endpoint{links: ls, token: rand.Text(), dir: dir, stored: make(map[lifecycle.PromptID]lifecycle.Signal)}
	ls.mu.Lock()
	ls.places[e.token], ls.byDir[dir] = e, e
	ls.mu.Unlock()
	return e.open(on), nil
}

// Reopen waits in a directory again.
func (ls *Links) Reopen(_ context.Context, dir string, on func(link.Event)) (link.Link, error) {
	ls.mu.Lock()
	e := ls.byDir[dir]
	ls.mu.Unlock()
	if e == nil {
		return nil, fmt.Errorf("reopen %s: %w", dir, fs.ErrNotExist)
	}
	return e.open(on), nil
}

// Dirs returns the directories that exist.
func (ls *Links) Dirs() (dirs []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for dir := range ls.byDir {
		dirs = append(dirs, dir)
	}
	return dirs
}

func (ls *Links) close() {
	for _, dir := range ls.Dirs() {
		os.RemoveAll(dir)
	}
}

func (ls *Links) childOf(token string, pid int) *child {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	e := ls.places[token]
	if e == nil {
		return nil
	}
	return &child{e: e, pid: pid}
}

// hostLink is the host's end. A goroutine of its own tells the newest level, in order.
type hostLink struct {
	e    *endpoint
	on   func(link.Event)
	wake chan struct{}
	end  chan struct{}
	done chan struct{}
	once sync.Once
}

func (e *endpoint) open(on func(link.Event)) *hostLink {
	l := &hostLink{e: e, on: on, wake: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{})}
	e.mu.Lock()
	e.host = l
	e.mu.Unlock()
	go l.tell()
	l.poke()
	return l
}

func (l *hostLink) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *hostLink) tell() {
	defer close(l.done)
	told := level{}
	for {
		select {
		case <-l.wake:
		case <-l.end:
			return
		}
		l.e.mu.Lock()
		now := l.e.now
		now.Up = now.Up && !l.e.cut
		l.e.mu.Unlock()
		if now != told {
			told = now
			l.on(now)
		}
	}
}

func (l *hostLink) Dir() string { return l.e.dir }

func (l *hostLink) Launch() (map[string]string, []string) {
	return map[string]string{linkVar: l.e.token}, nil
}

func (l *hostLink) Send(ctx context.Context, s lifecycle.Submission) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.e.mu.Lock()
	c, cut := l.e.child, l.e.cut
	l.e.mu.Unlock()
	if c == nil || cut {
		return fmt.Errorf("the link is down")
	}
	return c.accept(s, turns.Wrap(s))
}

func (l *hostLink) Stored(p lifecycle.PromptID) (lifecycle.Signal, bool) {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	s, ok := l.e.stored[p]
	return s, ok
}

func (l *hostLink) Close() error {
	err := l.Detach()
	ls := l.e.links
	ls.mu.Lock()
	delete(ls.places, l.e.token)
	delete(ls.byDir, l.e.dir)
	ls.mu.Unlock()
	return firstErr(err, os.RemoveAll(l.e.dir))
}

func (l *hostLink) Detach() error {
	l.once.Do(func() {
		l.e.mu.Lock()
		if l.e.host == l {
			l.e.host = nil
		}
		l.e.mu.Unlock()
		close(l.end)
	})
	<-l.done
	return nil
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// child is the agent's end.
type child struct {
	e      *endpoint
	pid    int
	accept func(s lifecycle.Submission, text string) error
}

func (c *child) connect() {
	c.e.mu.Lock()
	c.e.child = c
	c.e.mu.Unlock()
	c.update(func(l *level) { l.Up, l.PID = true, c.pid })
}

func (c *child) disconnect() {
	c.e.mu.Lock()
	if c.e.child == c {
		c.e.child = nil
	}
	c.e.mu.Unlock()
	c.update(func(l *level) { l.Up = false })
}

func (c *child) update(change func(*level)) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	change(&c.e.now)
	if c.e.host != nil {
		c.e.host.poke()
	}
}

func (c *child) began(s lifecycle.Submission) {
	c.update(func(l *level) {
		l.Busy = true
		l.Turns++
		if s.Prompt != "" {
			l.Current = lifecycle.Signal{Prompt: s.Prompt, Kind: lifecycle.Started, At: time.Now()}
		}
	})
}

func (c *child) settled(s lifecycle.Signal) {
	c.update(func(l *level) {
		l.Busy, l.Dialog = false, false
		if s.Prompt != "" {
			l.Current = s
			c.e.stored[s.Prompt] = s
		}
	})
}
