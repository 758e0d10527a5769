//go:build !unix

package herdr

import "os/exec"

// processLives: it cannot be told here, and so it is not taken for dead.
func processLives(int) bool { return true }

func ownSession(*exec.Cmd) {}
