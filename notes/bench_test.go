package notes_test

import (
	"testing"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// The same benchmarks run on a real disk in adapters/aferofs.

func BenchmarkNoteLife(b *testing.B)         { notestest.BenchmarkNoteLife(b, onDisk) }
func BenchmarkFinalizeTogether(b *testing.B) { notestest.BenchmarkFinalizeTogether(b, onDisk) }
func BenchmarkLookup(b *testing.B)           { notestest.BenchmarkLookup(b, onDisk) }

func onDisk(*testing.B) func() notes.FS {
	d := notestest.NewDisk()
	return func() notes.FS { return d.View() }
}
