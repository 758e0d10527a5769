//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
)

// TestAsANewUserWould follows the README from an empty home: the program on PATH, the
// extension installed by it, and a plain pi.
func TestAsANewUserWould(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		is := is.New(t)
		program, err := host()
		is.NoErr(err)
		bin := filepath.Join(t.TempDir(), "go", "bin")
		is.NoErr(os.MkdirAll(bin, 0o755))
		is.NoErr(os.Symlink(program, filepath.Join(bin, "shepherd-pi")))
		for i, kv := range m.env {
			switch name, value, _ := strings.Cut(kv, "="); name {
			case "PATH":
				m.env[i] = "PATH=" + bin + string(os.PathListSeparator) + value
			case "SHEPHERD_PI", "SHEPHERD_CHILDREN":
				m.env[i] = "UNUSED=" // nothing is configured
			}
		}
		install := exec.Command(filepath.Join(bin, "shepherd-pi"), "-install")
		install.Env = m.env
		out, err := install.CombinedOutput()
		is.NoErr(err)
		is.True(strings.Contains(string(out), filepath.Join(envOf(m, "PI_CODING_AGENT_DIR"), "extensions", "shepherd")))

		m.plain = true // no -e
		p := m.rpc(t, "--session", m.session("main"))
		p.turn("start scout auth", "prompt 1 say it is in retry.go", "wait 1", "say ok")
		is.True(len(m.model.parent(`"text":"it is in retry.go"`)) > 0)
		is.True(len(m.model.parent("agents live in: headless processes, out of sight (this pi does not run inside Herdr)")) > 0)
	})
}

// TestAHostThatRunsAlready is reached by a socket, and serves one pi after another.
func TestAHostThatRunsAlready(t *testing.T) {
	is := is.New(t)
	m := newMachine(t, pitest.Version)
	program, err := host()
	is.NoErr(err)
	socket := filepath.Join(t.TempDir(), "run", "host")
	m.env = append(m.env, "SHEPHERD_PI_TOKEN=secret")
	serve := exec.Command(program, "-socket", socket)
	serve.Env, serve.Dir = m.env, m.project
	is.NoErr(serve.Start())
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			t.Errorf("the host: %v", err)
		}
	})
	m.env = append(m.env, "SHEPHERD_PI_SOCKET="+socket)
	for i := range 2 {
		s := m.stage(t, "main")
		g := s.gate("socket")
		id := s.watched(s.agent, g)
		s.model.open(g)
		s.gets(id)
		s.idle()
		is.Equal(s.hosts(), 0) // none of its own
		s.quit()
		is.Equal(len(delivered(t, s.main)), i+1)
	}
}
