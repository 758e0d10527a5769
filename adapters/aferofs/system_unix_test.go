//go:build unix && !linux

package aferofs_test

import (
	"errors"
	"os/signal"
	"syscall"
)

func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }

func mountSmall(string) error { return errors.ErrUnsupported }

func unmount(string) {}
