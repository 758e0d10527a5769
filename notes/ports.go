package notes

import (
	"context"
	"io/fs"
)

// FS is a directory tree rooted at the project. All methods may be called from many
// goroutines and many processes at once.
//
// Names are slash-separated, relative to the root and satisfy [fs.ValidPath], so a name
// cannot leave the root; any other name is an error. A symbolic link at any component of a
// name is refused: nothing is read or written through it. Errors match [fs.ErrNotExist],
// [fs.ErrExist] and [fs.ErrPermission] where they apply, and name the path.
//
// There is no way to remove or rename: notes are never cleaned up by us.
type FS interface {
	// Root is the real path of the project's directory: absolute, links resolved. It is
	// for showing and comparing, never for building a path here.
	Root() string

	// Mkdir makes one directory whose parent exists. It is the exclusive step: of many
	// callers exactly one succeeds, the others get fs.ErrExist. When it returns nil the
	// directory survives a crash of the machine.
	Mkdir(name string) error

	// MkdirAll makes a directory and what is missing above it. Durable like Mkdir, also what
	// was there already: whoever made it may have died before it was synced.
	MkdirAll(name string) error

	// Create writes a new file, whole or not at all, for readers and for crashes. Of many
	// callers exactly one succeeds, the others get fs.ErrExist. When it returns nil the
	// file survives a crash of the machine.
	Create(name string, data []byte) error

	// Update replaces a file, whole or not at all, by what change makes of its present
	// content (nil when there is none). If somebody else changes the file between the
	// reading and the replacing, it is read again and change is called again: change must
	// have no effect but its result. An error of change is returned as it is and nothing
	// is written; returning old unchanged writes nothing. Mode bits of an existing file
	// are kept. Durable like Create.
	Update(name string, change func(old []byte) ([]byte, error)) error

	// ReadFile returns a file's content.
	ReadFile(name string) ([]byte, error)

	// ReadDir lists a directory, sorted by name. Temporary files of unfinished writes are
	// not listed.
	ReadDir(name string) ([]fs.DirEntry, error)

	// Lock takes an exclusive lock that excludes other goroutines and other processes, and
	// blocks until it has it or ctx ends. The lock is freed by the death of its holder. The
	// directory must exist: no lock makes one. The file of that name may stay behind; its
	// content means nothing. unlock may be called twice.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
}

// Deriver is an optional ability of an [FS]: to replace a file whole, for readers, without
// waiting for the disk. It is for what can be derived again from something durable. After a
// crash of the machine the file may be old, empty or missing. Without it Update is used.
type Deriver interface {
	Derive(name string, data []byte) error
}

// Stamper is an optional ability of an [FS]: a cheap version of a file (its identity, size
// and time, say). Equal stamps of one name mean equal content, so that what was decoded
// from it may be kept. Errors are those of ReadFile. Without it files are read again.
type Stamper interface {
	Stamp(name string) (string, error)
}

// Checker is an optional ability of an [FS]: to say before its first use that it cannot
// work, and why. [Open] asks it.
type Checker interface {
	Err() error
}

// ParentIdentity names the parent session that gives the orders. The same parent gives the
// same answer always, also after a restart; different parents give different ones.
type ParentIdentity interface {
	// Identity may block until ctx ends. It may be called from many goroutines.
	Identity(ctx context.Context) (Identity, error)
}
