//go:build !linux && !darwin

package aferofs

import (
	"errors"
	"os"
)

// renameExclusive is not to be had here.
func renameExclusive(*os.Root, string, string) error { return errors.ErrUnsupported }
