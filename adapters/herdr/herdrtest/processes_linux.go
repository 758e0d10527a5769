package herdrtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

func membersOf(group int) []int  { return withStat(2, group) }
func sessionOf(leader int) []int { return withStat(3, leader) }
func nameOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}

// withStat returns the processes whose field of /proc/PID/stat, counted after the name, has
// the value.
func withStat(field, value int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(rest) > field && rest[field] == strconv.Itoa(value) && rest[0] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
