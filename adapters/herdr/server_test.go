//go:build unix

package herdr_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// serve is `herdr server`, when this program is called herdr: see TestMain.
func serve() {
	s := herdrtest.New(os.Getenv("HERDR_SOCKET_PATH"), herdrtest.Options{})
	_ = os.WriteFile(os.Getenv("HERDR_SOCKET_PATH")+".env", []byte(os.Getenv("SHEPHERD_HOST")), 0o600)
	if err := s.Run(); err != nil {
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	s.Stop()
	os.Exit(0)
}

func TestStartServer(t *testing.T) {
	is := is.New(t)
	outside(t)
	dir, err := os.MkdirTemp("", "hd")
	is.NoErr(err)
	defer os.RemoveAll(dir)
	bin, socket := filepath.Join(dir, "herdr"), filepath.Join(dir, "s")
	exe, err := os.Executable()
	is.NoErr(err)
	is.NoErr(os.Symlink(exe, bin))
	t.Setenv("PATH", dir)
	t.Setenv("HERDR_BIN_PATH", "")
	t.Setenv("SHEPHERD_HOST", "/sock")

	h := herdr.New(herdr.Options{Socket: socket})
	defer h.Detach()
	_, err = h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	is.True(errors.Is(err, herdr.ErrNotRunning)) // it has to be asked for

	var pid int
	h = herdr.New(herdr.Options{Socket: socket, StartServer: true, Logger: pidOf(&pid)})
	defer h.Detach()
	target, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	is.NoErr(err)
	defer func() {
		is.NoErr(syscall.Kill(pid, syscall.SIGTERM))
		for end := time.Now().Add(limit); syscall.Kill(pid, 0) == nil && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	is.NoErr(h.Close(t.Context(), target))
	is.NoErr(h.CloseAll(t.Context()))
	is.NoErr(syscall.Kill(pid, 0)) // it is not ours to stop
	session, err := unixSession(pid)
	is.NoErr(err)
	is.Equal(session, pid) // in a session of its own
	env, err := os.ReadFile(socket + ".env")
	is.NoErr(err)
	is.Equal(string(env), "") // and without what names us
}

// pidOf returns a logger that catches the process id of a started server.
func pidOf(pid *int) *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "pid" && *pid == 0 {
			*pid = int(a.Value.Int64())
		}
		return a
	}}))
}

// unixSession is the session of a process, which is led by the process of that id.
func unixSession(pid int) (int, error) {
	id, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(id), nil
}

func TestStartServer_WithoutTheProgram(t *testing.T) {
	is := is.New(t)
	outside(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HERDR_BIN_PATH", "")
	h := herdr.New(herdr.Options{Socket: filepath.Join(t.TempDir(), "s"), StartServer: true})
	defer h.Detach()
	_, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	is.True(errors.Is(err, herdr.ErrNotRunning))
}
