//go:build unix

package herdr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/adapters/pi"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

// The live suite: a real Herdr from PATH, with directories of its own, so that neither the
// user's sessions nor settings are touched.
//
//	go test ./adapters/herdr -run Live -v

// liveServer is a `herdr server` of one test.
type liveServer struct {
	t      *testing.T
	dir    string
	socket string
	bin    string // a directory to put agents into
	cmd    *exec.Cmd
	ended  chan struct{}
}

const liveConfig = `onboarding = false
[update]
version_check = false
manifest_check = false
[session]
resume_agents_on_restore = false
[terminal]
default_shell = "/bin/sh"
`

func live(t *testing.T) *liveServer {
	t.Helper()
	if _, err := exec.LookPath("herdr"); err != nil {
		t.Skip("no herdr on PATH: the live suite needs the real one; everything else runs on herdrtest's")
	}
	for _, name := range []string{"HERDR_ENV", "HERDR_SOCKET_PATH", "HERDR_CLIENT_SOCKET_PATH", "HERDR_SESSION", "HERDR_CONFIG_PATH",
		"HERDR_PANE_ID", "HERDR_TAB_ID", "HERDR_WORKSPACE_ID", "SHEPHERD_DEPTH"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "hl")
	if err != nil {
		t.Fatal(err)
	}
	s := &liveServer{t: t, dir: dir, bin: filepath.Join(dir, "bin"), socket: filepath.Join(dir, "config", "herdr", "herdr.sock")}
	for name, data := range map[string]string{"config/herdr/config.toml": liveConfig, "bin/.keep": "", "state/.keep": "", "work/.keep": ""} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	t.Cleanup(func() {
		s.stop()
		os.RemoveAll(dir)
	})
	pong, err := s.call("ping", map[string]any{})
	t.Logf("live: %s %v", pong, err)
	return s
}

func (s *liveServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("herdr", "server")
	s.cmd.Dir = filepath.Join(s.dir, "work")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HERDR_") && !strings.HasPrefix(kv, "XDG_") && !strings.HasPrefix(kv, "HOME=") {
			s.cmd.Env = append(s.cmd.Env, kv)
		}
	}
	s.cmd.Env = append(s.cmd.Env, "HOME="+s.dir, "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"),
		"XDG_STATE_HOME="+filepath.Join(s.dir, "state"), "SHELL=/bin/sh", "PS1=$ ",
		"PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	s.ended = ended
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(ended) }(s.cmd)
	s.answers()
}

// stop stops the server, whose panes end with it. After a handoff it is another process than
// the one that was started, so its socket says when it has ended.
func (s *liveServer) stop() {
	_, _ = s.call("server.stop", map[string]any{})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("unix", s.socket); err == nil {
			c.Close()
			continue
		}
		select {
		case <-s.ended:
			return
		default:
		}
	}
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// call is a request as anybody could send it.
func (s *liveServer) call(method string, params any) (json.RawMessage, error) {
	c, err := net.Dial("unix", s.socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	line, _ := json.Marshal(map[string]any{"id": "t", "method": method, "params": params})
	if _, err := c.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	var r struct {
		Result json.RawMessage
		Error  *struct{ Code, Message string }
	}
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, fmt.Errorf("%s: %s", r.Error.Code, r.Error.Message)
	}
	return r.Result, nil
}

// panes are the ids of all panes of the server.
func (s *liveServer) panes() (ids []string) {
	s.t.Helper()
	raw, err := s.call("pane.list", map[string]any{})
	if err != nil {
		s.t.Fatal(err)
	}
	var r struct {
		Panes []struct {
			PaneID string `json:"pane_id"`
		}
	}
	_ = json.Unmarshal(raw, &r)
	for _, p := range r.Panes {
		ids = append(ids, p.PaneID)
	}
	return ids
}

// program puts a program on the panes' PATH.
func (s *liveServer) program(name, script string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.bin, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

// withPi installs a real pi and returns a Herdr that uses it.
func (s *liveServer) withPi() (*herdr.Herdr, *pitest.Pi) {
	s.t.Helper()
	p := pitest.New(s.t)
	s.program("pi", fmt.Sprintf("exec '%s' '%s' \"$@\"\n", p.Program[0], p.Program[1]))
	return s.herdr(herdr.Options{Links: pi.Links(), Env: p.Env}), p
}

func (s *liveServer) herdr(o herdr.Options) *herdr.Herdr {
	s.t.Helper()
	o.Socket, o.Dir = s.socket, filepath.Join(s.dir, "work")
	o.StartTimeout = 60 * time.Second
	h := herdr.New(o)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := h.CloseAll(ctx); err != nil {
			s.t.Errorf("close all: %v", err)
		}
	})
	return h
}

