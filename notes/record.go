package notes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Version is the noteSessionVersion that this package writes, and the newest it reads.
const Version = 2

// record is session.json, the truth about a session. This file is the only one that knows
// its format.
type record struct {
	Version   int
	Parent    binding
	Name      string // in full; the slug is what became of it
	Slug      string
	Number    int
	Path      string // absolute, for local diagnostics; never believed
	RelPath   string // relative to the project; never believed
	Started   moment
	Updated   moment
	Status    string
	Modes     []string
	Recovered []json.RawMessage // see recovery

	pages  []page   // where the first of notes stand
	notes  []*entry // all of them
	others object
	raw    []byte // the file as it was read, or as it was last written

	// What follows is derived from notes.
	files map[string]int       // file name → index in notes
	seqs  map[string]*sequence // agent → its notes
	slugs map[string]string    // slug → agent
	step  int                  // the newest one
}

// binding is the parent's, in session.json (note-session spec, Parent-session binding
// metadata).
type binding struct {
	Identity    string // "sha256:" and the hash
	ProjectRoot string
	BoundAt     moment
	Ephemeral   bool
	others      object
}

// recovery says that this session took the place of one that could not be read.
type recovery struct {
	Directory string `json:"directory"`
	Reason    string `json:"reason"`
}

// recoveries reads the marks of ruling R17 that the session bears.
func (r *record) recoveries() []recovery {
	var marks []recovery
	for _, raw := range r.Recovered {
		var mark recovery
		if json.Unmarshal(raw, &mark) == nil {
			marks = append(marks, mark)
		}
	}
	return marks
}

func (r *record) fields(parent *json.RawMessage) []field {
	return []field{
		{"noteSessionVersion", &r.Version, true},
		{"parentPiSession", parent, true},
		{"name", &r.Name, true},
		{"slug", &r.Slug, true},
		{"number", &r.Number, true},
		{"path", &r.Path, true},
		{"relativePath", &r.RelPath, true},
		{"startedAt", &r.Started, true},
		{"updatedAt", &r.Updated, true},
		{"status", &r.Status, true},
		{"modes", &r.Modes, false},
		{"recoveredFrom", &r.Recovered, false},
		{"pages", &r.pages, false},
	}
}

func (b *binding) fields() []field {
	return []field{
		{"identity", &b.Identity, true},
		{"projectRoot", &b.ProjectRoot, true},
		{"boundAt", &b.BoundAt, true},
		{"ephemeral", &b.Ephemeral, false},
	}
}

// errNoVersion is about a session.json that is not from this library: a legacy session, one
// of the TypeScript original, or something else altogether.
var errNoVersion = errors.New("noteSessionVersion is missing")

// decode reads a session.json and its pages. Entries whose bytes are those of prev, which may
// be nil, are taken from it. An error other than ErrNewerVersion and unreadable means that the
// session is corrupt.
func decode(data []byte, prev *record, read pageReader) (*record, error) {
	if prev != nil && bytes.Equal(data, prev.raw) {
		return prev, nil
	}
	if head, rows, ok := splitRows(data); ok {
		if r, err := decodeParts(head, rows, prev, read); err == nil {
			r.raw = data
			return r, nil
		}
	}
	o, err := parseObject(data) // not our layout, or not valid: look closely
	if err != nil {
		return nil, err
	}
	if err := checkVersion(o); err != nil {
		return nil, err
	}
	rows, err := o.rows()
	if err != nil {
		return nil, err
	}
	r, err := decodeParts(data, rows, prev, read)
	if err == nil {
		r.raw = data
	}
	return r, err
}

// rows are the notes of a record or a page in any layout, each on one line.
func (o object) rows() ([][]byte, error) {
	raw, _ := o.get("notes")
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, errors.Join(errors.New("notes is not a list"), err)
	}
	rows := make([][]byte, len(list))
	for i, row := range list {
		rows[i] = appendOneLine(nil, row)
	}
	return rows, nil
}

