package pi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// A hostSession is the watch.Notifier of its parent. What it takes over is in the ledger and
// in the extension's queue.
var (
	_ watch.Notifier     = (*hostSession)(nil)
	_ watch.Idempotent   = (*hostSession)(nil)
	_ watch.Reachability = (*hostSession)(nil)
)

// Notify hands a notification to the extension. It blocks until the extension has answered
// or ctx ends. After the session has ended the error is watch.ErrSessionOver; the notice is
// then in the ledger, for the next stay, unless it settled after the end (ruling R21).
func (s *hostSession) Notify(ctx context.Context, n watch.Notification) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	notice := s.notice(n)
	over := s.left()
	if !over.IsZero() && !s.settledInTime(n) {
		return watch.ErrSessionOver
	}
	if err := s.ledger.add(notice); err != nil { // better told and forgotten by a crash than not told
		s.host.o.Logger.Error("a notice is not in the ledger", "notice", n.ID, "err", err)
	}
	if !over.IsZero() {
		return watch.ErrSessionOver
	}
	if err := s.host.offer(ctx, notice); err != nil {
		return err
	}
	s.told(notice)
	return nil
}

// Idempotent: the extension knows a notice again by its id.
func (s *hostSession) Idempotent() bool { return true }

// Unreachable says why nothing can be told later, or "".
func (s *hostSession) Unreachable() string {
	if why := s.parent.later(); why != "" {
		return why
	}
	if !s.left().IsZero() {
		return "the parent session has ended"
	}
	ours, err := s.ledger.take(context.Background(), true)
	if err == nil && !ours {
		return "another pi has this session open, and the messages go there"
	}
	return ""
}

func (s *hostSession) left() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// settledInTime reports whether all of a notification had settled before the session ended.
func (s *hostSession) settledInTime(n watch.Notification) bool {
	over := s.left()
	for _, c := range n.Completions {
		if !over.IsZero() && c.At.After(over) {
			return false
		}
	}
	return true
}

// notice makes what is sent of a notification.
func (s *hostSession) notice(n watch.Notification) bridgeNotice {
	s.watching.Lock() // a watch that settles at once waits for its registration
	defer s.watching.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	notice := bridgeNotice{ID: n.ID, WatchID: n.WatcherID, Order: s.orders[n.WatcherID], Session: s.parent.Session, Pending: n.Pending}
	for _, c := range n.Completions {
		p := s.prompts[c.PromptID]
		p.Input = slices.Index(s.inputs[n.WatcherID], c.PromptID)
		notice.Items = append(notice.Items, itemOf(c, p))
	}
	return notice
}

// told strikes what the extension has taken over from the open watches.
func (s *hostSession) told(n bridgeNotice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, open := s.watches[n.WatchID]; open {
		if w = w.without(n); len(w.Prompts) == 0 {
			delete(s.watches, w.ID)
		} else {
			s.watches[w.ID] = w
		}
	}
}

// without is the watch after a notice.
func (w bridgeWatch) without(n bridgeNotice) bridgeWatch {
	told := map[lifecycle.PromptID]bool{}
	for _, i := range n.Items {
		told[i.PromptID] = true
	}
	var open []bridgePrompt
	for _, p := range w.Prompts {
		if !told[p.ID] {
			open = append(open, p)
		}
	}
	w.Prompts, w.Last = open, max(w.Last, noticeNumber(n.ID))
	return w
}

// noticeNumber is the n of "<watcher>/<n>".
func noticeNumber(id watch.NotificationID) int {
	n, _ := strconv.Atoi(string(id[strings.LastIndexByte(string(id), '/')+1:]))
	return n
}
