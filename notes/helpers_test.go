package notes_test

import (
	"path"
	"testing"

	"github.com/pi-shepherd/go-shepherd/notes"
)

func open(t testing.TB, fsys notes.FS, parent string) *notes.Session {
	t.Helper()
	s, err := notes.Open(t.Context(), notes.Config{FS: fsys, Parent: notes.Identity(parent)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func reserve(t testing.TB, s *notes.Session, agent string) *notes.Note {
	t.Helper()
	n, err := s.Reserve(t.Context(), notes.Plan{Agent: agent, Start: true})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func finalize(t testing.TB, n *notes.Note, o notes.Outcome) {
	t.Helper()
	if err := n.Finalize(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, fsys notes.FS, n *notes.Note) notes.NoteView {
	t.Helper()
	v, err := notes.ReadNote(t.Context(), fsys, path.Base(path.Dir(n.RelPath())), path.Base(n.RelPath()))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
