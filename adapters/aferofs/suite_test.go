package aferofs_test

import (
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

func TestFS_OnDisk(t *testing.T) {
	notestest.TestFS(t, func(t *testing.T) func() notes.FS {
		dir := t.TempDir()
		return func() notes.FS { return aferofs.OS(dir) }
	})
}

func TestFS_InMemory(t *testing.T) {
	notestest.TestFS(t, func(*testing.T) func() notes.FS {
		first := aferofs.Memory()
		return func() notes.FS { return first.View() }
	})
}
