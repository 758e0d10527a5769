package notes

import (
	"errors"
	"fmt"
)

// Errors that a caller may branch on, always wrapped with the path they are about.
var (
	// ErrNewerVersion: the session was written by a newer version of this library. It is
	// left as it is; a newer build can go on with it (ruling R18).
	ErrNewerVersion = errors.New("notes: written by a newer version")
	// ErrSessionGone: the session's directory or its session.json was removed while it was
	// in use. Nothing is written elsewhere and no number takes its place (ruling R19).
	ErrSessionGone = errors.New("notes: the session is gone")
	// ErrLocked: somebody else has held a lock for longer than Config.LockTimeout.
	ErrLocked = errors.New("notes: locked by another process")
	// ErrOutcomeUnknown: the write had begun when ctx ended, and the disk has not answered
	// since. It may still come through.
	ErrOutcomeUnknown = errors.New("notes: outcome unknown")
	// ErrInvalid: an argument cannot be used as it is; the message says which and why.
	ErrInvalid = errors.New("notes: invalid argument")
	// ErrUnknownNote: the session has no such note.
	ErrUnknownNote = errors.New("notes: unknown note")
	// ErrOwned: another living process looks after the note.
	ErrOwned = errors.New("notes: another process looks after the note")
	// ErrBound: this parent has a session in this project already.
	ErrBound = errors.New("notes: the parent is bound already")
	// ErrEdited: the final output in a note was changed by hand and cannot be given back
	// exactly.
	ErrEdited = errors.New("notes: the final output was edited")
)

// CorruptError is about a session that was not attached, because what is on disk is not
// what a session writes. Its files are left as they are (ruling R17).
type CorruptError struct {
	Path string // relative to the project, slash-separated
	Err  error  // what is wrong
}

func (e *CorruptError) Error() string { return fmt.Sprintf("notes: corrupt %s: %v", e.Path, e.Err) }

func (e *CorruptError) Unwrap() error { return e.Err }
