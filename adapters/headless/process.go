package headless

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is a child process that leads its own process group, with the three streams as
// pipes of ours: so the end of the process is seen when it happens, even while something it
// has started still holds the other ends.
type process struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File // our ends
	mark                  string   // "NAME=value" in the environment of everything it starts

	mu     sync.Mutex
	reaped bool          // no signal goes out any more: the id may soon be another's
	ended  chan struct{} // closed when the process has ended
}

// startProcess starts cmd. Env and Dir are the caller's to set, mark must be in Env.
func startProcess(cmd *exec.Cmd, mark string) (_ *process, err error) {
	p := &process{cmd: cmd, mark: mark, ended: make(chan struct{})}
	var in, out, errs *os.File
	defer func() {
		closeAll(in, out, errs) // the child has its own copies
		if err != nil {
			closeAll(p.stdin, p.stdout, p.stderr)
		}
	}()
	if in, p.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stdout, out, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stderr, errs, err = os.Pipe(); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	ownGroup(cmd)
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// wait blocks until the process has ended and says how: "exit status 137 (killed)". What it
// has started and left behind is killed.
func (p *process) wait() string {
	_ = p.cmd.Wait() // its error repeats the state, or says that there is none
	p.mu.Lock()
	p.reaped = true
	killRest(p.pid())
	p.mu.Unlock()
	killMarked(p.mark)
	close(p.ended)
	return ending(p.cmd.ProcessState)
}

// stop ends the process: its input is closed, SIGTERM, SIGKILL, with grace after each of
// the first two; once cut is closed there is no grace left. The error says that the process
// is still there.
func (p *process) stop(cut <-chan struct{}, grace time.Duration) error {
	p.stdin.Close()
	if p.endsWithin(grace, cut) {
		return nil
	}
	p.signal(terminateGroup)
	if p.endsWithin(grace, cut) {
		return nil
	}
	p.kill()
	const mercy = 5 * time.Second // a killed process is gone in no time, or stuck in the kernel
	if !p.endsWithin(mercy, nil) {
		return fmt.Errorf("process %d was killed and is still there", p.pid())
	}
	return nil
}

// kill kills the group, and on the way what has left it.
func (p *process) kill() {
	p.signal(func(pid int) {
		killMarked(p.mark)
		killGroup(pid)
	})
}

func (p *process) signal(send func(pid int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.pid())
	}
}

func (p *process) endsWithin(d time.Duration, cut <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-cut:
	case <-timer.C:
	}
	return p.hasEnded()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func ending(s *os.ProcessState) string {
	if s == nil {
		return "unknown exit status"
	}
	if signal, name := killedBy(s); signal != 0 {
		return fmt.Sprintf("exit status %d (%s)", 128+signal, name) // as a shell would say it
	}
	return fmt.Sprintf("exit status %d", s.ExitCode())
}
