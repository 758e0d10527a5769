//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
)

// terminal is an interactive pi in a pseudo-terminal.
type terminal struct {
	*machine
	file string
	cmd  *exec.Cmd
	tty  *os.File

	mu    sync.Mutex
	out   strings.Builder
	ended chan struct{}
}

func (m *machine) terminal(t *testing.T, file string) *terminal {
	t.Helper()
	own := *m
	own.t = t
	p := &terminal{machine: &own, file: file, ended: make(chan struct{})}
	p.cmd = exec.Command(m.program[0], append(slices.Clone(m.program[1:]), "-na", "-e", extension(t), "-e", probe(t), "--session", file)...)
	p.cmd.Dir, p.cmd.Env = m.project, append(slices.Clone(m.env), "TERM=xterm-256color")
	var err error
	if p.tty, err = pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := p.tty.Read(buf)
			p.mu.Lock()
			p.out.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				break
			}
		}
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		_ = p.tty.Close()
	})
	p.until("pi is ready", func() bool { return strings.Contains(p.shown(), "scripted-1") })
	time.Sleep(300 * time.Millisecond) // the editor is drawn with the next frame
	return p
}

func (p *terminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *terminal) until(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			out := p.shown()
			p.t.Fatalf("never happened: %s\nthe end of the screen: %q", what, out[max(0, len(out)-3000):])
		}
	}
}

func (p *terminal) keys(s string) { _, _ = p.tty.WriteString(s) }

// say pastes lines and presses Enter, and waits until the model is called for them.
func (p *terminal) say(lines ...string) {
	p.t.Helper()
	p.keys("\x1b[200~" + strings.Join(lines, "\n") + "\x1b[201~")
	time.Sleep(100 * time.Millisecond)
	before := p.model.count()
	p.keys("\r")
	p.until("the model is called", func() bool { return p.model.count() > before })
}

// told waits until the session holds so many notices.
func (p *terminal) told(n int) []string {
	p.t.Helper()
	var ids []string
	p.until("the notices are stored", func() bool { ids = delivered(p.t, p.file); return len(ids) >= n })
	return ids
}

const (
	escape   = "\x1b"
	controlD = "\x04"
)

// TestInATerminal is the life table's rows that only a terminal has: Escape wipes pi's own
// queue, and Ctrl+D leaves nothing behind.
func TestInATerminal(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		is := is.New(t)
		p := m.terminal(t, m.session("terminal"))
		p.say("start scout auth", "prompt 1 gate first", "watch 1", "gate busy")
		p.until("the watch is registered", func() bool { return len(m.model.parent("watching 1 prompt asynchronously")) > 0 })
		m.model.open("first")
		p.until("the notice is in the ledger", func() bool { return len(m.ledgerIDs()) > 0 })
		time.Sleep(100 * time.Millisecond) // and with the extension
		before := m.model.count()
		p.keys(escape)
		is.Equal(len(p.told(1)), 1) // shown, without a turn
		time.Sleep(700 * time.Millisecond)
		is.Equal(m.model.count(), before)

		p.say("prompt 1 gate second", "watch 2", "say waiting")
		p.until("the watch is registered", func() bool { return len(m.model.parent("say waiting")) >= 3 })
		time.Sleep(time.Second)
		before = m.model.count()
		m.model.open("second")
		p.until("it is handed over", func() bool { return len(m.model.parent("result of second")) > 0 })
		p.keys(escape)
		time.Sleep(500 * time.Millisecond)
		is.Equal(len(p.told(2)), 2)
		is.Equal(m.model.count(), before+1)
		p.until("the notice is drawn", func() bool { return strings.Contains(p.shown(), "ctrl+o") && strings.Contains(p.shown(), "done in") })

		p.keys(controlD)
		select {
		case <-p.ended:
		case <-time.After(time.Minute):
			t.Fatal("Ctrl+D did not end pi")
		}
		m.nothingLeft(t)
	})
}

// TestInPanes has a real interactive parent and real interactive children, all in
// pseudo-terminals, the children placed through a Herdr.
func TestInPanes(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		is := is.New(t)
		var environ []string
		for _, kv := range m.env {
			if !strings.HasPrefix(kv, "SHEPHERD_") {
				environ = append(environ, kv)
			}
		}
		server := herdrtest.Start(t, herdrtest.Options{Programs: map[string][]string{"pi": m.program}, Environ: environ})
		m.env = append(slices.DeleteFunc(m.env, func(kv string) bool { return strings.HasPrefix(kv, "SHEPHERD_CHILDREN=") }),
			"HERDR_ENV=1", "HERDR_SOCKET_PATH="+server.Socket)
		p := m.terminal(t, m.session("panes"))
		p.say("start scout auth", "prompt 1 gate pane", "watch 1", "say waiting")
		p.until("the watch is registered", func() bool { return len(m.model.parent("watching 1 prompt asynchronously")) > 0 })
		is.True(len(m.model.parent("agents live in: panes of Herdr")) > 0)
		panes := len(server.Panes())
		is.True(panes > 0)
		before := m.model.count()
		m.model.open("pane")
		p.until("the parent is told", func() bool { return len(m.model.parent("result of pane")) > 0 })
		is.Equal(len(p.told(1)), 1)
		time.Sleep(500 * time.Millisecond)
		is.True(m.model.count() <= before+1) // one further call, with the text
		is.Equal(len(m.model.parent("result of pane")), 1)

		_ = p.cmd.Process.Signal(syscall.SIGKILL) // the agent's pane is left alone
		<-p.ended
		p.until("the host ends", func() bool { return len(m.hosts()) == 0 })
		is.Equal(len(server.Panes()), panes)
		again := m.terminal(t, m.session("panes"))
		again.say("call shepherd_prune {}", "say pruned")
		again.until("the orphan is closed", func() bool { return len(server.Panes()) < panes })
	})
}

// hosts are the hosts of this machine.
func (m *machine) hosts() []string {
	return slices.DeleteFunc(m.processes(), func(p string) bool { return !strings.Contains(p, "shepherd-pi") || strings.Contains(p, "node") })
}
