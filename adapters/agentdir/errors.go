package agentdir

import "errors"

// ErrUnknown: no definition has the name.
var ErrUnknown = errors.New("unknown agent")

// FileError says why a file, or a whole directory, could not be used.
type FileError struct {
	Path  string // of the file or the directory
	Level Level
	Err   error

	name string // the agent whose name stays taken; "" for none
}

func (e *FileError) Error() string {
	return printable(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns what happened.
func (e *FileError) Unwrap() error { return e.Err }