func TestLive_KeepsLifecyclesContract_WithRealPi(t *testing.T) {
	s := live(t)
	lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness {
		s.t = t
		h, p := s.withPi()
		return piHarness(h, p)
	})
}

// scriptedPi is what Herdr takes for a pi: it works while its screen says so.
const scriptedPi = `stty -echo
printf 'ready\n'
while IFS= read -r line; do
	case "$line" in
	*say*) printf 'Working...\n'; sleep 1; printf '\033[2J\033[Hanswer: %s\n' "${line#*say }" ;;
	*hang*) printf 'Working...\n'; while :; do sleep 1; done ;;
	*exit*) exit 3 ;;
	esac
done
`

func TestLive_KeepsLifecyclesContract_WithoutALink(t *testing.T) {
	s := live(t)
	s.program("pi", scriptedPi)
	lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness {
		s.t = t
		return lifecycletest.Harness{
			Herdr: s.herdr(herdr.Options{}), Patience: 60 * time.Second,
			Say:  func(text string) string { return "say " + text },
			Fail: func(why string) string { return "fail " + why },
			Hang: func() string { return "hang" },
			Exit: func() string { return "exit" },
		}
	})
}

// What happens to panes and servers, and what becomes of a prompt then.
func TestLive_Faults(t *testing.T) {
	s := live(t)
	for _, test := range []struct {
		name string
		f    func(w *world)
	}{
		{"a pane moved to another workspace is followed", func(w *world) {
			scout, pane := w.start("scout")
			p := w.prompt(scout, "slow 1s moved")
			s.must("workspace.create", map[string]any{"cwd": s.dir, "label": "elsewhere"})
			space := w.panes()[len(w.panes())-1]
			space, _, _ = strings.Cut(space, ":")
			s.must("pane.move", map[string]any{"pane_id": pane, "destination": map[string]any{"type": "new_tab", "workspace_id": space}})
			w.ends(p, shepherd.StatusDone, "moved")
			w.ends(w.prompt(scout, "say again"), shepherd.StatusDone, "again")
			before := len(w.panes())
			w.NoErr(w.sh.CloseAgent(w.Context(), scout))
			w.Equal(len(w.panes()), before-1)
		}},
		{"a pane closed by hand", func(w *world) {
			scout, pane := w.start("scout")
			p := w.prompt(scout, "hang")
			s.must("pane.close", map[string]any{"pane_id": pane})
			w.endsBadly(p)
			w.NoErr(w.sh.CloseAgent(w.Context(), scout))
		}},
		{"a program that is not there", func(w *world) {
			before := w.panes()
			s.program("pi", "exit 127\n")
			_, err := w.sh.Start(w.Context(), shepherd.Spec{Name: "scout"})
			w.True(errors.Is(err, herdr.ErrStart))
			w.Equal(w.panes(), before)
		}},
		{"a live handoff", func(w *world) {
			scout, _ := w.start("scout")
			p := w.prompt(scout, "slow 3s through it all")
			s.must("server.live_handoff", map[string]any{})
			w.ends(p, shepherd.StatusDone, "through it all")
			s.answers()
			w.ends(w.prompt(scout, "say after"), shepherd.StatusDone, "after")
			before := len(w.panes())
			w.NoErr(w.sh.CloseAgent(w.Context(), scout))
			w.Equal(len(w.panes()), before-1) // it was ours still
		}},
		{"the server stops, and another one has a pane of that name", func(w *world) {
			scout, _ := w.start("scout")
			p := w.prompt(scout, "hang")
			w.state(scout, lifecycle.Working)
			s.stop()
			w.endsBadly(p)
			s.start()
			before := w.panes()
			w.NoErr(w.sh.CloseAgent(w.Context(), scout))
			w.Equal(w.panes(), before) // which is not ours
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := s.world(t)
			w.begin()
			test.f(w)
		})
	}
}

// answers waits until there is a server that answers.
func (s *liveServer) answers() {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := s.call("session.snapshot", map[string]any{}); err == nil {
			return
		} else if time.Now().After(end) {
			s.t.Fatalf("herdr server does not answer: %v", err)
		}
	}
}
