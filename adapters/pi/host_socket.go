package pi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrSocketInUse: another host listens at the path.
var ErrSocketInUse = errors.New("pi: a host listens there already")

// greeting is how long a client may take to say hello before its place goes to the next.
const greeting = 10 * time.Second

// ServeSocket is [Serve] for a host that runs already when pi starts: it listens on a unix
// socket until ctx ends, and serves one pi at a time; a second one is refused with a clear
// error. The extension finds it by SHEPHERD_PI_SOCKET and SHEPHERD_PI_TOKEN in its
// environment. The socket's directory is made if it is missing and has to be private, as the
// socket is. o.In and o.Out are not used. Errors to match: [ErrSocketInUse].
func ServeSocket(ctx context.Context, path, token string, o ServeOptions) error {
	if token == "" {
		return errors.New("pi: a socket needs a token")
	}
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	ln, err := listenPrivately(path)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	defer ln.Close()

	var served sync.WaitGroup
	defer served.Wait()
	busy := make(chan struct{}, 1)
	for {
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pi: listen on %s: %w", path, err)
		}
		served.Go(func() {
			select {
			case busy <- struct{}{}:
				defer func() { <-busy }()
			case <-time.After(patience):
				refuse(conn, "this host serves another pi already")
				return
			}
			mine := o
			mine.In, mine.Out = conn, conn
			if err := serve(ctx, mine, token); err != nil {
				o.Logger.Error("a parent was not closed cleanly", "err", err)
			}
		})
	}
}

// patience is for the pi that comes right after another: that one's end takes a moment.
const patience = 2 * time.Second

// refuse says why in the protocol's own words and hangs up.
func refuse(conn net.Conn, why string) {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":%q}}`+"\n", why)
	_ = conn.Close()
}

// listenPrivately listens where nobody else may look. A socket that a dead host has left
// behind is replaced.
func listenPrivately(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("pi: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("pi: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("pi: %s is open to others (mode %04o); a private directory is needed", dir, perm)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %s", ErrSocketInUse, path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("pi: %s exists and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("pi: %w", err)
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("pi: listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("pi: %w", err), ln.Close())
	}
	return ln, nil
}
