package notes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// List returns what lies among the project's sessions, ordered by number, notes included.
// It reads every session and takes no lock; ctx is looked at between two of them. No
// sessions at all is no error.
func List(ctx context.Context, fsys FS) ([]SessionInfo, error) {
	files, err := fsys.ReadDir(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	var list []SessionInfo
	for _, f := range files {
		if !f.IsDir() || !validSessionDir(f.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, look(fsys, f.Name()))
	}
	slices.SortStableFunc(list, func(a, b SessionInfo) int { return a.Number - b.Number })
	return list, nil
}

// Read returns one session by the name of its directory. It takes no lock of the session;
// to know which unfinished notes are left it asks for their owners' locks, up to 20 ms
// each. A name that is none is ErrInvalid; a missing directory matches fs.ErrNotExist.
func Read(ctx context.Context, fsys FS, dir string) (SessionInfo, error) {
	if !validSessionDir(dir) {
		return SessionInfo{}, fmt.Errorf("%w: %q is not the name of a session", ErrInvalid, dir)
	}
	files, err := fsys.ReadDir(path.Join(sessionsDir, dir))
	if err != nil {
		return SessionInfo{}, fmt.Errorf("notes: %w", err)
	}
	info := look(fsys, dir)
	known := make(map[string]bool, len(info.Notes))
	for _, n := range info.Notes {
		known[n.File] = true
	}
	for _, f := range files {
		if name := f.Name(); validNoteFile(name) && !known[name] {
			info.Strays = append(info.Strays, name)
		}
	}
	return info, info.findLeft(ctx, fsys)
}

// findLeft marks the notes that nobody looks after.
func (i *SessionInfo) findLeft(ctx context.Context, fsys FS) error {
	if i.Kind != KindSession || !slices.ContainsFunc(i.Notes, func(n NoteInfo) bool { return !n.Status.Final() }) {
		return nil
	}
	rec, err := readRecord(fsys, i.Dir)
	if err != nil {
		return nil // it changed under us; what was read stands
	}
	lives := map[string]bool{"": false}
	for j := range i.Notes {
		e := rec.find(i.Notes[j].File)
		if e == nil || e.Status.Final() || i.Notes[j].Status.Final() {
			continue
		}
		if e.Status == Detached {
			i.Notes[j].Left = true
			continue
		}
		if _, asked := lives[e.Owner]; !asked {
			if err := ctx.Err(); err != nil {
				return err
			}
			is, err := alive(ctx, fsys, i.RelPath, e.Owner)
			lives[e.Owner] = is || err != nil // who cannot be asked is not accused
		}
		i.Notes[j].Left = !lives[e.Owner]
	}
	return nil
}

// ReadNote returns one note of a session, of this version or of an older one, by the names
// of its directory and file. It takes no lock. ErrUnknownNote: the session does not list it.
func ReadNote(ctx context.Context, fsys FS, dir, file string) (NoteView, error) {
	if !validSessionDir(dir) || !validNoteFile(file) {
		return NoteView{}, fmt.Errorf("%w: %q is not the name of a note", ErrInvalid, dir+"/"+file)
	}
	if err := ctx.Err(); err != nil {
		return NoteView{}, err
	}
	info := look(fsys, dir)
	i := slices.IndexFunc(info.Notes, func(n NoteInfo) bool { return n.File == file })
	if i < 0 {
		return NoteView{}, fmt.Errorf("%w: %s", ErrUnknownNote, path.Join(info.RelPath, file))
	}
	raw, err := fsys.ReadFile(path.Join(info.RelPath, file))
	if err != nil {
		return NoteView{}, fmt.Errorf("notes: %w", err)
	}
	view := NoteView{NoteInfo: info.Notes[i], Body: string(raw), Raw: string(raw)}
	if rec, err := readRecord(fsys, dir); err == nil && rec.find(file) != nil {
		view.read(raw, rec, rec.find(file))
	}
	return view, nil
}

// read takes a note apart.
func (v *NoteView) read(raw []byte, rec *record, e *entry) {
	main, late := findSection(raw, mainSection, e.Seal), findSection(raw, lateSection, e.Seal)
	var err, lateErr error
	v.Text, err = main.output(raw, e.Seal)
	v.LateText, lateErr = late.output(raw, e.Seal)
	v.Edited = err != nil || lateErr != nil
	body := raw
	if main.ok {
		body = append(append([]byte(nil), raw[:main.start]...), raw[main.end(raw, e.Seal):]...)
	}
	v.Body = string(written(body, rec, e))
}

func readRecord(fsys FS, dir string) (*record, error) {
	rel := path.Join(sessionsDir, dir)
	data, err := fsys.ReadFile(path.Join(rel, recordFile))
	if err != nil {
		return nil, err
	}
	return decode(data, nil, pagesIn(fsys, rel))
}

// look says what a directory is. It never fails: what cannot be read is corrupt.
func look(fsys FS, dir string) SessionInfo {
	rel := path.Join(sessionsDir, dir)
	number, _ := sessionNumber(dir)
	info := SessionInfo{Dir: dir, Number: number, Name: dir, Path: absolute(fsys, rel), RelPath: rel}
	corrupt := func(err error) SessionInfo {
		info.Kind, info.Err = KindCorrupt, &CorruptError{path.Join(rel, recordFile), err}
		return info
	}
	data, err := fsys.ReadFile(path.Join(rel, recordFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if files, err := fsys.ReadDir(rel); err == nil && !hasNotes(files) {
			info.Kind = KindAbandoned
			return info
		}
		return corrupt(errors.New("session.json is missing"))
	case err != nil:
		return corrupt(err)
	}
	rec, err := decode(data, nil, pagesIn(fsys, rel))
	switch {
	case errors.Is(err, ErrNewerVersion):
		info.Kind, info.Err = KindNewer, fmt.Errorf("%s: %w", rel, err)
	case errors.Is(err, errNoVersion):
		if old, err := decodeOld(data, dir); err != nil {
			return corrupt(err)
		} else {
			old.describe(&info)
		}
	case err != nil:
		return corrupt(err)
	case sessionDir(rec.Number, rec.Slug) != dir:
		return corrupt(fmt.Errorf("it says that it is %s", sessionDir(rec.Number, rec.Slug)))
	default:
		info.Kind = KindSession
		rec.describe(&info)
	}
	return info
}

func hasNotes(files []fs.DirEntry) bool {
	return slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasSuffix(f.Name(), ".md") })
}

func (r *record) describe(info *SessionInfo) {
	info.Name, info.Status, info.Modes = r.Name, r.Status, r.Modes
	info.Parent = hashPrefix + redact(strings.TrimPrefix(r.Parent.Identity, hashPrefix))
	info.Started, info.Updated = r.Started.Time, r.Updated.Time
	for _, e := range r.notes {
		n := e.info()
		n.RelPath = path.Join(info.RelPath, e.File)
		n.Path = filepath.Join(info.Path, e.File)
		info.Notes = append(info.Notes, n)
	}
}

func (e *entry) info() NoteInfo {
	return NoteInfo{
		File: e.File, Agent: e.Agent, Ordinal: e.Ordinal, Step: e.Step, Label: e.Label, Task: e.Task,
		Mode: e.Mode, Status: e.Status, PromptID: e.PromptID, AgentID: e.AgentID, Pane: e.Pane,
		Reserved: e.Reserved.Time, Started: e.Started.Time, Completed: e.Completed.Time,
		ReturnCode: e.ReturnCode, Error: e.Error, Inferred: e.Inferred, Late: e.LateStatus,
	}
}
