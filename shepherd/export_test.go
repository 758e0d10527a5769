package shepherd

import "github.com/pi-shepherd/go-shepherd/notes"

// NoteStatus is the one translation of how a prompt ended into where its note stands.
func NoteStatus(s Status) notes.Status { return noteStatus[s] }
