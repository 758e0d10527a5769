package aferofs_test

import (
	"os/signal"
	"syscall"
)

func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }

func mountSmall(dir string) error { return syscall.Mount("none", dir, "tmpfs", 0, "size=256k") }

func unmount(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }
