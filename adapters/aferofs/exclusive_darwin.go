package aferofs

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameExclusive renames unless newname is taken.
func renameExclusive(r *os.Root, oldname, newname string) error {
	d, err := r.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	fd := int(d.Fd())
	return unix.RenameatxNp(fd, oldname, fd, newname, unix.RENAME_EXCL)
}
