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
	err = unix.Renameat2(fd, oldname, fd, newname, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL { // this file system cannot
		return os.NewSyscallError("renameat2", unix.ENOTSUP)
	}
	return err
}
