package notes

import (
	"encoding/json"
	"fmt"
	"time"
)

// entry is a note in session.json: one line of it.
type entry struct {
	File      string // the note's file name, a plain one
	Agent     string
	Slug      string // what the agent's name became
	Ordinal   int    // counts the agent's notes; never used twice
	Step      int    // notes reserved together share one; they follow each other in the flow
	Label     string
	Task      string // shortened
	Mode      string
	Status    Status
	PromptID  string
	AgentID   string
	Pane      string
	Reserved  moment
	Started   moment
	Completed moment

	ReturnCode *int
	Error      string // shortened; the note has it whole
	Inferred   bool

	LateStatus Status // an ending after the ending (ruling R12)
	LateCode   *int
	LateAt     moment

	Owner string // the process that looks after the note; see owner.go
	Seal  string // marks the section that we write at the note's end; see section.go

	others object // members written by somebody who knows more
	raw    []byte // the entry as it stands in session.json; set by encode
	view   *lines // the entry as it stands in shepherd.md; made when needed
}

func (e *entry) fields() []field {
	return []field{
		{"file", &e.File, true},
		{"agent", &e.Agent, true},
		{"slug", &e.Slug, true},
		{"ordinal", &e.Ordinal, true},
		{"step", &e.Step, false},
		{"label", &e.Label, false},
		{"task", &e.Task, false},
		{"mode", &e.Mode, true},
		{"status", &e.Status, true},
		{"promptId", &e.PromptID, false},
		{"agentId", &e.AgentID, false},
		{"pane", &e.Pane, false},
		{"reservedAt", &e.Reserved, false},
		{"startedAt", &e.Started, false},
		{"completedAt", &e.Completed, false},
		{"returnCode", &e.ReturnCode, false},
		{"error", &e.Error, false},
		{"inferred", &e.Inferred, false},
		{"lateStatus", &e.LateStatus, false},
		{"lateReturnCode", &e.LateCode, false},
		{"lateAt", &e.LateAt, false},
		{"owner", &e.Owner, false},
		{"seal", &e.Seal, false},
	}
}

func decodeEntry(raw []byte) (*entry, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	e := &entry{raw: raw}
	if e.others, err = o.read(e.fields()); err != nil {
		return nil, err
	}
	switch {
	case !validNoteFile(e.File):
		return nil, fmt.Errorf("%q is not the name of a note", e.File)
	case e.Agent == "" || e.Ordinal < 1 || e.Slug == "":
		return nil, fmt.Errorf("%s: agent, slug or ordinal missing", e.File)
	}
	return e, nil
}

// with returns a changed copy, encoded.
func (e *entry) with(change func(*entry)) *entry {
	c := *e
	change(&c)
	c.encode()
	return &c
}

func (e *entry) encode() {
	e.raw = collect(e.fields(), e.others).appendCompact(nil)
	e.view = nil
}

// moment is a time as our files have it: UTC, to the millisecond.
type moment struct{ time.Time }

const momentFormat = "2006-01-02T15:04:05.000Z"

func at(t time.Time) moment { return moment{t.UTC().Truncate(time.Millisecond)} }

func (m moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.UTC().Format(momentFormat)
}

// MarshalJSON writes the time as a string.
func (m moment) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }

// UnmarshalJSON reads any RFC 3339 time.
func (m *moment) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, text)
	if text == "" {
		t, err = time.Time{}, nil
	}
	m.Time = t.UTC()
	return err
}
