package herdr

import (
	"errors"
	"fmt"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/childenv"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Errors that a caller may branch on. Those of lifecycle are matched too, where they apply.
var (
	// ErrNotRunning: no Herdr server listens at the socket. Start one, or set
	// Options.StartServer.
	ErrNotRunning = errors.New("herdr: no server is running")
	// ErrNoAnswer: a request was sent and no answer came. What it asked for may have
	// happened.
	ErrNoAnswer = errors.New("herdr: no answer")
	// ErrTooLong: a request does not fit into the one line that Herdr reads (1 MiB).
	// Nothing was sent.
	ErrTooLong = errors.New("herdr: request too long")
	// ErrStart: the agent's program did not come up in its pane. The message has the
	// pane's last lines. Nothing is left of the launch.
	ErrStart = errors.New("herdr: the agent did not start")
	// ErrTooDeep: this process is itself an agent, as deep as agents may be (ruling R16).
	ErrTooDeep = childenv.ErrTooDeep
)

// Error is a refusal of the server. Codes are free strings; those that mean that a place
// or an agent does not exist match lifecycle.ErrAgentGone.
type Error struct {
	Method  string // of the request
	Code    string // "pane_not_found"
	Message string // the server's words
	ID      string // of the answer; a rejected subscription names the entry there
}

func (e *Error) Error() string { return fmt.Sprintf("herdr: %s: %s (%s)", e.Method, e.Message, e.Code) }

// Is maps codes to sentinels.
func (e *Error) Is(target error) bool {
	switch target {
	case lifecycle.ErrAgentGone:
		return e.gone()
	case lifecycle.ErrAgentBlocked:
		return e.Code == "agent_blocked"
	}
	return false
}

// gone: what the request is about does not exist (any more).
func (e *Error) gone() bool {
	switch e.Code {
	case "pane_not_found", "tab_not_found", "workspace_not_found", "agent_not_found", "agent_pane_not_found":
		return true
	}
	return false
}

func isGone(err error) bool { return errors.Is(err, lifecycle.ErrAgentGone) }

// hasCode reports whether err is a refusal with one of the codes.
func hasCode(err error, codes ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.Code == c {
			return true
		}
	}
	return false
}

// TooOldError: the server speaks a protocol from before what this package needs. Nothing
// was started.
type TooOldError struct {
	Version  string // the server's release, "0.7.4"
	Protocol int    // its protocol; 0: it named none
}

func (e *TooOldError) Error() string {
	return fmt.Sprintf("herdr: the server is too old: it is Herdr %s with protocol %d, and protocol %d (Herdr %s) or newer is needed; update Herdr and restart its server",
		e.Version, e.Protocol, minProtocol, minVersion)
}
