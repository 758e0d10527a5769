package pi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"
	"github.com/pi-shepherd/go-shepherd/watch"
)

//go:embed extension/tools.json
var parentTools []byte

// toolsHash names a list of tools; the extension hashes its own.
func toolsHash() string {
	sum := sha256.Sum256(parentTools)
	return hex.EncodeToString(sum[:])
}

// host is one connection with a parent pi. A pi has one session at a time and may come back
// to earlier ones; each has its own Shepherd.
type host struct {
	o      ServeOptions
	token  string
	server *jrpc2.Server

	life    context.Context // ends with the connection; every call has it
	end     context.CancelFunc
	refused chan struct{} // closed: this client may not stay
	refuse  func()        // closes it

	opening sync.Mutex // one session opens at a time

	mu       sync.Mutex
	greeted  bool
	wrong    bool // a wrong token was said
	sessions map[string]*hostSession
	current  *hostSession
	calls    map[string]context.CancelFunc // tool calls under way
	over     bool                          // no session is opened any more
}

func newHost(o ServeOptions, token string) *host {
	h := &host{o: o, token: token, refused: make(chan struct{}), sessions: map[string]*hostSession{}, calls: map[string]context.CancelFunc{}}
	h.refuse = sync.OnceFunc(func() { close(h.refused) })
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

func (h *host) methods() handler.Map {
	return handler.Map{
		"hello":    handler.New(h.hello),
		"session":  handler.New(greeted(h, h.enter)),
		"leave":    handler.New(greeted(h, h.leave)),
		"tool":     handler.New(greeted(h, h.call)),
		"show":     handler.New(greeted(h, h.show)),
		"receipts": handler.New(greeted(h, h.receipts)),
		"cancel":   handler.New(greeted(h, h.cancel)),
	}
}

// greeted refuses whoever has not said hello.
func greeted[P, R any](h *host, f func(context.Context, P) (R, error)) func(context.Context, P) (R, error) {
	return func(ctx context.Context, p P) (none R, err error) {
		if !h.hasGreeted() {
			return none, jrpc2.Errorf(jrpc2.InvalidRequest, "say hello first")
		}
		return f(ctx, p)
	}
}

func (h *host) hasGreeted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.greeted
}

func (h *host) hello(_ context.Context, p bridgeHello) (bridgeWelcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wrong || subtle.ConstantTimeCompare([]byte(p.Token), []byte(h.token)) != 1 {
		h.wrong = true                                 // no second guess
		time.AfterFunc(100*time.Millisecond, h.refuse) // once the answer is out
		return bridgeWelcome{}, jrpc2.Errorf(jrpc2.InvalidRequest, "the token is wrong: this host serves somebody else")
	}
	h.greeted = true
	return bridgeWelcome{Protocol: BridgeProtocol, Version: h.o.Version, PID: os.Getpid(), Tools: toolsHash()}, nil
}

// enter opens the session that pi shows now, or comes back to it.
func (h *host) enter(ctx context.Context, p bridgeSession) (bridgeEntered, error) {
	if p.ID == "" || p.Dir == "" {
		return bridgeEntered{}, jrpc2.Errorf(jrpc2.InvalidParams, "a session needs an id and a directory")
	}
	h.opening.Lock()
	defer h.opening.Unlock()
	s, err := h.find(ctx, p)
	if err != nil {
		return bridgeEntered{}, err
	}
	h.mu.Lock()
	before := h.current
	h.current = s
	h.mu.Unlock()
	if before != nil && before != s {
		before.leave()
	}
	return s.enter(ctx, p)
}

