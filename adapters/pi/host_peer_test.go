package pi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// fakePi is an extension as the host sees it: it takes notices into a queue, keeps a session
// of its own, and does with both what the test says.
type fakePi struct {
	*is.I
	t      *testing.T
	client *jrpc2.Client
	herdr  *lifecycletest.Herdr
	ended  chan struct{} // Serve has returned
	hangUp func()

	mu      sync.Mutex
	refuse  bool // notices are for a session that is over
	queue   []bridgeNotice
	watches []bridgeWatch
	herd    []bridgeChild
	answer  bool // to confirm
	asked   []string
}

// hosting is what hosts of one project share.
type hosting struct {
	disk   *notestest.Disk
	view   *notestest.View // the newest host's; Kill is that host's death
	parent *Parent         // the newest
	open   func(*Parent) (Parts, error)
}

func newHosting() *hosting { return &hosting{disk: notestest.NewDisk()} }

// pi starts a host and a pi that says hello to it.
func (w *hosting) pi(t *testing.T) *fakePi {
	t.Helper()
	p := &fakePi{I: is.New(t), t: t, herdr: &lifecycletest.Herdr{}, ended: make(chan struct{})}
	view := w.disk.View()
	w.view = view
	var o ServeOptions
	o.Open = func(_ context.Context, parent *Parent) (Parts, error) {
		w.parent = parent
		parts := Parts{Place: "the test"}
		if w.open != nil {
			var err error
			if parts, err = w.open(parent); err != nil {
				return parts, err
			}
		}
		parts.Config.Herdr, parts.Config.FS = p.herdr, view
		return parts, nil
	}
	toHost, fromPi := io.Pipe()
	toPi, fromHost := io.Pipe()
	o.In, o.Out = toHost, fromHost
	go func() {
		defer close(p.ended)
		if err := Serve(context.Background(), o); err != nil {
			t.Log(err)
		}
	}()
	p.hangUp = func() { _ = fromPi.Close() }
	p.client = jrpc2.NewClient(newLineChannel(toPi, fromPi), &jrpc2.ClientOptions{OnNotify: p.notified, OnCallback: p.called})
	t.Cleanup(func() {
		p.hangUp()
		<-p.ended
		_ = p.client.Close()
	})
	var hello bridgeWelcome
	p.ask("hello", bridgeHello{Protocol: BridgeProtocol, Tools: toolsHash()}, &hello)
	p.Equal(hello.Protocol, BridgeProtocol)
	return p
}

func (p *fakePi) notified(r *jrpc2.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Method() {
	case "watch":
		var w bridgeWatch
		_ = r.UnmarshalParams(&w)
		p.watches = append(p.watches, w)
	case "herd":
		var h struct{ Children []bridgeChild }
		_ = r.UnmarshalParams(&h)
		p.herd = h.Children
	}
}

func (p *fakePi) called(_ context.Context, r *jrpc2.Request) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Method() {
	case "notice":
		if p.refuse {
			return nil, jrpc2.Errorf(codeSessionOver, "that session is over")
		}
		var n bridgeNotice
		_ = r.UnmarshalParams(&n)
		p.take(n)
	case "confirm":
		p.asked = append(p.asked, r.ParamString())
		return map[string]bool{"ok": p.answer}, nil
	}
	return struct{}{}, nil
}

// take is called with the lock held.
func (p *fakePi) take(n bridgeNotice) {
	if !slices.ContainsFunc(p.queue, func(q bridgeNotice) bool { return q.ID == n.ID }) {
		p.queue = append(p.queue, n)
	}
	for i := range p.watches {
		if p.watches[i].ID == n.WatchID {
			p.watches[i] = p.watches[i].without(n)
		}
	}
}

func (p *fakePi) ask(method string, params, into any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	p.NoErr(p.client.CallResult(ctx, method, params, into))
}

func (p *fakePi) enter(s bridgeSession) bridgeEntered {
	p.t.Helper()
	if s.ID == "" {
		s.ID = "session-1"
	}
	if s.Mode == "" {
		s.Mode = "tui"
	}
	if s.File == "" && s.Mode == "tui" {
		s.File = "/sessions/" + s.ID + ".jsonl"
	}
	s.Dir = "/project"
	var e bridgeEntered
	p.ask("session", s, &e)
	return e
}

func (p *fakePi) leave(session, reason string) {
	p.t.Helper()
	p.ask("leave", bridgeLeave{Session: session, Reason: reason}, &struct{}{})
}

// tool calls a tool in session-1, or in the session that is named.
func (p *fakePi) tool(name string, args any, session ...string) bridgeResult {
	p.t.Helper()
	raw, err := json.Marshal(args)
	p.NoErr(err)
	id := "session-1"
	if len(session) > 0 {
		id = session[0]
	}
	var r bridgeResult
	p.ask("tool", bridgeCall{Session: id, Call: fmt.Sprint(time.Now().UnixNano()), Name: name, Args: raw}, &r)
	return r
}

// good is tool for a call that has to succeed.
func (p *fakePi) good(name string, args any, session ...string) bridgeResult {
	p.t.Helper()
	r := p.tool(name, args, session...)
	if r.IsError {
		p.t.Fatalf("%s: %s", name, r.Text)
	}
	return r
}

// working starts an agent, prompts it and returns both.
func (p *fakePi) working(label string, session ...string) (*lifecycletest.Agent, string) {
	p.t.Helper()
	started := p.good("shepherd_start", object{"agent": "scout", "label": label}, session...)
	agent := started.Details["agentId"].(string)
	prompted := p.good("shepherd_prompt", object{"id": agent, "message": "look around"}, session...)
	return p.herdr.Agent(lifecycle.AgentID(agent)), prompted.Details["promptId"].(string)
}

type object = map[string]any

func (p *fakePi) notices() []bridgeNotice {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.queue)
}

func (p *fakePi) openWatches() []bridgeWatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.watches), func(w bridgeWatch) bool { return len(w.Prompts) == 0 })
}

// hasWatches waits until pi knows so many open watches.
func (p *fakePi) hasWatches(n int) []bridgeWatch {
	p.t.Helper()
	eventually(p.t, "open watches", func() bool { return len(p.openWatches()) == n })
	return p.openWatches()
}

// receive says that everything in the queue stands in the session now.
func (p *fakePi) receive(session string) []watch.NotificationID {
	p.t.Helper()
	var ids []watch.NotificationID
	for _, n := range p.notices() {
		ids = append(ids, n.ID)
	}
	p.NoErr(p.client.Notify(p.t.Context(), "receipts", bridgeReceipts{Session: session, IDs: ids}))
	return ids
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
