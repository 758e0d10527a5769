//go:build !unix

package headlesstest

import "os/exec"

func detach(*exec.Cmd) {}
