package pi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// hostHerd is a Herdr that tells when a level changes, so that the widget follows events.
type hostHerd struct {
	lifecycle.Herdr
	dir string

	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup
	dirty chan struct{} // holds one: there may be news
}

func newHerd(h lifecycle.Herdr, dir string) *hostHerd {
	w := &hostHerd{Herdr: h, dir: dir, dirty: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Launch starts an agent in the parent's directory unless it has another.
func (h *hostHerd) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	if s.Dir == "" {
		s.Dir = h.dir
	}
	t, err := h.Herdr.Launch(ctx, s)
	if err == nil {
		h.wg.Go(func() { h.follow(t) })
	}
	return t, err
}

// Recent is the Herdr's, where it has one.
func (h *hostHerd) Recent(ctx context.Context, t lifecycle.Target) (string, error) {
	reader, ok := h.Herdr.(lifecycle.OutputReader)
	if !ok {
		return "", fmt.Errorf("recent output: %w", errors.ErrUnsupported)
	}
	return reader.Recent(ctx, t)
}

func (h *hostHerd) follow(t lifecycle.Target) {
	for {
		o, changed := h.Observe(t)
		h.poke()
		if o.State == lifecycle.Gone {
			return
		}
		select {
		case <-changed:
		case <-h.ctx.Done():
			return
		}
	}
}

func (h *hostHerd) poke() {
	select {
	case h.dirty <- struct{}{}:
	default:
	}
}

func (h *hostHerd) close() {
	h.stop()
	h.wg.Wait()
}

// showHerd tells the extension about the herd whenever that changes, as long as pi shows the
// session, until the herd is closed.
func (s *hostSession) showHerd() {
	var told []bridgeChild // nil: the extension knows nothing
	for {
		var soon <-chan time.Time
		if s.settling() {
			soon = time.After(settlingPause)
		}
		select {
		case <-s.herd.ctx.Done():
			return
		case <-s.herd.dirty:
		case <-soon:
		}
		select { // a burst of changes is told once
		case <-time.After(herdPause):
		case <-s.herd.ctx.Done():
			return
		}
		if !s.left().IsZero() {
			told = nil
			continue
		}
		if now := s.children(); told == nil || !slices.Equal(now, told) {
			s.host.push("herd", map[string]any{"session": s.parent.Session, "children": now})
			told = now
		}
	}
}

const (
	herdPause     = 50 * time.Millisecond
	settlingPause = 200 * time.Millisecond
)

func (s *hostSession) tellHerd() { s.herd.poke() }

// settling reports whether some agent has come to rest and its prompt is about to settle,
// which no level tells.
func (s *hostSession) settling() bool {
	return slices.ContainsFunc(s.sh.Agents(), func(st lifecycle.AgentStatus) bool {
		return st.PromptID != "" && st.State != lifecycle.Working && !st.Closed
	})
}

// children are the agents that were not closed, as the widget shows them.
func (s *hostSession) children() []bridgeChild {
	list := []bridgeChild{}
	for _, st := range s.sh.Agents() {
		if !st.Closed {
			list = append(list, s.child(st))
		}
	}
	return list
}

func (s *hostSession) child(st lifecycle.AgentStatus) bridgeChild {
	c := bridgeChild{ID: st.ID, Agent: st.Name, Label: st.Label, State: st.State.String(), Since: st.Since.UnixMilli()}
	s.mu.Lock()
	last := s.prompts[s.newest[st.ID]]
	s.mu.Unlock()
	if st.PromptID != "" {
		c.State, c.Since = "working", st.Submitted.UnixMilli()
		if st.State == lifecycle.Blocked {
			c.State = "blocked"
		}
		return c
	}
	if r, ok := s.sh.Result(last.ID); ok && last.ID != "" && st.State != lifecycle.Working {
		c.State, c.Since, c.Until = string(r.Status), last.Started.UnixMilli(), r.At.UnixMilli()
	}
	return c
}

func (c bridgeChild) age() time.Duration {
	until := time.Now()
	if c.Until != 0 {
		until = time.UnixMilli(c.Until)
	}
	return until.Sub(time.UnixMilli(c.Since)).Round(time.Second)
}
