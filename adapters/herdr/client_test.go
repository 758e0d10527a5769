package herdr

import (
	"bufio"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
)

func fakeClient(t *testing.T) (*herdrtest.Server, *client) {
	s := herdrtest.Start(t, herdrtest.Options{})
	return s, newClient(s.Socket, 300*time.Millisecond)
}

func TestCall_OfAServerThatIsNotThere(t *testing.T) {
	is := is.New(t)
	c := newClient(filepath.Join(t.TempDir(), "none"), time.Second)
	err := c.call(t.Context(), "ping", none{}, nil)
	is.True(errors.Is(err, ErrNotRunning))
	is.True(strings.Contains(err.Error(), "none")) // says where

	socket := filepath.Join(t.TempDir(), "dead") // a file without a server
	l, err := net.Listen("unix", socket)
	is.NoErr(err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	is.True(errors.Is(newClient(socket, time.Second).call(t.Context(), "ping", none{}, nil), ErrNotRunning))
}

func TestCall_ThatIsRefused_IsATypedError(t *testing.T) {
	is := is.New(t)
	_, c := fakeClient(t)
	var e *Error
	is.True(errors.As(c.call(t.Context(), "pane.get", paneParams{"w9:p9"}, nil), &e))
	is.Equal(*e, Error{Method: "pane.get", Code: "pane_not_found", Message: "pane w9:p9 not found", ID: e.ID})
	// What was not understood is answered without its id.
	is.True(errors.As(c.call(t.Context(), "no.such", none{}, nil), &e))
	is.Equal(e.Code, "invalid_request")
	is.Equal(e.ID, "")
}

// C46: each call ends by its own limit or its context.
func TestCall_ThatIsNotAnswered_EndsInTime(t *testing.T) {
	for name, fault := range map[string]herdrtest.Fault{
		"never answered": herdrtest.Hang, "half a line": herdrtest.HalfLine,
		"hung up on": herdrtest.Drop, "done, and hung up on": herdrtest.DoneButDrop,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			s, c := fakeClient(t)
			s.Fail("ping", 1, fault)
			err := c.call(t.Context(), "ping", none{}, nil)
			is.True(errors.Is(err, ErrNoAnswer)) // what it asked for may have happened
			is.NoErr(c.call(t.Context(), "ping", none{}, nil))
		})
	}
}

func TestCall_EndsWithItsContext(t *testing.T) {
	is := is.New(t)
	s, c := fakeClient(t)
	c.timeout = time.Hour
	s.Fail("ping", 1, herdrtest.Hang)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for s.Requests()["ping"] == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	err := c.call(ctx, "ping", none{}, nil)
	is.True(errors.Is(err, context.Canceled))
	is.True(errors.Is(err, ErrNoAnswer))
}

func TestCall_WithoutANewlineAtTheEnd_IsAnswered(t *testing.T) {
	is := is.New(t)
	s, c := fakeClient(t)
	s.Fail("ping", 1, herdrtest.NoNewline)
	var p pong
	is.NoErr(c.call(t.Context(), "ping", none{}, &p))
	is.Equal(p.Protocol, 20)
}

// The server hangs up on more than 1 MiB, without a word; so it is never sent.
func TestCall_AboveTheLineLimit_IsRefusedBeforeItIsSent(t *testing.T) {
	is := is.New(t)
	s, c := fakeClient(t)
	err := c.call(t.Context(), "agent.prompt", promptParams{"w1:p1", strings.Repeat("x", 1<<20)}, nil)
	is.True(errors.Is(err, ErrTooLong))
	is.Equal(s.Requests()["agent.prompt"], 0)

	fits, err := encode(request{"s1", "agent.prompt", promptParams{"w1:p1", strings.Repeat("<&>", 300<<10)}})
	is.NoErr(err) // 900 KiB of what HTML would escape
	is.True(len(fits) < 1<<20)
}

func TestAnswer_LongerThanAnySensibleOne_IsRefused(t *testing.T) {
	is := is.New(t)
	endless := bufio.NewReader(endlessly{})
	is.True(errors.Is(answer(t.Context(), endless, "ping", "1", nil), ErrNoAnswer))
}

type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// The socket is found where Herdr's own programs find it.
func TestSocketPath(t *testing.T) {
	home := map[string]string{"HOME": "/h"}
	xdg := map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}
	for name, tt := range map[string]struct {
		session string
		env     map[string]string
		want    string
	}{
		"below home":                  {"", home, "/h/.config/herdr/herdr.sock"},
		"below XDG's":                 {"", xdg, "/x/herdr/herdr.sock"},
		"an empty XDG is none":        {"", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config/herdr/herdr.sock"},
		"the variable, verbatim":      {"", map[string]string{"HERDR_SOCKET_PATH": "rel/./s", "HERDR_SESSION": "a"}, "rel/./s"},
		"a session":                   {"", map[string]string{"HOME": "/h", "HERDR_SESSION": "a.b-c_9"}, "/h/.config/herdr/sessions/a.b-c_9/herdr.sock"},
		"the default session by name": {"", map[string]string{"HOME": "/h", "HERDR_SESSION": "default"}, "/h/.config/herdr/herdr.sock"},
		"a session that is none":      {"", map[string]string{"HOME": "/h", "HERDR_SESSION": "../x"}, "/h/.config/herdr/herdr.sock"},
		"a choice is above all":       {"mine", map[string]string{"HOME": "/h", "HERDR_SOCKET_PATH": "/s", "HERDR_SESSION": "a"}, "/h/.config/herdr/sessions/mine/herdr.sock"},
		"a choice that is none":       {"a/b", home, ""},
		"two dots":                    {"..", home, ""},
		"too long":                    {strings.Repeat("a", 65), home, ""},
		"nothing to go by":            {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := socketPath(tt.session, func(name string) string { return tt.env[name] })
			is.Equal(got, tt.want)
			is.Equal(err != nil, tt.want == "")
		})
	}
}
