package herdr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// reach makes sure that a server is there that is new enough. A newer one than was tried is
// never refused.
func (h *Herdr) reach(ctx context.Context) error {
	h.serverMu.Lock()
	defer h.serverMu.Unlock()
	if h.noSock != nil {
		return h.noSock
	}
	if h.serverOK.Load() {
		return nil
	}
	p, err := h.ping(ctx)
	if errors.Is(err, ErrNotRunning) && h.o.StartServer {
		if err = h.startServer(ctx); err == nil {
			p, err = h.ping(ctx)
		}
	}
	if err != nil {
		return err
	}
	if p.Protocol < minProtocol {
		return &TooOldError{p.Version, p.Protocol}
	}
	if p.Protocol > testProtocol {
		h.o.Logger.Warn("this Herdr is newer than what was tried", "version", p.Version, "protocol", p.Protocol, "tried", testProtocol)
	}
	h.serverOK.Store(true)
	return nil
}

// lost: who is at the socket has to be asked again.
func (h *Herdr) lost() { h.serverOK.Store(false) }

func (h *Herdr) ping(ctx context.Context) (p pong, err error) {
	err = h.client.call(ctx, "ping", none{}, &p)
	return p, err
}

// startServer starts a server that belongs to nobody: in a session of its own, so that it
// does not end with the terminal, and without what names this process. It returns once the
// server answers. Herdr itself sees to it that there is only one.
func (h *Herdr) startServer(ctx context.Context) error {
	const patience = 5 * time.Second
	program, err := exec.LookPath(cmp.Or(os.Getenv("HERDR_BIN_PATH"), "herdr"))
	if err != nil {
		return fmt.Errorf("%w, and none can be started: %w", ErrNotRunning, err)
	}
	cmd := exec.Command(program, "server")
	if h.o.Session != "" && h.o.Socket == "" {
		cmd.Args = []string{program, "--session", h.o.Session, "server"}
	}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HERDR_") && !strings.HasPrefix(kv, "SHEPHERD_") && !strings.HasPrefix(kv, "PI_SESSION_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if h.o.Session == "" || h.o.Socket != "" {
		cmd.Env = append(cmd.Env, "HERDR_SOCKET_PATH="+h.client.socket)
	}
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w, and it cannot be started: %w", ErrNotRunning, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the server, which may outlive us
	h.o.Logger.Info("started a Herdr server", "pid", cmd.Process.Pid, "socket", h.client.socket)

	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: a started server did not answer within %v", ErrNotRunning, patience))
	defer cancel()
	for {
		if err := h.client.call(ctx, "session.snapshot", none{}, nil); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%w: a started server has ended at once: %v", ErrNotRunning, err)
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
