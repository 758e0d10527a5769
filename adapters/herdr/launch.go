package herdr

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/childenv"
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

// plan checks all that can be checked before anything is made.
func (h *Herdr) plan(s lifecycle.Spec) (a *agent, dir string, env map[string]string, err error) {
	kind := cmp.Or(s.Kind, "pi")
	for _, arg := range s.Args {
		if strings.ContainsFunc(arg, isControl) {
			return nil, "", nil, fmt.Errorf("%w: argument %q has a control character; it is typed into a shell", lifecycle.ErrInvalid, arg)
		}
	}
	if dir, err = workDir(cmp.Or(s.Dir, h.o.Dir)); err != nil {
		return nil, "", nil, err
	}
	if env, err = environment(os.Environ(), h.o.MaxDepth, h.o.Env, s.Env); err != nil {
		return nil, "", nil, err
	}
	return newAgent(h, s, kind, uniqueName(s.Name)), dir, env, nil
}

// environment returns what is put on top of the server's environment. The server may have
// been started by our parent, so what names us is overridden, not left out.
func environment(environ []string, limit int, add ...map[string]string) (map[string]string, error) {
	if _, err := childenv.Build(environ, limit, add...); err != nil {
		return nil, err
	}
	env := make(map[string]string)
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SHEPHERD_") || strings.HasPrefix(name, "PI_SESSION_") {
			env[name] = ""
		}
	}
	for _, vars := range add {
		for name, value := range vars {
			env[name] = value
		}
	}
	env[childenv.DepthVar] = strconv.Itoa(childenv.Depth(environ, limit) + 1)
	return env, nil
}

// workDir returns the absolute directory. Herdr would take a missing one in silence and
// start somewhere else.
func workDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("working directory: %s is not a directory", dir)
	}
	return dir, nil
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

// inDir: a pane that is somewhere else than it should be gets no prompt.
func inDir(p paneInfo, dir string) error {
	if p.Cwd == "" || p.Cwd == dir {
		return nil
	}
	want, err := os.Stat(dir)
	is, err2 := os.Stat(p.Cwd)
	if err == nil && err2 == nil && os.SameFile(want, is) {
		return nil
	}
	return fmt.Errorf("%w: pane %s is in %q, not in %q", ErrStart, p.PaneID, p.Cwd, dir)
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

// ready waits until the agent can be prompted, and notices when its program has failed: the
// shell is alone again, and stays so.
func (a *agent) ready(ctx context.Context) error {
	const (
		step  = 250 * time.Millisecond
		grace = 1500 * time.Millisecond // what a shell may take to run what was typed into it
	)
	alone, seen := time.Now(), false
	for {
		_, changed := a.level.Get()
		ok, err := a.isReady(ctx)
		if ok || err != nil {
			return err
		}
		running, err := a.programRuns(ctx)
		switch {
		case err != nil:
			return err
		case running:
			alone, seen = time.Now(), true
		case seen && time.Since(alone) > step, time.Since(alone) > grace:
			return fmt.Errorf("%w: the program has ended, or was not found", ErrStart)
		}
		select {
		case <-changed:
		case <-time.After(step):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *agent) isReady(ctx context.Context) (bool, error) {
	if a.link != nil {
		return a.linkUp(), a.goneErr()
	}
	var r agentResult
	err := a.h.client.call(ctx, "agent.get", targetParams{a.place().pane}, &r)
	switch {
	case isGone(err):
		return false, a.goneErr()
	case err != nil || !r.Agent.InteractiveReady:
		return false, err
	}
	a.fold(r.Agent)
	var p processResult
	if err := a.h.client.call(ctx, "pane.process_info", paneParams{r.Agent.PaneID}, &p); err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pid = p.Info.leader()
	return true, nil
}

func (a *agent) goneErr() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrStart, a.gone)
}

func (a *agent) programRuns(ctx context.Context) (bool, error) {
	var p processResult
	if err := a.h.client.call(ctx, "pane.process_info", paneParams{a.place().pane}, &p); err != nil {
		return false, err
	}
	return !p.Info.shellAlone(), nil
}

// explain adds what stands in the pane, which is where shells and programs say why.
func (a *agent) explain(err error) error {
	ctx, cancel := a.h.cleaning(context.Background())
	defer cancel()
	text, readErr := a.recent(ctx, 20)
	if readErr != nil || text == "" {
		return err
	}
	return fmt.Errorf("%w; the pane's last lines:\n%s", err, text)
}

// undo removes what a failed launch has made, and nothing else.
func (a *agent) undo(ctx context.Context) error {
	err := a.close(ctx)
	if _, added := a.h.agent(a.target); added {
		a.h.remove(a)
	}
	return err
}

// uniqueName returns a name as Herdr wants it, with an end that no other agent has.
func uniqueName(name string) string {
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b strings.Builder
	for _, r := range strings.ToLower(clean(name)) {
		switch {
		case b.Len() == 26:
		case r >= 'a' && r <= 'z', b.Len() > 0 && (r >= '0' && r <= '9' || r == '_'):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	end := make([]byte, 5)
	for i := range end {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(chars))))
		end[i] = chars[n.Int64()]
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "agent") + "-" + string(end)
}
