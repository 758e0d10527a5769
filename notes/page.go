package notes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Pages keep a transaction small. session.json is written whole, so it has only the newest
// entries in it. Older ones that have ended stand in pages: files that are written once, each
// named after its place and its content. session.json names the pages in order, so it alone
// still says what the session has, and a page that it does not name means nothing.

// pageRows is how many entries a page gets. session.json keeps as many at least, and has
// less than twice as many unless old notes are still open. Tests change it.
var pageRows = 64

// page is a page that session.json names.
type page struct {
	name string
	rows int
}

// MarshalJSON writes the page's name.
func (p page) MarshalJSON() ([]byte, error) { return json.Marshal(p.name) }

// UnmarshalJSON reads the page's name, which must be a plain one.
func (p *page) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &p.name); err != nil {
		return err
	}
	if base, ok := strings.CutSuffix(p.name, ".json"); !ok || !validName(base) || p.name == recordFile {
		return fmt.Errorf("%q is not the name of a page", p.name)
	}
	return nil
}

func pageName(place int, data []byte) string {
	return fmt.Sprintf("notes-%04d-%s.json", place, shortHash(string(data)))
}

// pageReader reads a page of the record that is being decoded.
type pageReader func(name string) ([]byte, error)

func pagesIn(fsys FS, dir string) pageReader {
	return func(name string) ([]byte, error) { return fsys.ReadFile(dir + "/" + name) }
}

// unreadable is about a page that cannot be read now. What it says is not known, so the
// session is not corrupt.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// read returns the entries of a page.
func (p page) read(read pageReader) ([]*entry, error) {
	data, err := read(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing", p.name)
	case err != nil:
		return nil, unreadable{fmt.Errorf("%s: %w", p.name, err)}
	}
	_, rows, ok := splitRows(data)
	if !ok { // not our layout
		o, err := parseObject(data)
		if err == nil {
			rows, err = o.rows()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	entries := make([]*entry, len(rows))
	for i, row := range rows {
		if entries[i], err = decodeEntry(row); err != nil {
			return nil, fmt.Errorf("%s: notes[%d]: %w", p.name, i, err)
		}
	}
	return entries, nil
}

// readPages fills in the entries that stand in pages. Those that prev has are taken from it.
func (r *record) readPages(prev *record, read pageReader) (err error) {
	same := prev != nil
	for i := range r.pages {
		p := &r.pages[i]
		var entries []*entry
		if same = same && i < len(prev.pages) && prev.pages[i].name == p.name; same {
			from := len(r.notes)
			entries = prev.notes[from : from+prev.pages[i].rows]
		} else if entries, err = p.read(read); err != nil {
			return err
		}
		p.rows = len(entries)
		r.notes = append(r.notes, entries...)
	}
	return nil
}

// paged is how many entries stand in pages: the first ones.
func (r *record) paged() (n int) {
	for _, p := range r.pages {
		n += p.rows
	}
	return n
}

// unpage takes the entries from the i-th on back into session.json, since they change.
func (r *record) unpage(i int) {
	for r.paged() > i {
		r.pages = r.pages[:len(r.pages)-1]
	}
	if len(r.pages) == 0 {
		r.pages = nil
	}
}

// turnPages moves entries that have ended into pages, which are durable before session.json
// names them. If that fails they stay where they are, and the next transaction tries again.
func (t *tx) turnPages() {
	r := t.rec
	for first := r.paged(); len(r.notes)-first >= 2*pageRows; first += pageRows {
		rows := r.notes[first : first+pageRows]
		if slices.ContainsFunc(rows, func(e *entry) bool { return !e.Status.Final() }) {
			return
		}
		data := appendRows([]byte("{"), rows)
		name := pageName(len(r.pages)+1, data)
		if err := t.makePage(name, data); err != nil {
			t.s.log.Warn("notes: page not written", "session", t.s.dir, "page", name, "error", err)
			return
		}
		r.pages = append(r.pages, page{name, pageRows})
	}
}

// makePage writes a page, or finds it: a transaction that failed may have left it.
func (t *tx) makePage(name string, data []byte) error {
	err := t.s.fs.Create(t.s.rel(name), data)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, readErr := t.s.fs.ReadFile(t.s.rel(name))
	if readErr != nil || !bytes.Equal(there, data) {
		return errors.Join(err, readErr)
	}
	return nil
}