func checkVersion(o object) error {
	raw, ok := o.get("noteSessionVersion")
	if !ok {
		return errNoVersion
	}
	var version int
	if err := json.Unmarshal(raw, &version); err != nil || version < Version {
		return fmt.Errorf("noteSessionVersion is %s, not %d", raw, Version)
	}
	if version > Version {
		return fmt.Errorf("%w: noteSessionVersion %d, this one knows %d", ErrNewerVersion, version, Version)
	}
	return nil
}

func decodeParts(head []byte, rows [][]byte, prev *record, read pageReader) (*record, error) {
	o, err := parseObject(head)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(o); err != nil {
		return nil, err
	}
	r := &record{}
	var parent json.RawMessage
	if r.others, err = o.read(r.fields(&parent)); err != nil {
		return nil, err
	}
	for i, m := range r.others {
		if m.key == "notes" {
			r.others = append(r.others[:i:i], r.others[i+1:]...)
			break
		}
	}
	if err := r.Parent.decode(parent); err != nil {
		return nil, fmt.Errorf("parentPiSession: %w", err)
	}
	if err := r.readPages(prev, read); err != nil {
		return nil, err
	}
	for _, row := range rows {
		i := len(r.notes)
		if prev != nil && i < len(prev.notes) && bytes.Equal(prev.notes[i].raw, row) {
			r.notes = append(r.notes, prev.notes[i])
			continue
		}
		e, err := decodeEntry(bytes.Clone(row))
		if err != nil {
			return nil, fmt.Errorf("notes[%d]: %w", i, err)
		}
		r.notes = append(r.notes, e)
	}
	return r, r.index()
}

func (b *binding) decode(raw json.RawMessage) error {
	o, err := parseObject(raw)
	if err != nil {
		return err
	}
	if b.others, err = o.read(b.fields()); err != nil {
		return err
	}
	if hash, ok := strings.CutPrefix(b.Identity, hashPrefix); !ok || len(hash) != 64 {
		return errors.New("identity is not a hash")
	}
	return nil
}

const (
	rowsStart = "\n  \"notes\": [\n"
	rowsEnd   = "\n  ]\n}\n"
	noRows    = "\n  \"notes\": []\n}\n"
)

// encode writes the record: one member a line, last the notes that stand in no page, one note
// a line. Notes that did not change are copied as bytes.
func (r *record) encode() []byte {
	notes := r.notes[r.paged():]
	size := 1024 + 40*len(r.pages)
	for _, e := range notes {
		size += len(e.raw) + 6
	}
	parent := json.RawMessage(collect(r.Parent.fields(), r.Parent.others).appendCompact(nil))
	b := append(make([]byte, 0, size), '{')
	for _, m := range collect(r.fields(&parent), r.others) {
		b = append(b, "\n  "...)
		b = append(b, marshal(m.key)...)
		b = append(b, ": "...)
		b = appendOneLine(b, m.raw)
		b = append(b, ',')
	}
	return appendRows(b, notes)
}

// appendRows writes the last member of a record or a page, and its end.
func appendRows(b []byte, notes []*entry) []byte {
	if len(notes) == 0 {
		return append(b, noRows...)
	}
	b = append(b, rowsStart...)
	for i, e := range notes {
		if i > 0 {
			b = append(b, ",\n"...)
		}
		b = append(b, "    "...)
		b = append(b, e.raw...)
	}
	return append(b, rowsEnd...)
}

// splitRows takes our own layout apart without parsing it: the record without its notes,
// and each note's line.
func splitRows(data []byte) (head []byte, rows [][]byte, ok bool) {
	before, after, ok := bytes.Cut(data, []byte(rowsStart))
	if !ok {
		return nil, nil, false
	}
	body, ok := bytes.CutSuffix(after, []byte(rowsEnd))
	if !ok {
		return nil, nil, false
	}
	for line := range bytes.SplitSeq(body, []byte(",\n")) {
		row, ok := bytes.CutPrefix(line, []byte("    "))
		if !ok {
			return nil, nil, false
		}
		rows = append(rows, row)
	}
	return append(bytes.Clone(before), noRows...), rows, true
}
