package notes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Config says whose notes to open, and where.
type Config struct {
	FS     FS             // required; rooted at the project
	Parent ParentIdentity // required

	// SessionName names the session when it is allocated, and never selects one. Any text
	// will do. Default: from the identity's hash.
	SessionName string
	// Now is the time. Default: time.Now.
	Now func() time.Time
	// Logger is told what was survived. Default: discarded.
	Logger *slog.Logger
	// LockTimeout is how long somebody else's lock is waited for. Default: 10 s.
	LockTimeout time.Duration
	// Patience is how long a call whose ctx has ended still waits for a write that has
	// begun. Default: 5 s.
	Patience time.Duration
}

// Defaults of a [Config].
const (
	DefaultLockTimeout = 10 * time.Second
	DefaultPatience    = 5 * time.Second
)

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.FS == nil:
		return c, fmt.Errorf("%w: Config.FS is missing", ErrInvalid)
	case c.Parent == nil:
		return c, fmt.Errorf("%w: Config.Parent is missing", ErrInvalid)
	case c.LockTimeout < 0 || c.Patience < 0:
		return c, fmt.Errorf("%w: a negative duration in Config", ErrInvalid)
	}
	if check, ok := c.FS.(Checker); ok {
		if err := check.Err(); err != nil {
			return c, err
		}
	}
	if !filepath.IsAbs(c.FS.Root()) && !strings.HasPrefix(c.FS.Root(), "/") {
		return c, fmt.Errorf("%w: the project's root %q is not absolute", ErrInvalid, c.FS.Root())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.LockTimeout = cmp.Or(c.LockTimeout, DefaultLockTimeout)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.SessionName = strings.ToValidUTF8(c.SessionName, string(utf8.RuneError))
	return c, nil
}

// Open returns the note session of the parent in the project: the one it has, or exactly
// one new one (note-session spec, Allocation and reuse). It blocks until the session is on
// disk or ctx ends, and may be called from many goroutines and processes at once.
//
// A session that is there but corrupt is left as it is, and a new one is allocated that
// says so (ruling R17; see [Session.Recovered]). Errors to match: ErrNewerVersion,
// ErrLocked, ErrInvalid, those of the FS and of the ParentIdentity. If it fails, at most a
// directory without a session.json stays behind; its number is not used again.
func Open(ctx context.Context, c Config) (*Session, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	id, err := c.Parent.Identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("notes: the parent's identity: %w", err)
	}
	if id == "" {
		return nil, errNoIdentity
	}
	b := &binder{Config: c, id: id, hash: id.hash()}
	found, err := b.lookup() // what is there needs no lock
	if err != nil {
		return nil, err
	}
	if found.rec == nil {
		if found, err = b.allocate(ctx); err != nil {
			return nil, err
		}
	}
	s := b.session(found)
	if found.made {
		return s, nil
	}
	if err := s.refresh(ctx, found.rec); err != nil {
		return nil, err
	}
	return s, nil
}

// binder finds or makes the session of one parent.
type binder struct {
	Config
	id   Identity
	hash string
}

// found is a session, or why there is none.
type found struct {
	dir  string  // the directory's name
	rec  *record // nil if there is no session
	lost error   // why the one that was there is not attached; nil if there never was one
	made bool    // just now
}

// session makes the handle.
func (b *binder) session(f found) *Session {
	s := &Session{
		fs: b.FS, log: b.Logger, now: b.Now, lockTimeout: b.LockTimeout, patience: b.Patience,
		dir: path.Join(sessionsDir, f.dir), hash: b.hash, title: f.rec.Name, past: f.rec.corruption(),
	}
	return s
}

// lookup follows the parent's pointer. Its cost does not depend on how many sessions there
// are. What it finds is believed only because session.json says the same.
func (b *binder) lookup() (found, error) {
	dir, err := readPointer(b.FS, b.hash)
	if err != nil || dir == "" {
		return found{}, err
	}
	return b.inspect(dir)
}

// inspect looks whether a directory is the parent's session. The error is for what must
// stop the opening; what makes the directory no session of ours is found.lost.
func (b *binder) inspect(dir string) (found, error) {
	name := path.Join(sessionsDir, dir, recordFile)
	data, err := b.FS.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return b.abandoned(dir)
	}
	if err != nil {
		return found{}, fmt.Errorf("notes: %w", err)
	}
	rec, err := decode(data, nil, pagesIn(b.FS, path.Join(sessionsDir, dir)))
	switch {
	case errors.Is(err, ErrNewerVersion):
		return found{}, fmt.Errorf("%s: %w", name, err)
	case errors.As(err, new(unreadable)):
		return found{}, fmt.Errorf("notes: %s: %w", path.Dir(name), err)
	case err == nil && rec.Parent.Identity != hashPrefix+b.hash:
		err = errForeign
	case err == nil && sessionDir(rec.Number, rec.Slug) != dir:
		err = fmt.Errorf("it says that it is %s", sessionDir(rec.Number, rec.Slug))
	}
	if err != nil {
		return found{dir: dir, lost: &CorruptError{name, err}}, nil
	}
	return found{dir: dir, rec: rec}, nil
}

// abandoned tells an allocation that a crash cut short from a session that lost its
// session.json: the former has nothing in it.
func (b *binder) abandoned(dir string) (found, error) {
	name := path.Join(sessionsDir, dir)
	files, err := b.FS.ReadDir(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found{}, fmt.Errorf("notes: %w", err)
	}
	if err != nil {
		return found{dir: dir, lost: &CorruptError{name, errors.New("the directory is missing")}}, nil
	}
	if hasNotes(files) {
		return found{dir: dir, lost: &CorruptError{name, errors.New("session.json is missing")}}, nil
	}
	return found{}, nil
}
