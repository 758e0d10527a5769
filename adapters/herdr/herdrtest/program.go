package herdrtest

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// program is what runs in a pane: a shell, and what was typed into it. Its methods are called
// with the server's mutex held and do not block.
type program interface {
	// run types the command of an agent of that kind.
	run(kind string, args []string)
	// text types a text, as a paste; key presses a key.
	text(s string)
	key(name string)
	processes() processInfo
	screen() string
	// busy: the shell does not wait for a command.
	busy() bool
	// kill ends everything in the pane. What it returns waits for that.
	kill() (wait func())
}

type processInfo struct {
	PaneID    string    `json:"pane_id"`
	ShellPID  int       `json:"shell_pid"`
	Group     int       `json:"foreground_process_group_id"`
	Processes []process `json:"foreground_processes"`
}

type process struct {
	PID     int      `json:"pid"`
	Name    string   `json:"name"`
	Argv    []string `json:"argv"`
	Cmdline string   `json:"cmdline"`
	Cwd     string   `json:"cwd"`
}

// newProgram starts what a new pane begins with.
func (s *Server) newProgram(p *pane) program {
	if len(s.o.Programs) > 0 {
		return s.startShell(p)
	}
	return &shell{s: s, p: p, pid: s.newPID(), free: time.Now().Add(s.o.ShellAfter), out: "$ "}
}

// newPID returns the id of no process of this machine.
func (s *Server) newPID() int {
	s.model.pids++
	return 1<<30 + s.model.pids
}

// shell is a scripted shell: it knows `exit` and `sleep N`, and how to start agents.
type shell struct {
	s    *Server
	p    *pane
	pid  int
	free time.Time // when it waits for a command
	line string
	out  string
}

func (sh *shell) run(kind string, args []string) {
	sh.out += strings.Join(append([]string{kind}, args...), " ") + "\n"
	if slices.Contains(sh.s.o.Missing, kind) || slices.Contains(sh.s.o.Missing, sh.p.env["PATH"]) {
		sh.out += "sh: 1: " + kind + ": not found\n$ "
		return
	}
	if d := sh.s.o.RunAfter; d > 0 {
		sh.free = time.Now().Add(d / 4)
		time.AfterFunc(d, func() {
			sh.s.mu.Lock()
			defer sh.s.mu.Unlock()
			if sh.s.model.panes[sh.p.id] == sh.p {
				sh.s.startAgent(sh.p, kind, args)
			}
		})
		return
	}
	sh.s.startAgent(sh.p, kind, args)
}

func (sh *shell) text(text string) {
	if a := sh.p.agent; a != nil {
		a.editor += text
		return
	}
	sh.line += text
}

func (sh *shell) key(name string) {
	if a := sh.p.agent; a != nil {
		sh.s.agentKey(sh.p, a, name)
		return
	}
	if name != "enter" {
		return
	}
	line := sh.line
	sh.out, sh.line = sh.out+line+"\n$ ", ""
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "exit":
		sh.s.paneExited(sh.p)
	case "sleep":
		n, _ := strconv.Atoi(rest)
		sh.free = time.Now().Add(time.Duration(n) * time.Second)
	}
}

func (sh *shell) busy() bool { return time.Now().Before(sh.free) }

func (sh *shell) processes() processInfo {
	i := processInfo{PaneID: sh.p.id, ShellPID: sh.pid, Group: sh.pid}
	name, pid := "sh", sh.pid
	if a := sh.p.agent; a != nil && !a.stopped {
		name, pid = a.kind, a.pid
	} else if sh.busy() {
		name, pid = "sleep", sh.pid+1<<20
	}
	i.Group = pid
	i.Processes = []process{{PID: pid, Name: name, Argv: []string{name}, Cmdline: name, Cwd: sh.p.cwd}}
	return i
}

func (sh *shell) screen() string {
	if a := sh.p.agent; a != nil {
		return sh.out + a.out + "\n─────\n" + a.editor + "\n─────\n"
	}
	return sh.out + sh.line
}

func (sh *shell) kill() func() {
	if a := sh.p.agent; a != nil {
		a.die()
	}
	return func() {}
}
