package herdrtest

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Options shape a server. The zero value is a Herdr 0.8.0 in a hurry.
type Options struct {
	Version  string // default "0.8.0"
	Protocol int    // default 20; negative: the server names none

	Tick       time.Duration // of subscriptions; Herdr's is 100 ms, default 5 ms
	ShellAfter time.Duration // how long a new pane's shell is busy; default 0
	// RunAfter is how long the shell takes to run an agent that was typed into it; in the
	// first quarter it runs something of its own.
	RunAfter   time.Duration
	FoundAfter time.Duration // until a program is recognised as an agent; default 5 ms
	ReadyAfter time.Duration // until it is interactive; Herdr's is 3 s, default 20 ms
	EnterAfter time.Duration // until Enter follows a prompt; Herdr's is 300 ms, default 5 ms

	// NoDisk takes directories as they are, also those that do not exist.
	NoDisk bool
	// Blind: no agent is seen at work, as a pi 1.6 without Herdr's integration.
	Blind bool
	// Script is what scripted agents do with a prompt; default [Obey].
	Script Script
	// Missing are kinds whose program is not installed.
	Missing []string
	// Programs are kinds that are real commands, run by a real shell in a pseudo-terminal:
	// the kind's name and its command. Where there are any, all panes have real shells.
	Programs map[string][]string
	// Environ is the server's environment, which panes inherit; default os.Environ().
	Environ []string
}

// Server is the fake. Its methods may be called from many goroutines.
type Server struct {
	Socket string

	o     Options
	links *Links
	fatal func(format string, args ...any)

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	serving  sync.WaitGroup
	down     chan struct{} // closed when the server stops
	model    model
	faults   []*fault
	requests map[string]int
	streams  int // open

	lostEnters int
	integrated bool
}

const (
	maxLine  = 1 << 20
	lineTime = 5 * time.Second
)

// Start starts a server, with one workspace and one pane, that is stopped when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "hd") // short: a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	s := New(filepath.Join(dir, "herdr.sock"), o)
	s.fatal = t.Fatalf
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		s.links.close()
		os.RemoveAll(dir)
	})
	s.Do("workspace.create", map[string]any{"cwd": dir, "label": "main"})
	s.ResetCounts()
	return s
}

// New returns a server that does not run yet, with nothing in it.
func New(socket string, o Options) *Server {
	if o.Version == "" {
		o.Version = "0.8.0"
	}
	if o.Protocol == 0 {
		o.Protocol = 20
	}
	orElse(&o.Tick, 5*time.Millisecond)
	orElse(&o.FoundAfter, 5*time.Millisecond)
	orElse(&o.ReadyAfter, 20*time.Millisecond)
	orElse(&o.EnterAfter, 5*time.Millisecond)
	if o.Script == nil {
		o.Script = Obey
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	s := &Server{Socket: socket, o: o, links: newLinks(), requests: make(map[string]int)}
	s.fatal = func(string, ...any) {}
	s.model.init()
	return s
}

func orElse(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

// Run listens and returns. A server that was stopped can run again: as after a restart, its
// panes have the same ids, new terminals, fresh shells and no agents.
func (s *Server) Run() error {
	l, err := net.Listen("unix", s.Socket)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener, s.conns, s.down = l, make(map[net.Conn]bool), make(chan struct{})
	s.mu.Unlock()
	s.serving.Go(func() { s.accept(l) })
	return nil
}

// Stop ends the server: panes' programs are killed, connections end, the socket is gone.
func (s *Server) Stop() {
	s.mu.Lock()
	if s.listener == nil {
		s.mu.Unlock()
		return
	}
	s.hangUpLocked()
	s.listener.Close()
	s.listener = nil
	ends := s.model.killAll()
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
	s.serving.Wait()
}

// Restart stops the server and runs it again.
func (s *Server) Restart() {
	s.Stop()
	s.mu.Lock()
	s.model.restart(s)
	s.mu.Unlock()
	if err := s.Run(); err != nil {
		s.fatal("restart: %v", err)
	}
}

// Handoff replaces the server under its panes: programs live on, terminals have new ids, all
// connections end, events and sequence numbers start anew.
func (s *Server) Handoff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUpLocked()
	s.down = make(chan struct{})
	s.model.handoff()
}

func (s *Server) hangUpLocked() {
	close(s.down)
	for c := range s.conns {
		c.Close()
	}
}

// HangUp ends all open connections, as a server does with slow readers.
func (s *Server) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// Do carries out a request from within the test and returns its result. A refusal is fatal.
func (s *Server) Do(method string, params any) json.RawMessage {
	raw, err := json.Marshal(params)
	if err != nil {
		s.fatal("%s: %v", method, err)
	}
	result, refusal := s.handle(method, raw, s.downNow())
	if refusal != nil {
		s.fatal("%s: %s: %s", method, refusal.Code, refusal.Message)
	}
	raw, _ = json.Marshal(result)
	return raw
}

// Requests returns how often each method was called since the last ResetCounts.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int)
	for m, n := range s.requests {
		all[m] = n
	}
	return all
}

// ResetCounts forgets the requests so far.
func (s *Server) ResetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = make(map[string]int)
}

// Streams returns how many subscriptions are open.
func (s *Server) Streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

func (s *Server) downNow() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *Server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		down := s.down
		select {
		case <-down:
			c.Close()
		default:
			s.conns[c] = true
			s.serving.Go(func() { s.serve(c, down) })
		}
		s.mu.Unlock()
	}
}
