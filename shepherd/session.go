package shepherd

import (
	"context"
	"fmt"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// Session is the parent's note session, as a host may show it.
type Session struct {
	Name    string
	Path    string // absolute
	RelPath string // from the project, slash-separated
	// Recovered says which sessions were found corrupt and left alone when this one was
	// allocated in their place, nil for nearly all (ruling R17).
	Recovered error
}

// Session returns the parent's note session in the project, binding it first if need be: the
// one it has, or exactly one new one. It blocks until that is on disk or ctx ends. A failure
// is not remembered: the next call tries again. Errors are those of notes.Open.
func (s *Shepherd) Session(ctx context.Context) (Session, error) {
	session, err := s.bind(ctx)
	if err != nil {
		return Session{}, err
	}
	return Session{Name: session.Name(), Path: session.Path(), RelPath: session.RelPath(), Recovered: session.Recovered()}, nil
}

func (s *Shepherd) bind(ctx context.Context) (*notes.Session, error) {
	if session, err := s.bound(); session != nil || err != nil {
		return session, err
	}
	select {
	case s.binding <- struct{}{}:
		defer func() { <-s.binding }()
	case <-ctx.Done():
		return nil, fmt.Errorf("shepherd: bind the note session: %w", ctx.Err())
	}
	if session, err := s.bound(); session != nil || err != nil {
		return session, err // by somebody else, meanwhile
	}
	session, err := notes.Open(ctx, notes.Config{
		FS: s.config.FS, Parent: s.config.Parent, SessionName: s.config.SessionName,
		Now: s.config.Clock.Now, Logger: s.config.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("shepherd: bind the note session: %w", err)
	}
	if err := session.Recovered(); err != nil {
		s.config.Logger.Error("note sessions are corrupt and were left alone", "session", session.RelPath(), "err", err)
	}
	s.look(ctx, session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: while the note session was being bound", ErrClosed)
	}
	s.session = session
	return session, nil
}

// look makes a resumed session's record true: what a dead process left running is detached
// (ruling R14).
func (s *Shepherd) look(ctx context.Context, session *notes.Session) {
	left, err := session.Unfinished(ctx)
	switch {
	case err != nil:
		s.config.Logger.Warn("could not look for unfinished notes", "session", session.RelPath(), "err", err)
	case len(left) > 0:
		s.config.Logger.Warn("notes were left unfinished", "session", session.RelPath(), "notes", len(left))
	}
}

// Unfinished lists the notes of this parent that a process which died or closed left before
// their prompts had ended, with what is needed to look at their agents (ruling R14). Each
// can be finalised, as interrupted if its agent is gone. It binds the note session first,
// if need be; ctx and errors are those of [Shepherd.Session].
func (s *Shepherd) Unfinished(ctx context.Context) ([]Unfinished, error) {
	session, err := s.bind(ctx)
	if err != nil {
		return nil, err
	}
	return session.Unfinished(ctx)
}

func (s *Shepherd) bound() (*notes.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.session, nil
}
