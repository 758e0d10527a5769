//go:build !unix

package headless

import (
	"os"
	"os/exec"
)

// Where there are no process groups the agent's own process is all that can be stopped; a
// pi takes its tools' processes with it when its input is closed.

func ownGroup(*exec.Cmd) {}

func terminateGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

func killRest(int) {}

func killedBy(*os.ProcessState) (int, string) { return 0, "" }
