package herdr

import (
	"fmt"
	"path/filepath"
	"strings"
)

// socketPath finds the server's socket as Herdr's own programs do: a session that was asked
// for, HERDR_SOCKET_PATH, HERDR_SESSION, the default session. os.UserConfigDir is not used:
// Herdr's directory is below ~/.config on a Mac too.
func socketPath(session string, getenv func(string) string) (string, error) {
	if session == "" {
		if p := getenv("HERDR_SOCKET_PATH"); p != "" {
			return p, nil
		}
		if session = getenv("HERDR_SESSION"); !validSession(session) {
			session = "default"
		}
	} else if !validSession(session) {
		return "", fmt.Errorf("herdr: %q cannot be the name of a session: 1 to 64 of A-Z a-z 0-9 . _ - are", session)
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("herdr: no socket to be found: neither HERDR_SOCKET_PATH, XDG_CONFIG_HOME nor HOME is set")
		}
		dir = filepath.Join(home, ".config")
	}
	dir = filepath.Join(dir, "herdr")
	if session != "default" {
		dir = filepath.Join(dir, "sessions", session)
	}
	return filepath.Join(dir, "herdr.sock"), nil
}

func validSession(name string) bool {
	return name != "" && len(name) <= 64 && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
	})
}
