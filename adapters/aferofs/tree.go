package aferofs

import (
	"crypto/rand"
	"io/fs"
	"strings"

	"github.com/spf13/afero"
)

// tree is what is below the root.
type tree interface {
	// open opens a directory. No link is followed on the way. Errors name the component
	// that they are about.
	open(name string) (dir, error)
}

// dir is one open directory: afero's methods on the names in it, and four that afero does
// not have. It may be used by one goroutine.
type dir interface {
	afero.Fs

	// Lstat is about the name itself, never about what a link points to.
	Lstat(name string) (fs.FileInfo, error)
	// OpenRegular opens a regular file for reading and refuses everything else.
	OpenRegular(name string) (afero.File, error)
	// Link gives a file a second name, exclusively: fs.ErrExist if the name is taken. The
	// first one may be gone afterwards.
	Link(oldname, newname string) error
	// Stamp is a cheap version of a regular file.
	Stamp(name string) (string, error)

	Close() error
}

// Temporary files are told by their names. What is between prefix and suffix cannot be
// guessed, so nobody can be there first with a file or link of their own.
const (
	tempPrefix = ".shepherd-"
	tempSuffix = ".tmp"
)

func tempName() string { return tempPrefix + strings.ToLower(rand.Text()) + tempSuffix }

func isTemp(base string) bool {
	return strings.HasPrefix(base, tempPrefix) && strings.HasSuffix(base, tempSuffix)
}
