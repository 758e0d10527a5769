//go:build unix

package pi

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// child is a real interactive pi in a pseudo-terminal, with its link.
type child struct {
	*levels
	t     testing.TB
	link  link.Link
	model *pitest.Model
	dir   string // working directory
	keys  *os.File
	cmd   *exec.Cmd
	stop  func() // kills it and waits for its end

	mu     sync.Mutex
	screen []byte
}

const ctrlC, escape, enter = "\x03", "\x1b", "\r"

// pi 1.6.0 is what the tests run; SHEPHERD_TEST_PI names the cli.js of another one.
func newPi(t testing.TB) *pitest.Pi {
	p := pitest.New(t)
	if other := os.Getenv("SHEPHERD_TEST_PI"); other != "" {
		p.Program[1] = other
	}
	return p
}

// launch starts a child and returns once it has said hello. extra are further arguments.
func launch(t *testing.T, extra ...string) *child { return launchPi(t, newPi(t), extra...) }

func launchPi(t testing.TB, p *pitest.Pi, extra ...string) *child {
	t.Helper()
	return launchIn(t, p, t.TempDir(), extra...)
}

func launchIn(t testing.TB, p *pitest.Pi, dir string, extra ...string) *child {
	t.Helper()
	c := &child{levels: newLevels(), t: t, model: p.Model, dir: dir}
	l, err := Links().Open(t.Context(), lifecycle.Spec{Name: "scout", Label: "look around"}, c.add)
	if err != nil {
		t.Fatal(err)
	}
	c.link = l
	t.Cleanup(func() {
		if err := c.link.Close(); err != nil {
			t.Error(err)
		}
	})
	env, args := l.Launch()
	c.start(p, env, append(args, extra...))
	c.until(t, "up", up)
	return c
}

func (c *child) start(p *pitest.Pi, env map[string]string, args []string) {
	c.t.Helper()
	c.cmd = exec.Command(p.Program[0], append(p.Program[1:], args...)...)
	c.cmd.Dir = c.dir
	c.cmd.Env = environ(p, env)
	keys, err := pty.StartWithSize(c.cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		c.t.Fatal(err)
	}
	c.keys = keys
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(c, keys)
	}()
	c.stop = sync.OnceFunc(func() {
		c.kill()
		_ = c.cmd.Wait()
		keys.Close()
		<-read
	})
	c.t.Cleanup(func() {
		c.stop()
		if c.t.Failed() {
			c.t.Logf("the end of the child's screen: %q", c.shown())
		}
	})
}

// Write keeps the end of what the terminal shows.
func (c *child) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen = append(c.screen, b...)
	if over := len(c.screen) - 16<<10; over > 0 {
		c.screen = c.screen[over:]
	}
	return len(b), nil
}

func (c *child) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.screen)
}

func (c *child) kill() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

// types does what a human does: it writes into the terminal.
func (c *child) types(keys ...string) {
	c.t.Helper()
	for _, k := range keys {
		if _, err := io.WriteString(c.keys, k); err != nil {
			c.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // a human's pace: pi takes faster input for a paste
	}
}

// reload types /reload and returns once the child is back: it tells of the end of the old
// extension and of the beginning of the new one.
func (c *child) reload() {
	c.t.Helper()
	_, before, _ := c.newest()
	c.types("/reload", enter)
	c.until(c.t, "reloaded", func(link.Event) bool { _, n, _ := c.newest(); return n >= before+2 })
}

// newSession types /new and returns once the child has one.
func (c *child) newSession() {
	c.t.Helper()
	l := c.link.(*childLink)
	session := func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.session
	}
	before := session()
	c.types("/new", enter)
	c.until(c.t, "in a new session", func(link.Event) bool { return session() != before })
}

func (c *child) send(end, text string) lifecycle.PromptID {
	c.t.Helper()
	p := promptID(end)
	if err := c.link.Send(c.t.Context(), lifecycle.Submission{Prompt: p, Text: text}); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// result waits for the prompt's ending.
func (c *child) result(p lifecycle.PromptID) lifecycle.Signal {
	c.t.Helper()
	return c.until(c.t, "settled", settled(p)).Current
}

func environ(p *pitest.Pi, more map[string]string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "TMPDIR=" + os.TempDir()}
	for _, vars := range []map[string]string{p.Env, more} {
		for name, value := range vars {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// file makes a file for one test.
func file(t *testing.T, name, content string) string {
	t.Helper()
	return write(t, t.TempDir(), name, content)
}

// installed puts an extension where the user of p keeps them.
func installed(t *testing.T, p *pitest.Pi, name, source string) {
	t.Helper()
	write(t, filepath.Join(p.Env["PI_CODING_AGENT_DIR"], "extensions"), name, source)
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}
