//go:build unix

package herdrtest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// realShell is a pane with a shell of this machine in a pseudo-terminal.
type realShell struct {
	s     *Server
	p     *pane
	cmd   *exec.Cmd
	tty   *os.File
	keys  chan string // to the writer
	ended chan struct{}

	mu  sync.Mutex
	out []byte
}

const keptOutput = 256 << 10

// startShell starts the shell, with the environment that a pane has.
func (s *Server) startShell(p *pane) program {
	env := append([]string{}, s.o.Environ...)
	env = append(env, "TERM=xterm-256color", "COLORTERM=truecolor", "PS1=$ ")
	for name, value := range p.env {
		env = append(env, name+"="+value)
	}
	env = append(env, "HERDR_ENV=1", "HERDR_SOCKET_PATH="+s.Socket,
		"HERDR_WORKSPACE_ID="+p.in.in.id, "HERDR_TAB_ID="+p.in.id, "HERDR_PANE_ID="+p.id)
	cmd := exec.Command("/bin/sh", "-i")
	cmd.Dir, cmd.Env = p.cwd, env
	r := &realShell{s: s, p: p, cmd: cmd, keys: make(chan string, 1024), ended: make(chan struct{})}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		s.fatal("shell: %v", err)
		return nil
	}
	r.tty = tty
	go r.read()
	go r.write()
	go r.watch()
	return r
}

func (r *realShell) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.tty.Read(buf)
		r.mu.Lock()
		r.out = append(r.out, buf[:n]...)
		if extra := len(r.out) - keptOutput; extra > 0 {
			r.out = append([]byte{}, r.out[extra:]...)
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (r *realShell) write() {
	for {
		select {
		case k := <-r.keys:
			_, _ = r.tty.WriteString(k)
		case <-r.ended:
			return
		}
	}
}

// watch follows who is in the foreground, as Herdr does, until the shell ends.
func (r *realShell) watch() {
	waited := make(chan struct{})
	go func() { _ = r.cmd.Wait(); close(waited) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-waited:
			close(r.ended)
			r.tty.Close()
			r.s.mu.Lock()
			defer r.s.mu.Unlock()
			if r.p.program == r {
				r.p.program = &shell{s: r.s, p: r.p}
				if r.s.model.panes[r.p.id] == r.p {
					r.s.paneExited(r.p)
				}
			}
			return
		case <-tick.C:
		}
		alone := foreground(r.tty) == r.cmd.Process.Pid
		r.s.mu.Lock()
		if a := r.p.agent; a != nil && r.p.program == r {
			switch {
			case !alone && !a.found:
				a.pid = foreground(r.tty)
				r.s.found(r.p, a)
				time.AfterFunc(r.s.o.ReadyAfter, func() { r.s.with(r.p, a, func() { r.s.interactive(r.p, a) }) })
			case alone && a.found:
				r.s.agentEnded(r.p, a)
			}
		}
		r.s.mu.Unlock()
	}
}

func (r *realShell) type_(text string) {
	select {
	case r.keys <- text:
	default: // full, as Herdr's queue can be
	}
}

// run types the command line, quoted.
func (r *realShell) run(kind string, args []string) {
	command := append(append([]string{}, r.s.o.Programs[kind]...), args...)
	for i, word := range command {
		command[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	r.p.agent = &agent{kind: kind, pending: true, status: "idle"}
	r.type_(strings.Join(command, " ") + "\r")
}

// text is pasted, bracketed if the program has asked for that.
func (r *realShell) text(s string) {
	if r.bracketed() {
		s = "\x1b[200~" + s + "\x1b[201~"
	}
	r.type_(s)
}

func (r *realShell) bracketed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := string(r.out)
	return strings.LastIndex(out, "\x1b[?2004h") > strings.LastIndex(out, "\x1b[?2004l")
}

func (r *realShell) key(name string) {
	r.type_(map[string]string{"enter": "\r", "esc": "\x1b", "tab": "\t", "space": " ", "backspace": "\x7f",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
		"ctrl+c": "\x03", "ctrl+d": "\x04", "ctrl+z": "\x1a", "alt+enter": "\x1b\r"}[name])
}

func (r *realShell) busy() bool { return foreground(r.tty) != r.cmd.Process.Pid }

func (r *realShell) processes() processInfo {
	group := foreground(r.tty)
	i := processInfo{ShellPID: r.cmd.Process.Pid, Group: group}
	for _, pid := range membersOf(group) {
		i.Processes = append(i.Processes, process{PID: pid, Name: nameOf(pid), Cwd: r.p.cwd})
	}
	return i
}

var controls = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\a\x1b]*(?:\a|\x1b\\\\)|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f]")

func (r *realShell) screen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return controls.ReplaceAllString(strings.ToValidUTF8(string(r.out), ""), "")
}

// kill hangs up, and kills what does not care.
func (r *realShell) kill() func() {
	if r.p.program == r {
		r.p.program = &shell{s: r.s, p: r.p}
	}
	shell, group := r.cmd.Process.Pid, foreground(r.tty)
	hangUp := func(sig syscall.Signal) {
		if group > 1 && group != shell {
			_ = syscall.Kill(-group, sig)
		}
		_ = syscall.Kill(-shell, sig)
	}
	hangUp(syscall.SIGHUP)
	return func() {
		select {
		case <-r.ended:
		case <-time.After(500 * time.Millisecond):
		}
		hangUp(syscall.SIGKILL)
		for _, pid := range sessionOf(shell) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-r.ended
	}
}
