package headless

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/childenv"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// ErrTooDeep: this process is itself an agent, as deep as agents may be. See
// Options.MaxDepth.
var ErrTooDeep = childenv.ErrTooDeep

// Launch starts the agent's process and returns once it has answered, as long as ctx and
// Options.StartTimeout allow. On error nothing of it is left.
//
// Errors: ErrTooDeep; exec.ErrNotFound for a program that does not exist; fs.ErrNotExist for
// a missing directory; lifecycle.ErrInvalid for a Spec.Kind other than "pi"; ctx's own. An
// agent that ends at once is an error with its exit status and the end of its stderr.
func (h *Herdr) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	t, err := h.launch(ctx, s)
	if err != nil {
		return "", fmt.Errorf("headless: launch %s: %w", s.Name, err)
	}
	return t, nil
}

func (h *Herdr) launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	cmd, mark, err := h.command(s)
	if err != nil {
		return "", err
	}
	a, err := h.start(cmd, mark)
	if err != nil {
		return "", err
	}
	if err := a.ready(ctx, h.o.StartTimeout); err != nil {
		now := make(chan struct{})
		close(now)
		err = errors.Join(err, a.close(now, 0))
		h.mu.Lock()
		delete(h.agents, a.target)
		h.mu.Unlock()
		return "", err
	}
	a.log.Debug("agent launched", "agent", s.ID, "name", s.Name)
	return a.target, nil
}

// command builds the command, and checks beforehand what the system would say less clearly.
func (h *Herdr) command(s lifecycle.Spec) (cmd *exec.Cmd, mark string, err error) {
	if s.Kind != "" && s.Kind != "pi" {
		return nil, "", fmt.Errorf("%w: kind %q; headless agents are of kind \"pi\"", lifecycle.ErrInvalid, s.Kind)
	}
	dir, err := childenv.Dir(cmp.Or(s.Dir, h.o.Dir))
	if err != nil {
		return nil, "", err
	}
	name, value := "SHEPHERD_MARK", rand.Text()
	env, err := childenv.Build(os.Environ(), h.o.MaxDepth,
		map[string]string{"PI_OFFLINE": "1"}, // pi starts in 0.3 s instead of 10 when the network is slow
		h.o.Env, s.Env,
		map[string]string{"PWD": dir, name: value})
	if err != nil {
		return nil, "", err
	}
	program, err := exec.LookPath(h.o.Command[0])
	if err != nil {
		return nil, "", fmt.Errorf("agent program: %w; install it, or name another in Options.Command", err)
	}
	if program, err = filepath.Abs(program); err != nil { // not relative to the agent's directory
		return nil, "", err
	}
	cmd = exec.Command(program, append(append([]string{}, h.o.Command[1:]...), s.Args...)...)
	cmd.Dir, cmd.Env = dir, env
	return cmd, name + "=" + value, nil
}

// start starts the process and gives it a name. From here on CloseAll knows of it.
func (h *Herdr) start(cmd *exec.Cmd, mark string) (*agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("%w: headless", lifecycle.ErrClosed)
	}
	p, err := startProcess(cmd, mark)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	t := lifecycle.Target(fmt.Sprintf("pid:%d", p.pid()))
	h.names[t]++
	if n := h.names[t]; n > 1 {
		t = lifecycle.Target(fmt.Sprintf("%s#%d", t, n))
	}
	a := newAgent(p, t, h.o)
	h.agents[t] = a
	go a.run()
	return a, nil
}

// ready waits for the answer to a first question.
func (a *agent) ready(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	answer, err := a.ask(ctx, stateLine)
	switch {
	case err == nil && answer.Success:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.show(time.Now())
		return nil
	case err == nil:
		return fmt.Errorf("the agent is not ready: %s", answer.Error)
	case a.hasEnded():
		<-a.done
		o, _ := a.level.Get()
		return errors.New("the agent ended before it was ready: " + o.Detail)
	}
	err = fmt.Errorf("the agent was not ready: %w", context.Cause(ctx))
	if said := a.complaints.String(); said != "" {
		err = fmt.Errorf("%w; stderr: %s", err, said)
	}
	return err
}

// close stops the agent for good and returns when all of it has ended.
func (a *agent) close(cut <-chan struct{}, grace time.Duration) error {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	if err := a.stop(cut, grace); err != nil {
		return err
	}
	<-a.done
	return nil
}
