//go:build unix && !linux

package herdrtest

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground is the process group that the terminal belongs to.
func foreground(tty *os.File) (group int) {
	conn, err := tty.SyscallConn() // and not Fd, which would make reading uninterruptible
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { group, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	return group
}

// Without /proc the group's leader has to do.
func membersOf(group int) []int { return []int{group} }
func sessionOf(int) []int       { return nil }
func nameOf(int) string         { return "" }
