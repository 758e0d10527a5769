//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
)

const herdrConfig = `onboarding = false
[update]
version_check = false
manifest_check = false
[session]
resume_agents_on_restore = false
[terminal]
default_shell = "/bin/sh"
`

// realHerdr starts a `herdr server` from PATH, with directories of its own and a pi on the
// panes' PATH. It returns its socket.
func realHerdr(t *testing.T, m *machine) string {
	t.Helper()
	if _, err := exec.LookPath("herdr"); err != nil {
		t.Skip("no herdr on PATH: the live suite needs the real one; everything else runs on herdrtest's")
	}
	dir, err := os.MkdirTemp("", "hp") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	pi := "#!/bin/sh\nexec '" + strings.Join(m.program, "' '") + "' \"$@\"\n"
	for name, file := range map[string]struct {
		data string
		mode os.FileMode
	}{"config/herdr/config.toml": {herdrConfig, 0o600}, "bin/pi": {pi, 0o700}, "state/.keep": {"", 0o600}} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file.data), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("herdr", "server")
	cmd.Dir = m.project
	for _, kv := range m.env {
		if !strings.HasPrefix(kv, "SHEPHERD_") && !strings.HasPrefix(kv, "XDG_") && !strings.HasPrefix(kv, "PATH=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"SHELL=/bin/sh", "PS1=$ ", "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "config", "herdr", "herdr.sock")
	t.Cleanup(func() {
		_, _ = herdrCall(socket, "server.stop")
		time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if pong, err := herdrCall(socket, "ping"); err == nil {
			t.Logf("live: %s", pong)
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal("herdr does not answer")
		}
	}
}

func herdrCall(socket, method string) (json.RawMessage, error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(c, `{"id":"t","method":%q,"params":{}}`+"\n", method); err != nil {
		return nil, err
	}
	var r struct{ Result json.RawMessage }
	err = json.NewDecoder(c).Decode(&r)
	return r.Result, err
}

func panes(t *testing.T, socket string) int {
	t.Helper()
	raw, err := herdrCall(socket, "pane.list")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(raw), `"pane_id"`)
}

// TestLive is TestInPanes on a real Herdr.
func TestLive(t *testing.T) {
	is := is.New(t)
	m := newMachine(t, pitest.Version)
	socket := realHerdr(t, m)
	m.env = append(slices.DeleteFunc(m.env, func(kv string) bool { return strings.HasPrefix(kv, "SHEPHERD_CHILDREN=") }),
		"HERDR_ENV=1", "HERDR_SOCKET_PATH="+socket)
	p := m.terminal(t, m.session("live"))
	p.say("start scout auth", "prompt 1 gate one", "start planner plan", "prompt 2 gate two", "watch 1 2", "say waiting")
	p.until("the watch is registered", func() bool { return len(m.model.parent("watching 2 prompts asynchronously")) > 0 })
	is.True(len(m.model.parent("agents live in: panes of Herdr")) > 0)
	there := panes(t, socket)
	is.True(there >= 2)
	m.model.open("two")
	p.until("the parent is told", func() bool { return len(m.model.parent("result of two")) > 0 })
	m.model.open("one")
	p.until("the parent is told", func() bool { return len(m.model.parent("result of one")) > 0 })
	is.Equal(len(p.told(2)), 2)
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
	p.until("the host ends", func() bool { return len(m.hosts()) == 0 })
	is.Equal(panes(t, socket), there) // left alone
	again := m.terminal(t, m.session("live"))
	again.say("call shepherd_prune {}", "say pruned")
	again.until("the orphans are closed", func() bool { return panes(t, socket) == there-2 })
}
