package headless

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// killMarked kills every process with mark ("NAME=value") in its environment. pi runs its
// shell tools in sessions of their own, where no signal to pi's group reaches them; killed
// the hard way, pi leaves them behind.
func killMarked(mark string) {
	const rounds = 10 // a process that is killed may just have started another
	for range rounds {
		if !killMarkedOnce(mark) {
			return
		}
	}
}

func killMarkedOnce(mark string) (found bool) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		p, err := os.FindProcess(pid) // holds on to this very process
		if err != nil {
			continue
		}
		if carries(dir, mark) && p.Kill() == nil {
			found = true
		}
		_ = p.Release()
	}
	return found
}

// carries reports whether the process has the mark. The environment of others' processes
// cannot be read, and that of one which has ended is empty.
func carries(dir, mark string) bool {
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == mark {
			return true
		}
	}
	return false
}
