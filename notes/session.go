package notes

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Names in the project, slash-separated.
const (
	sessionsDir = ".shepherd/sessions"
	recordFile  = "session.json"
	lockFile    = ".lock"
)

// Session is the note session of one parent in one project. All methods may be called from
// many goroutines at once, and from many processes on one session.
//
// Methods with a ctx block until the disk has the change; ctx ends the waiting. As long as
// the change has not begun, nothing has happened then and the error is that of ctx. After
// that the outcome is waited for, at most Config.Patience longer (see [ErrOutcomeUnknown]).
// Further errors to match: [ErrSessionGone], [ErrLocked], [ErrNewerVersion],
// [*CorruptError], and those of the [FS].
type Session struct {
	fs          FS
	log         *slog.Logger
	now         func() time.Time
	lockTimeout time.Duration
	patience    time.Duration

	dir   string // ".shepherd/sessions/0007-fix-oauth-login"
	hash  string // of the parent's identity
	title string
	past  error // what was corrupt, ruling R17

	queue queue

	// Under the session's lock on disk, so only the committing goroutine has them.
	cached      *record
	cachedStamp string
	doubtful    []string // notes that may be there and that nobody has
	unsure      bool     // the last write failed and may be there, but not durably

	owner owner
}

// Name returns the session's name in full, for showing.
func (s *Session) Name() string { return s.title }

// Path returns the absolute path of the session's directory.
func (s *Session) Path() string { return absolute(s.fs, s.dir) }

// RelPath returns the session's directory relative to the project, slash-separated.
func (s *Session) RelPath() string { return s.dir }

// Recovered says what was corrupt when this session was allocated in its place, as one or
// more joined [*CorruptError]; nil for nearly all sessions.
func (s *Session) Recovered() error { return s.past }

// name is the name of the directory.
func (s *Session) name() string { return path.Base(s.dir) }

func (s *Session) rel(file string) string { return s.dir + "/" + file }

// absolute is a path for showing.
func absolute(fsys FS, name string) string {
	return filepath.Join(fsys.Root(), filepath.FromSlash(name))
}

func (r *record) corruption() error {
	var errs []error
	for _, mark := range r.recoveries() {
		errs = append(errs, &CorruptError{path.Join(sessionsDir, mark.Directory), errors.New(mark.Reason)})
	}
	return errors.Join(errs...)
}

// refresh brings a resumed session's files up to date: the paths, if the project was moved,
// and the index, if a crash left it behind. A session without notes is written once more,
// because whoever allocated it may have died, or failed, before it was durable; a note shows
// that it is.
func (s *Session) refresh(ctx context.Context, rec *record) error {
	here := *rec
	here.locate(s.fs, s.dir)
	moved := here.Parent.ProjectRoot != rec.Parent.ProjectRoot || here.Path != rec.Path || here.RelPath != rec.RelPath
	if moved || len(rec.notes) == 0 {
		return s.transact(ctx, nil, func(t *tx) error {
			t.stage(func(r *record) {
				r.locate(s.fs, s.dir)
				r.Updated.Time = r.Updated.Add(time.Millisecond)
			})
			return nil
		})
	}
	index, err := s.fs.ReadFile(s.rel(indexFile))
	if err == nil && string(index) == string(rec.fieldnotes()) {
		return nil
	}
	return s.transact(ctx, nil, func(t *tx) error {
		s.derive(t.rec)
		return nil
	})
}

// locate writes down where the session lies.
func (r *record) locate(fsys FS, dir string) {
	valid := func(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
	r.Parent.ProjectRoot, r.Path, r.RelPath = valid(fsys.Root()), valid(absolute(fsys, dir)), dir
}
