package notes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// MigrateOptions says how far [Migrate] goes.
type MigrateOptions struct {
	// DryRun reports what would be done and changes nothing.
	DryRun bool
	// Force goes on although a lock file of the original is there. It leaves one behind
	// when it is killed, so make sure that it does not run.
	Force bool
}

// Migration says what [Migrate] did, or would do.
type Migration struct {
	Kind    Kind       // KindLegacy or KindTypeScript
	Session string     // the directory, relative to the project
	Notes   []NoteInfo // taken over
	Skipped []string   // entries that cannot be: what and why
	Backups []string   // relative to the project: what session.json and shepherd.md were
	DryRun  bool
}

const backupPrefix = ".before-migration."

// Migrate binds a session of the TypeScript original, or an unbound one of its predecessor,
// to the parent of c: afterwards [Open] resumes it, and its next notes follow those that are
// there (note-session spec, Migration). It is the only way in which such a session is ever
// touched, and it happens in place: no note is copied, moved or changed. Only session.json
// is rewritten, with everything in it that this version does not know, and the index with
// it; both are kept beside, as they were, in hidden files.
//
// dir is the name of the session's directory. Errors to match: ErrBound if the parent has
// another session in this project, ErrInvalid if dir is no session to migrate, and those of
// [Open]. If it fails nothing is bound, and it can be called again.
func Migrate(ctx context.Context, c Config, dir string, o MigrateOptions) (*Migration, error) {
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
	if !validSessionDir(dir) {
		return nil, fmt.Errorf("%w: %q is not the name of a session", ErrInvalid, dir)
	}
	b := &binder{Config: c, id: id, hash: id.hash()}
	if o.DryRun {
		m, _, err := b.plan(dir, o)
		return m, err
	}
	if err := c.FS.MkdirAll(pointersDir); err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.LockTimeout)
	defer cancel()
	unlock, err := lock(ctx, c.FS, path.Join(sessionsDir, lockFile), sessionsDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	unlockSession, err := lock(ctx, c.FS, path.Join(sessionsDir, dir, lockFile), dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlockSession() }()
	m, from, err := b.plan(dir, o)
	if err != nil {
		return nil, err
	}
	return m, b.migrate(m, from)
}

// source is a session as it was read for a migration.
type source struct {
	*old
	dir  string
	data []byte
}

// plan looks at everything that Migrate depends on, and changes nothing.
func (b *binder) plan(dir string, o MigrateOptions) (*Migration, *source, error) {
	if err := b.unbound(); err != nil {
		return nil, nil, err
	}
	info := look(b.FS, dir)
	if info.Kind != KindLegacy && info.Kind != KindTypeScript {
		return nil, nil, fmt.Errorf("%w: %s is not to be migrated: it is %s", ErrInvalid, info.RelPath, info.Kind)
	}
	for _, name := range []string{path.Join(info.RelPath, ".session.lock"), path.Join(sessionsDir, ".sessions.lock")} {
		if _, err := b.FS.ReadFile(name); !errors.Is(err, fs.ErrNotExist) && !o.Force {
			return nil, nil, fmt.Errorf("%w: %s: the original is at work, or was killed", ErrLocked, name)
		}
	}
	data, err := b.FS.ReadFile(path.Join(info.RelPath, recordFile))
	if err != nil {
		return nil, nil, fmt.Errorf("notes: %w", err)
	}
	s, err := decodeOld(data, dir)
	if err != nil {
		return nil, nil, &CorruptError{path.Join(info.RelPath, recordFile), err}
	}
	m := &Migration{Kind: info.Kind, Session: info.RelPath, Notes: info.Notes, Skipped: s.bad, DryRun: o.DryRun}
	for _, name := range []string{recordFile, indexFile} {
		m.Backups = append(m.Backups, path.Join(info.RelPath, backupPrefix+name))
	}
	return m, &source{s, dir, data}, nil
}

// unbound makes sure that the parent has no session yet.
func (b *binder) unbound() error {
	f, err := b.lookup()
	if err == nil && f.rec == nil {
		var known *directory
		known, err = survey(b.FS)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			f, err = b.among(known)
		}
	}
	if err == nil && f.rec != nil {
		err = fmt.Errorf("%w: to %s", ErrBound, path.Join(sessionsDir, f.dir))
	}
	return err
}

// migrate writes the backups, the pointer, and then session.json: with it the session is
// bound.
func (b *binder) migrate(m *Migration, from *source) error {
	rec, err := b.adopt(from)
	if err != nil {
		return err
	}
	dir := path.Join(sessionsDir, from.dir)
	for i, name := range []string{recordFile, indexFile} {
		data, err := b.FS.ReadFile(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = b.FS.Create(m.Backups[i], data)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) { // one of an earlier try is the better one
			return fmt.Errorf("notes: migrate %s: %w", dir, err)
		}
	}
	if err := writePointer(b.FS, b.hash, from.dir); err != nil {
		return err
	}
	err = b.FS.Update(path.Join(dir, recordFile), func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, from.data) {
			return nil, fmt.Errorf("%w: session.json changed meanwhile", ErrLocked)
		}
		return rec.encode(), nil
	})
	if err != nil {
		return fmt.Errorf("notes: migrate %s: %w", dir, err)
	}
	if err := derive(b.FS, path.Join(dir, indexFile), rec.fieldnotes()); err != nil {
		b.Logger.Warn("notes: index not written", "session", dir, "error", err)
	}
	if known, err := survey(b.FS); err == nil {
		known.add(from.dir, b.hash)
		_ = known.save(b.FS)
	}
	return nil
}

// adopt makes the record that continues an old session.
func (b *binder) adopt(from *source) (*record, error) {
	r := b.record(found{})
	var parent []byte
	others, err := from.head.read([]field{
		{"slug", &r.Slug, true}, {"startedAt", &r.Started, true}, {"modes", &r.Modes, true},
		{"status", new(string), true}, {"updatedAt", new(string), true},
	})
	if err == nil {
		_, err = from.head.read([]field{{"ordinal", &r.Number, true}})
	}
	if err != nil {
		return nil, err
	}
	for _, m := range others {
		switch m.key {
		case "parentPiSession":
			parent = m.raw
		case "name", "number", "path", "relativePath", "notes", "pages", "recoveredFrom":
			return nil, fmt.Errorf("%w: %s has a member %q already", ErrInvalid, from.dir, m.key)
		default:
			r.others = append(r.others, m)
		}
	}
	if o, err := parseObject(parent); err == nil {
		var was binding
		r.Parent.others, _ = o.read(was.fields())
	}
	r.Name = from.Name
	if sessionDir(r.Number, r.Slug) != from.dir {
		return nil, fmt.Errorf("%w: %s says that it is %s", ErrInvalid, from.dir, sessionDir(r.Number, r.Slug))
	}
	dir := path.Join(sessionsDir, from.dir)
	r.locate(b.FS, dir)
	for i, e := range from.notes {
		e.Step, e.Seal = i+1, newSeal()
		if e.Mode == "" {
			e.Mode = defaultMode
		}
		e.encode()
		r.notes = append(r.notes, e)
	}
	r.touch(b.Now())
	return r, r.index()
}
