package herdr

import (
	"context"
	"fmt"
	"time"
)

// ready waits until the agent can be prompted, and notices when its program has failed: the
// shell is alone, and stays so.
func (a *agent) ready(ctx context.Context) error {
	const (
		step = 250 * time.Millisecond
		// grace is what a shell may take to run what was typed into it. It counts from the
		// last time that anything else ran, which may have been something of the shell's own
		// start and says nothing of the agent.
		grace = 3 * time.Second
	)
	alone := time.Now()
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
			alone = time.Now()
		case time.Since(alone) > grace:
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
