package notes_test

import (
	"path"
	"sync"
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

// together calls f with 0 to n-1 at the same time and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-begin; f(i) })
	}
	close(begin)
	wg.Wait()
}
