package notes

import (
	"encoding/json"
	"errors"
	"fmt"
)

// old is a session.json of the TypeScript original, or of its unbound predecessor. They are
// recognised, listed, and never attached or changed; [Migrate] alone goes on with them.
type old struct {
	Kind  Kind
	Name  string
	head  object // all of it
	notes []*entry
	bad   []string // entries that cannot be used, and why
}

// The original's list, and what is in it.
const oldList = "artifacts"

func (e *entry) oldFields() []field {
	return []field{
		{"fileName", &e.File, true},
		{"agent", &e.Agent, true},
		{"agentSlug", &e.Slug, true},
		{"ordinal", &e.Ordinal, true},
		{"mode", &e.Mode, true},
		{"task", &e.Task, false},
		{"status", &e.Status, true},
		{"promptId", &e.PromptID, false},
		{"agentId", &e.AgentID, false},
		{"reservedAt", &e.Reserved, false},
		{"startedAt", &e.Started, false},
		{"completedAt", &e.Completed, false},
	}
}

func decodeOld(data []byte, dir string) (*old, error) {
	o, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	var name, directory string
	var number int
	var rows []json.RawMessage
	s := &old{Kind: KindLegacy, head: o}
	if _, err := o.read([]field{
		{"sessionName", &name, true},
		{"directoryName", &directory, true},
		{"ordinal", &number, true},
		{oldList, &rows, true},
	}); err != nil {
		return nil, err
	}
	if name == "" || rows == nil || number < 1 {
		return nil, errNoVersion
	}
	if directory != "" && directory != dir {
		return nil, fmt.Errorf("it says that it is %s", directory)
	}
	if _, bound := o.get("artifactSessionVersion"); bound {
		s.Kind = KindTypeScript
	}
	s.Name = name
	for i, row := range rows {
		e, err := decodeOldEntry(row)
		if err != nil {
			s.bad = append(s.bad, fmt.Sprintf("%s[%d]: %v", oldList, i, err))
			continue
		}
		s.notes = append(s.notes, e)
	}
	return s, nil
}

func decodeOldEntry(row json.RawMessage) (*entry, error) {
	o, err := parseObject(row)
	if err != nil {
		return nil, err
	}
	e := &entry{}
	if _, err := o.read(e.oldFields()); err != nil {
		return nil, err
	}
	switch {
	case !validNoteFile(e.File):
		return nil, fmt.Errorf("%q is not the name of a note", e.File)
	case e.Agent == "" || e.Ordinal < 1:
		return nil, fmt.Errorf("%s: agent or ordinal missing", e.File)
	case !e.Status.Known():
		return nil, errors.New(e.File + ": unknown status " + string(e.Status))
	}
	if e.Slug == "" {
		e.Slug = slugOr(e.Agent, maxAgentSlug, "agent")
	}
	return e, nil
}

func (s *old) describe(info *SessionInfo) {
	info.Kind, info.Name = s.Kind, s.Name
	var started, updated moment
	_, _ = s.head.read([]field{{"status", &info.Status, true}, {"modes", &info.Modes, true}})
	_, _ = s.head.read([]field{{"startedAt", &started, true}, {"updatedAt", &updated, true}})
	info.Started, info.Updated = started.Time, updated.Time
	r := &record{Name: s.Name, Status: info.Status, Modes: info.Modes, Started: started, Updated: updated, notes: s.notes}
	r.describe(info)
	info.Parent = ""
	if s.Kind == KindTypeScript {
		info.Parent = s.parent().String()
	}
}

// parent is the identity of the original's parent, which it stores as it is.
func (s *old) parent() Identity {
	var raw json.RawMessage
	var id string
	_, _ = s.head.read([]field{{"parentPiSession", &raw, true}})
	if o, err := parseObject(raw); err == nil {
		_, _ = o.read([]field{{"identity", &id, true}})
	}
	return Identity(id)
}
