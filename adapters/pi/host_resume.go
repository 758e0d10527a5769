package pi

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// What an earlier host of the same parent has left behind when it died (ruling R14).

// interrupt finishes the notes that nobody looks after. Agents that still run are left
// alone.
func (s *hostSession) interrupt(ctx context.Context) error {
	session, err := notes.Open(ctx, notes.Config{FS: s.parts.Config.FS, Parent: s.parent, Logger: s.host.o.Logger})
	if err != nil {
		return err
	}
	left, err := session.Unfinished(ctx)
	errs := []error{err}
	for _, n := range left {
		o := notes.Outcome{Status: notes.Interrupted, ReturnCode: lifecycle.StatusInterrupted.ReturnCode(), Error: "the process that looked after the prompt died"}
		if n.Status == notes.Pending {
			o = notes.Outcome{Status: notes.Cancelled, ReturnCode: lifecycle.StatusCancelled.ReturnCode(), Error: "the prompt was never submitted"}
		}
		errs = append(errs, n.Finalize(ctx, o))
	}
	return errors.Join(append(errs, session.Close())...)
}

// carryOn tells the watches of the host that died how their prompts ended, under the
// watches' own ids: the parent lives and has asked for it. What the notes do not know was
// interrupted.
func (s *hostSession) carryOn(ctx context.Context, watches []bridgeWatch) {
	slices.SortStableFunc(watches, func(a, b bridgeWatch) int { return a.Order - b.Order })
	for _, w := range watches {
		s.mu.Lock()
		s.orders[w.ID] = w.Order
		s.mu.Unlock()
		for _, n := range s.ledger.open() {
			if n.WatchID == w.ID {
				w = w.without(n)
			}
		}
		if len(w.Prompts) == 0 {
			continue
		}
		n := bridgeNotice{
			ID: watch.NotificationID(fmt.Sprintf("%s/%d", w.ID, w.Last+1)), WatchID: w.ID,
			Order: w.Order, Session: s.parent.Session,
		}
		for _, p := range w.Prompts {
			n.Items = append(n.Items, s.ended(ctx, w.ID, p))
		}
		if err := s.ledger.add(n); err != nil {
			s.host.o.Logger.Error("a notice is not in the ledger", "notice", n.ID, "err", err)
		}
	}
}

// ended says how a prompt of a host that died has ended.
func (s *hostSession) ended(ctx context.Context, w watch.ID, p bridgePrompt) bridgeItem {
	r := lifecycle.Result{
		PromptID: p.ID, AgentID: p.AgentID, Agent: p.Agent, Label: p.Label, NotePath: p.NotePath, At: time.Now(),
		Status: lifecycle.StatusInterrupted, ReturnCode: lifecycle.StatusInterrupted.ReturnCode(),
		Error: "the process that looked after the prompt died",
	}
	if note, err := s.note(ctx, p.NotePath); err == nil && note.PromptID == string(p.ID) && note.Status.Final() {
		r.Status, r.Error, r.Text, r.Inferred, r.At = statusOf(note.NoteInfo), note.Error, note.Text, note.Inferred, note.Completed
		r.ReturnCode = r.Status.ReturnCode()
		if note.ReturnCode != nil {
			r.ReturnCode = *note.ReturnCode
		}
	}
	return itemOf(watch.Completion{WatcherID: w, Result: r}, p)
}

// note reads a note of this project by its absolute path.
func (s *hostSession) note(ctx context.Context, name string) (notes.NoteView, error) {
	slashed := filepath.ToSlash(name)
	return notes.ReadNote(ctx, s.parts.Config.FS, path.Base(path.Dir(slashed)), path.Base(slashed))
}

func statusOf(n notes.NoteInfo) lifecycle.Status {
	switch n.Status {
	case notes.Completed:
		if n.Inferred {
			return lifecycle.StatusIdle
		}
		return lifecycle.StatusDone
	case notes.TimedOut:
		return lifecycle.StatusTimeout
	}
	return lifecycle.Status(n.Status)
}

// withTexts gives notices of the ledger their texts, which the notes have.
func (s *hostSession) withTexts(ctx context.Context, open []bridgeNotice) []bridgeNotice {
	for i := range open {
		open[i].Items = slices.Clone(open[i].Items)
		for j := range open[i].Items {
			item := &open[i].Items[j]
			if item.Text != "" || item.NotePath == "" {
				continue
			}
			if note, err := s.note(ctx, item.NotePath); err == nil {
				item.Text = cutText(note.Text, item.NotePath)
			}
		}
	}
	return emptyIfNil(open)
}

// show answers a question of the user, for reading.
func (s *hostSession) show(ctx context.Context, what string) (string, error) {
	switch what {
	case "notes":
		return s.showNotes(ctx)
	case "settings":
		return strings.Join([]string{
			"shepherd-pi " + s.host.o.Version,
			"agents live in: " + orWord(s.parts.Place, "a place without a name"),
			"project: " + s.parent.Dir,
			"ledger: " + path.Join(s.parts.Config.FS.Root(), s.ledger.file()),
			"model of the parent: " + orWord(s.parent.Model(), "none chosen"),
		}, "\n"), nil
	}
	return "", fmt.Errorf("there is nothing called %q to show; there are notes and settings", what)
}

func (s *hostSession) showNotes(ctx context.Context) (string, error) {
	if !s.ledger.exists() {
		return "no notes yet: nothing was started in this session", nil
	}
	session, err := s.sh.Session(ctx)
	if err != nil {
		return "", err
	}
	info, err := notes.Read(ctx, s.parts.Config.FS, path.Base(session.RelPath))
	if err != nil {
		return "", err
	}
	lines := []string{session.RelPath}
	for _, n := range info.Notes {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %s  %-11s %s %s", n.File, n.Status, n.Agent, n.Label), " "))
	}
	return strings.Join(lines, "\n"), nil
}
