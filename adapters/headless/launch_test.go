package headless

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestLaunch_ThatFails_SaysWhyAndLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	tests := map[string]struct {
		ctx   context.Context
		soon  bool // ctx ends in the middle
		o     Options
		spec  lifecycle.Spec
		is    error  // matches it
		words string // in the message
	}{
		"no such program":       {o: Options{Command: []string{"no-such-program"}}, is: exec.ErrNotFound, words: `"no-such-program"`},
		"no such program, path": {o: Options{Command: []string{"/no/such/program"}}, is: fs.ErrNotExist, words: "/no/such/program"},
		"no program":            {o: Options{Command: []string{file}}, is: fs.ErrPermission, words: file},
		"no such directory":     {spec: lifecycle.Spec{Dir: "/no/such/dir"}, is: fs.ErrNotExist, words: "/no/such/dir"},
		"a file as directory":   {spec: lifecycle.Spec{Dir: file}, words: file + " is not a directory"},
		"another kind":          {spec: lifecycle.Spec{Kind: "aider"}, is: lifecycle.ErrInvalid, words: `kind "aider"`},
		"a bad variable":        {spec: lifecycle.Spec{Env: map[string]string{"A=B": "x"}}, words: `"A=B"`},
		"ends at its start":     {o: scripted(headlesstest.Broken), words: "exit status 3; stderr: Error: this agent is broken"},
		"is never ready":        {o: Options{Command: headlesstest.Command(headlesstest.Mute), StartTimeout: 100 * time.Millisecond}, words: "not ready: no answer within 100ms"},
		"ctx has ended":         {ctx: ended, words: "changed my mind"},
		"ctx ends":              {soon: true, o: scripted(headlesstest.Mute), is: context.DeadlineExceeded, words: "was not ready"},
		"ctx ends, stubborn":    {soon: true, o: scripted(headlesstest.Mute, headlesstest.Stubborn), is: context.DeadlineExceeded, words: "was not ready"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			if tt.o.Command == nil {
				tt.o = scripted()
			}
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			if tt.soon {
				ctx, cancel := context.WithTimeout(tt.ctx, 100*time.Millisecond)
				defer cancel()
				tt.ctx = ctx
			}
			h := herd(t, tt.o)
			tt.spec.Name = "scout"
			target, err := h.Launch(tt.ctx, tt.spec)
			is.True(err != nil)
			is.Equal(target, lifecycle.Target(""))
			if !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), "launch scout") {
				t.Errorf("the error does not say %q: %v", tt.words, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("the error does not match %v: %v", tt.is, err)
			}
			is.True(!errors.Is(err, lifecycle.ErrOutcomeUnknown)) // the outcome is known: nothing is there
			is.Equal(len(h.agents), 0)
		})
	}
}

func TestLaunch_BelowTheLimitOfDepth_IsRefused(t *testing.T) {
	is := is.New(t)
	t.Setenv("SHEPHERD_DEPTH", "1")
	_, err := New(scripted()).Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	is.True(errors.Is(err, ErrTooDeep))

	deeper := scripted()
	deeper.MaxDepth = 2
	launch(t, herd(t, deeper))
}

func TestCloseAll_StopsWhatIsBeingLaunchedAndRefusesMore(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted(headlesstest.Mute))
	launched := make(chan error)
	go func() {
		_, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
		launched <- err
	}()
	eventually(t, "the process is there", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.agents) == 1 })
	is.NoErr(h.CloseAll(t.Context()))
	is.True(<-launched != nil)
	_, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	is.True(errors.Is(err, lifecycle.ErrClosed))
	is.NoErr(h.CloseAll(t.Context())) // twice is fine
}
