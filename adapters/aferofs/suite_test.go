package aferofs_test

import (
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

func TestFS_OnDisk(t *testing.T)       { notestest.TestFS(t, disk) }
func TestFS_InMemory(t *testing.T)     { notestest.TestFS(t, memory) }
func TestSessions_OnDisk(t *testing.T) { notestest.TestSessions(t, disk) }
func TestSessions_InMemory(t *testing.T) {
	notestest.TestSessions(t, memory)
}

func disk(t *testing.T) func() notes.FS {
	dir := t.TempDir()
	return func() notes.FS { return aferofs.OS(dir) }
}

func memory(*testing.T) func() notes.FS {
	first := aferofs.Memory()
	return func() notes.FS { return first.View() }
}
