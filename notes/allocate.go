package notes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// allocate makes the parent's session, under the lock of all sessions. Whoever comes second
// finds the first one's.
func (b *binder) allocate(ctx context.Context) (found, error) {
	if err := b.FS.MkdirAll(pointersDir); err != nil {
		return found{}, fmt.Errorf("notes: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, b.LockTimeout)
	defer cancel()
	unlock, err := lock(ctx, b.FS, path.Join(sessionsDir, lockFile), sessionsDir)
	if err != nil {
		return found{}, err
	}
	defer func() {
		if err := unlock(); err != nil {
			b.Logger.Warn("notes: unlock failed", "lock", sessionsDir, "error", err)
		}
	}()
	f, err := b.lookup()
	if err != nil || f.rec != nil {
		return f, err
	}
	known, err := survey(b.FS)
	if err != nil {
		return found{}, err
	}
	if other, err := b.among(known); err != nil || other.rec != nil {
		return other, err
	}
	return b.create(ctx, known, f)
}

// among looks for the parent's session among all that are known, for the case that its
// pointer was lost, and mends the pointer.
func (b *binder) among(known *directory) (found, error) {
	for _, dir := range known.of(b.hash) {
		f, err := b.inspect(dir)
		if err != nil {
			return f, err
		}
		if f.rec != nil {
			return f, writePointer(b.FS, b.hash, dir)
		}
	}
	return found{}, nil
}

// create makes a new session under the next number. Each step survives a crash before the
// next one begins, and session.json is the last: without it the directory is no session.
func (b *binder) create(ctx context.Context, known *directory, old found) (found, error) {
	if old.lost != nil {
		b.Logger.Error("notes: session not attached, a new one is allocated", "session", old.dir, "error", old.lost)
	}
	rec := b.record(old)
	for rec.Number = known.last() + 1; ; rec.Number++ {
		err := b.FS.Mkdir(path.Join(sessionsDir, sessionDir(rec.Number, rec.Slug)))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return found{}, fmt.Errorf("notes: allocate a session: %w", err)
		}
	}
	f := found{dir: sessionDir(rec.Number, rec.Slug), rec: rec, made: true}
	dir := path.Join(sessionsDir, f.dir)
	rec.locate(b.FS, dir)
	known.add(f.dir, b.hash)
	if err := known.save(b.FS); err != nil {
		b.Logger.Warn("notes: list of sessions not written", "error", err)
	}
	if err := writePointer(b.FS, b.hash, f.dir); err != nil {
		return found{}, err
	}
	return f, b.initialize(ctx, dir, rec)
}

// initialize writes the files of a new session, under its lock, because as soon as
// session.json is there others may work in it.
func (b *binder) initialize(ctx context.Context, dir string, rec *record) error {
	unlock, err := lock(ctx, b.FS, path.Join(dir, lockFile), dir)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	rec.raw = rec.encode()
	if err := b.FS.Create(path.Join(dir, recordFile), rec.raw); err != nil {
		return fmt.Errorf("notes: allocate a session: %w", err)
	}
	if err := derive(b.FS, path.Join(dir, indexFile), rec.fieldnotes()); err != nil {
		b.Logger.Warn("notes: index not written", "session", dir, "error", err)
	}
	return nil
}

// record is that of a new session, but for its place.
func (b *binder) record(old found) *record {
	now := at(b.Now())
	r := &record{
		Version: Version,
		Parent: binding{
			Identity: hashPrefix + b.hash, BoundAt: now, Ephemeral: b.id.ephemeral(),
		},
		Name: b.SessionName, Started: now, Updated: now, Status: SessionOpen,
	}
	if r.Name == "" {
		r.Name = "shepherd-" + redact(b.hash)
	}
	r.Slug = slugOr(r.Name, maxSessionSlug, "session")
	if old.lost != nil {
		r.Recovered = []json.RawMessage{marshal(recovery{old.dir, reason(old.lost)})}
	}
	_ = r.index() // no notes, no error
	return r
}

func reason(err error) string {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return corrupt.Err.Error()
	}
	return err.Error()
}