func (h *host) find(ctx context.Context, p bridgeSession) (*hostSession, error) {
	key := p.ID + "\x00" + p.Dir
	h.mu.Lock()
	s, over := h.sessions[key], h.over
	h.mu.Unlock()
	if over {
		return nil, errors.New("the host is closing")
	}
	if s != nil {
		return s, nil
	}
	s, err := openSession(ctx, h, p)
	if err != nil {
		return nil, fmt.Errorf("shepherd cannot work in %s: %w", p.Dir, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[key] = s
	return s, nil
}

// in returns the session that pi shows, if it is the one that is meant.
func (h *host) in(session string) (*hostSession, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil || h.current.parent.Session != session {
		return nil, fmt.Errorf("session %q is not the one that is open", session)
	}
	return h.current, nil
}

// leave ends the current session, but not the work of its children. It answers at once.
func (h *host) leave(_ context.Context, p bridgeLeave) (struct{}, error) {
	s, err := h.in(p.Session)
	if err != nil {
		return struct{}{}, nil // it has been left already, or was never entered
	}
	s.leave()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == s {
		h.current = nil
	}
	return struct{}{}, nil
}

// call carries a tool call out. Its context ends with the connection and by cancel.
func (h *host) call(ctx context.Context, p bridgeCall) (bridgeResult, error) {
	s, err := h.in(p.Session)
	if err != nil {
		return bridgeResult{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.mu.Lock()
	h.calls[p.Call] = cancel
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, p.Call)
	}()
	return s.call(ctx, p)
}

func (h *host) cancel(_ context.Context, p bridgeCancel) (struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cancel := h.calls[p.Call]; cancel != nil {
		cancel()
	}
	return struct{}{}, nil
}

func (h *host) receipts(_ context.Context, p bridgeReceipts) (struct{}, error) {
	h.mu.Lock()
	var of []*hostSession
	for _, s := range h.sessions {
		if s.parent.Session == p.Session {
			of = append(of, s)
		}
	}
	h.mu.Unlock()
	for _, s := range of {
		s.receipts(p.IDs)
	}
	return struct{}{}, nil
}

func (h *host) show(ctx context.Context, p bridgeShow) (map[string]any, error) {
	s, err := h.in(p.Session)
	if err != nil {
		return nil, err
	}
	text, err := s.show(ctx, p.What)
	return map[string]any{"text": text}, err
}

// offer offers a notice to the extension, which takes it over or refuses it.
func (h *host) offer(ctx context.Context, n bridgeNotice) error {
	_, err := h.server.Callback(ctx, "notice", n)
	var refusal *jrpc2.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code == codeSessionOver:
		return fmt.Errorf("%w: %s", watch.ErrSessionOver, refusal.Message)
	case errors.Is(err, jrpc2.ErrConnClosed) || (err != nil && h.life.Err() != nil):
		return fmt.Errorf("%w: pi is gone", watch.ErrSessionOver)
	case err != nil:
		return fmt.Errorf("pi: notice %s: %w", n.ID, err)
	}
	return nil
}

// push tells the extension something that needs no answer.
func (h *host) push(method string, params any) {
	if err := h.server.Notify(h.life, method, params); err != nil && h.life.Err() == nil {
		h.o.Logger.Debug("not told", "what", method, "err", err)
	}
}

// confirm asks the user. Where there is nobody, the answer is no.
func (h *host) confirm(ctx context.Context, title, message string) (bool, error) {
	answer, err := h.server.Callback(ctx, "confirm", bridgeConfirm{title, message})
	if err != nil {
		return false, fmt.Errorf("pi: ask the user: %w", err)
	}
	var a struct {
		OK bool `json:"ok"`
	}
	err = answer.UnmarshalResult(&a)
	return a.OK, err
}

// hangUp ends the connection: every session is over, and calls under way are cut off.
func (h *host) hangUp() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	for _, s := range h.all() {
		s.leave()
	}
	h.end()
	h.server.Stop()
}

func (h *host) all() []*hostSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*hostSession, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s)
	}
	return all
}

func (h *host) close(ctx context.Context) error {
	h.opening.Lock() // whoever opens one has heard of the end, or finishes
	defer h.opening.Unlock()
	var errs []error
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, s := range h.all() {
		wg.Go(func() {
			if err := s.close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
