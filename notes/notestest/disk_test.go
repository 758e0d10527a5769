package notestest_test

import (
	"testing"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

func TestDisk(t *testing.T) {
	notestest.TestFS(t, func(*testing.T) func() notes.FS {
		d := notestest.NewDisk()
		return func() notes.FS { return d.View() }
	})
}

func TestDisk_Sessions(t *testing.T) {
	notestest.TestSessions(t, func(*testing.T) func() notes.FS {
		d := notestest.NewDisk()
		return func() notes.FS { return d.View() }
	})
}
