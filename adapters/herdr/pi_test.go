//go:build unix

package herdr_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/adapters/pi"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

// withPi is a rig whose agents are real interactive pi children in pseudo-terminals.
func withPi(t *testing.T) (*rig, *pitest.Pi) {
	t.Helper()
	p := pitest.New(t)
	r := start(t, herdrtest.Options{Programs: map[string][]string{"pi": p.Program}}, true, func(o *herdr.Options) {
		o.Links, o.Env = pi.Links(), p.Env
		o.StartTimeout = 60 * time.Second
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := r.herdr.CloseAll(ctx); err != nil {
			t.Errorf("close all: %v", err)
		}
		r.eventually("no process is left but the panes' shells", func() bool { return children() == len(r.server.Panes()) })
	})
	return r, p
}

func piHarness(h lifecycle.Herdr, p *pitest.Pi) lifecycletest.Harness {
	return lifecycletest.Harness{
		Herdr: h, Signals: true, Patience: 60 * time.Second,
		Say:  func(text string) string { return "say " + text },
		Fail: func(why string) string { return "status 401 " + why },
		Hang: func() string { return "hang" },
		Exit: func() string { return "bash kill -9 $PPID" },
		Received: func(lifecycle.Target) string {
			_, text, _ := strings.Cut(p.Model.Received(), "\n")
			return text
		},
	}
}

func TestHerdr_KeepsLifecyclesContract_WithRealPi(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: real pi children take a second each")
	}
	lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness {
		r, p := withPi(t)
		return piHarness(r.herdr, p)
	})
}
