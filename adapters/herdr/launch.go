package herdr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Launch makes a pane where Options.Placement says and starts the agent's program in it. It
// returns once the agent can be prompted: when its link is up, or for an agent without one
// when Herdr says so (after 3 s at least). It blocks as long as ctx and Options.StartTimeout
// allow. On error nothing of it is left.
//
// Errors: lifecycle.ErrInvalid for what cannot be started; fs.ErrNotExist for a missing
// directory; ErrNotRunning, *TooOldError; ErrStart, with the pane's last lines; ErrTooDeep;
// *Error for what the server refuses.
func (h *Herdr) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	ctx, done, err := h.begin(ctx)
	if err != nil {
		return "", fmt.Errorf("herdr: launch %s: %w", s.Name, err)
	}
	defer done()
	a, err := h.launch(ctx, s)
	if err != nil {
		return "", fmt.Errorf("herdr: launch %s: %w", s.Name, err)
	}
	a.log.Debug("agent launched", "name", s.Name, "pid", a.pid)
	return a.target, nil
}

// begin registers a launch: h does not end before it has, and ends it.
func (h *Herdr) begin(ctx context.Context) (context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, lifecycle.ErrClosed
	}
	h.launching.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	return ctx, func() { unhook(); cancel(nil); h.launching.Done() }, nil
}

func (h *Herdr) launch(ctx context.Context, s lifecycle.Spec) (*agent, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	a, dir, env, err := h.plan(s)
	if err != nil {
		return nil, err
	}
	if err := h.reach(ctx); err != nil {
		return nil, err
	}
	late := fmt.Errorf("%w within %v", ErrStart, h.o.StartTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, h.o.StartTimeout, late)
	defer cancel()
	if err := a.start(ctx, dir, env); err != nil {
		tidy, cancel := h.cleaning(ctx)
		defer cancel()
		return nil, errors.Join(err, a.undo(tidy))
	}
	return a, nil
}

// start makes the link, the pane and the program, in this order.
func (a *agent) start(ctx context.Context, dir string, env map[string]string) error {
	args := append([]string{}, a.spec.Args...)
	if a.h.o.Links != nil && a.kind == "pi" {
		l, err := a.h.o.Links.Open(ctx, a.spec, a.heard)
		if err != nil {
			return fmt.Errorf("open the child's link: %w", err)
		}
		a.mu.Lock()
		a.link = l
		a.mu.Unlock()
		more, first := l.Launch()
		for name, value := range more {
			env[name] = value
		}
		args = append(first, args...)
	}
	if err := a.record(); err != nil {
		return err
	}
	pane, err := a.h.makePane(ctx, a, dir, env)
	a.mu.Lock()
	a.starting = true
	a.at = pane.place() // also of a pane that is not as it should be: it is closed again
	a.mu.Unlock()
	if err != nil {
		return err
	}
	if err := a.h.add(a, lifecycle.Target(pane.PaneID)); err != nil {
		return err
	}
	if err := errors.Join(a.record(), inDir(pane, dir)); err != nil {
		return err
	}
	if err := a.startProgram(ctx, args); err != nil {
		return err
	}
	if err := a.ready(ctx); err != nil {
		return a.explain(err)
	}
	a.mu.Lock()
	a.starting = false
	a.mu.Unlock()
	return a.record()
}

// startProgram has the server type the program's command into the pane's shell. While the
// shell still reads its own files it is refused, at once, and tried again (C26).
func (a *agent) startProgram(ctx context.Context, args []string) error {
	const longest = 1600 * time.Millisecond
	// Herdr gives up on a name after this; it decides nothing for agents with a link.
	timeout := max(a.h.o.StartTimeout, 3001*time.Millisecond).Milliseconds()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, longest) {
		p := startParams{Name: a.name, Kind: a.kind, PaneID: a.place().pane, Args: args, TimeoutMS: timeout}
		err := a.h.client.call(ctx, "agent.start", p, nil)
		switch {
		case hasCode(err, "agent_name_taken"):
			a.name = uniqueName(a.spec.Name)
		case hasCode(err, "agent_pane_busy"):
			if cause := sleep(ctx, pause); cause != nil {
				return fmt.Errorf("%w; the pane's shell was busy all the time", cause)
			}
		case err != nil:
			return err
		default:
			return nil
		}
	}
}

// undo removes what a failed launch has made, and nothing else.
func (a *agent) undo(ctx context.Context) error {
	err := a.close(ctx)
	if _, added := a.h.agent(a.target); added {
		a.h.remove(a)
	}
	return err
}
