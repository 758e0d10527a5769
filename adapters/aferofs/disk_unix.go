//go:build unix

package aferofs

import (
	"errors"
	"io/fs"
	"strconv"
	"syscall"
)

// nonblock keeps an open from waiting at a pipe that has taken the place of a file.
const nonblock = syscall.O_NONBLOCK

// nofollow refuses a link as the last component of a path.
const nofollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncDir waits until the names in a directory are on the disk.
func syncDir(d dir) error {
	file, err := d.Open(".")
	if err != nil {
		return err
	}
	defer file.Close()
	err = file.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // a file system that does not know this sync does not need it
	}
	return err
}

func inode(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(s.Ino), 36)
	}
	return ""
}
