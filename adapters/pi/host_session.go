package pi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// Parent is a parent pi's session, as it is given to ServeOptions.Open. Its methods may be
// called from many goroutines at once.
type Parent struct {
	Session string         // pi's id of it
	File    string         // the session's file; "": pi keeps none
	Dir     string         // pi's working directory: the project
	Key     notes.Identity // who gives the orders: the same after a restart, unless File is ""
	Program []string       // how this pi was started: program and leading arguments; nil: not known

	host *host
	mu   sync.Mutex
	mode string
	now  string
}

// Identity is p.Key: a Parent is a notes.ParentIdentity. A pi that keeps no session file
// (--no-session) has an ephemeral one: its note session ends with it.
func (p *Parent) Identity(ctx context.Context) (notes.Identity, error) { return p.Key.Identity(ctx) }

// Model is the model that the parent uses at this moment, as provider/id, "" if none.
func (p *Parent) Model() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Mode is pi's: tui, rpc, print or json.
func (p *Parent) Mode() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// Confirm asks the user a question and blocks until it is answered or ctx ends. In print and
// JSON mode nobody is there, and the answer is no.
func (p *Parent) Confirm(ctx context.Context, title, message string) (bool, error) {
	if p.later() != "" {
		return false, nil
	}
	return p.host.confirm(ctx, title, message)
}

// later says why the parent has no later turns, or "" (ruling R15).
func (p *Parent) later() string {
	if mode := p.Mode(); mode == "print" || mode == "json" {
		return "this pi answers one prompt and ends (" + mode + " mode), so no message could arrive"
	}
	return ""
}

func (p *Parent) update(mode, model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mode != "" {
		p.mode = mode
	}
	p.now = model
}

// hostSession is one parent session in one project, and its Shepherd.
type hostSession struct {
	host   *host
	parent *Parent
	parts  Parts
	sh     *shepherd.Shepherd
	tools  map[string]shepherd.Tool
	ledger *ledger
	herd   *hostHerd

	watching sync.Mutex // held while a watch is registered, so that its order is known to its first notice

	wg sync.WaitGroup // releases

	mu      sync.Mutex
	over    time.Time        // when the session was left; zero: pi shows it
	orders  map[watch.ID]int // in which watches were registered
	inputs  map[watch.ID][]lifecycle.PromptID
	watches map[watch.ID]bridgeWatch // those with something open
	prompts map[lifecycle.PromptID]bridgePrompt
	newest  map[lifecycle.AgentID]lifecycle.PromptID
	placed  bool // where children live has been said
}

func openSession(ctx context.Context, h *host, p bridgeSession) (*hostSession, error) {
	parent := &Parent{Session: p.ID, File: p.File, Dir: p.Dir, Key: notes.Identity("pi:" + p.ID), Program: p.Program, host: h, mode: p.Mode, now: p.Model}
	switch {
	case p.File == "" && p.Ephemeral != "":
		parent.Key = notes.Identity(p.Ephemeral)
	case p.File == "":
		parent.Key = notes.Ephemeral()
	}
	parts, err := h.o.Open(ctx, parent)
	if err != nil {
		return nil, err
	}
	s := &hostSession{
		host: h, parent: parent, parts: parts,
		orders: map[watch.ID]int{}, inputs: map[watch.ID][]lifecycle.PromptID{}, watches: map[watch.ID]bridgeWatch{},
		prompts: map[lifecycle.PromptID]bridgePrompt{}, newest: map[lifecycle.AgentID]lifecycle.PromptID{},
	}
	c := parts.Config
	if c.Logger == nil {
		c.Logger = h.o.Logger
	}
	s.herd = newHerd(c.Herdr, p.Dir)
	c.Herdr, c.Parent, c.Notifier = s.herd, parent, s
	if s.sh, err = shepherd.New(c); err != nil {
		s.herd.close()
		if parts.Close != nil {
			err = errors.Join(err, parts.Close(ctx))
		}
		return nil, err
	}
	s.ledger = newLedger(c.FS, parent.Key, c.Logger)
	s.tools = s.allTools()
	s.herd.wg.Go(s.showHerd)
	return s, nil
}

// enter begins a stay in the session: what has no receipt is in the answer.
func (s *hostSession) enter(ctx context.Context, p bridgeSession) (bridgeEntered, error) {
	s.wg.Wait() // the watches of the last stay are released by then
	s.parent.update(p.Mode, p.Model)
	s.mu.Lock()
	s.over = time.Time{}
	s.mu.Unlock()
	answer := bridgeEntered{Again: []bridgeNotice{}, Place: s.parts.Place}
	if s.parent.File == "" {
		answer.Ephemeral = string(s.parent.Key)
	}
	had := s.ledger.ours()
	ours, err := s.ledger.take(ctx, len(p.Watches) > 0)
	switch {
	case err != nil:
		s.host.o.Logger.Error("no ledger: a notice may be lost with its process", "err", err)
	case !ours && s.ledger.exists():
		answer.Warning = "another pi has this session open: shepherd's tools work here, but notices go there"
		return answer, nil
	}
	if ours && !had {
		if err := s.interrupt(ctx); err != nil {
			s.host.o.Logger.Error("notes of a host that died could not be finished", "err", err)
		}
	}
	s.receipts(p.Seen)
	if p.Restart {
		s.carryOn(ctx, p.Watches)
	}
	answer.Again = s.withTexts(ctx, s.ledger.open())
	s.tellHerd()
	return answer, nil
}

// leave ends the stay: nothing that settles from here on is told, and what has settled is in
// the ledger for the next one. The children go on working and their notes are finished.
func (s *hostSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over.IsZero() {
		return
	}
	s.over = time.Now()
	s.herd.poke()
	ids := slices.Collect(maps.Keys(s.watches))
	clear(s.watches)
	s.wg.Go(func() {
		time.Sleep(gathering) // what settled before the end is on its way to Notify
		for _, id := range ids {
			_ = s.sh.Unwatch(id) // it may have finished
		}
	})
}

// gathering is longer than watch gathers completions.
const gathering = 150 * time.Millisecond

// close ends the Shepherd as ruling R13 says.
func (s *hostSession) close(ctx context.Context) error {
	s.leave()
	s.wg.Wait()
	var errs []error
	if err := s.sh.Close(ctx); err != nil {
		errs = append(errs, err)
	}
	for _, u := range s.sh.Undelivered() {
		if s.settledInTime(u.Notification) {
			errs = append(errs, s.ledger.add(s.notice(u.Notification)))
		}
	}
	s.herd.close()
	if s.parts.Close != nil {
		errs = append(errs, s.parts.Close(ctx))
	}
	errs = append(errs, s.ledger.release())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("session %s: %w", s.parent.Session, err)
	}
	return nil
}

func (s *hostSession) receipts(ids []watch.NotificationID) {
	if err := s.ledger.remove(ids); err != nil {
		s.host.o.Logger.Error("receipts were not written", "err", err)
	}
}
