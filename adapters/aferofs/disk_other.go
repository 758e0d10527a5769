//go:build !unix

package aferofs

import "io/fs"

const (
	nonblock = 0
	nofollow = 0
)

// syncDir does nothing: Windows has no such operation, its rename writes through.
func syncDir(dir) error { return nil }

// inode is empty: size and exact time have to do.
func inode(fs.FileInfo) string { return "" }
