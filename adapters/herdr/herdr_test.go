package herdr_test

import (
	"os"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

func TestHerdr_KeepsLifecyclesContract(t *testing.T) {
	for _, test := range []struct {
		name   string
		linked bool
	}{{"linked agents", true}, {"agents without a link", false}} {
		t.Run(test.name, func(t *testing.T) {
			lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness {
				r := start(t, herdrtest.Options{}, test.linked)
				return r.harness()
			})
		})
	}
}

// rig is a fake server and a Herdr on it.
type rig struct {
	*testing.T
	server *herdrtest.Server
	herdr  *herdr.Herdr
	linked bool
	texts  chan string // what reached the agents
}

func start(t *testing.T, o herdrtest.Options, linked bool, change ...func(*herdr.Options)) *rig {
	t.Helper()
	for _, name := range []string{"HERDR_SOCKET_PATH", "HERDR_SESSION", "HERDR_PANE_ID", "SHEPHERD_DEPTH"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	r := &rig{T: t, linked: linked, texts: make(chan string, 100)}
	script := o.Script
	if script == nil {
		script = herdrtest.Obey
	}
	o.Script = func(turn *herdrtest.Turn) {
		r.texts <- turn.Text
		script(turn)
	}
	r.server = herdrtest.Start(t, o)
	options := herdr.Options{Socket: r.server.Socket, Dir: t.TempDir(), CallTimeout: 5 * time.Second}
	if linked {
		options.Links = r.server.Links()
	}
	for _, f := range change {
		f(&options)
	}
	r.herdr = herdr.New(options)
	t.Cleanup(func() {
		if err := r.herdr.Detach(); err != nil {
			t.Errorf("detach: %v", err)
		}
	})
	return r
}

func (r *rig) harness() lifecycletest.Harness {
	word := func(do string) func(string) string { return func(arg string) string { return do + " " + arg } }
	h := lifecycletest.Harness{
		Herdr: r.herdr, Signals: r.linked,
		Say: word("say"), Fail: word("fail"),
		Hang: func() string { return "hang" }, Exit: func() string { return "exit" },
	}
	if r.linked {
		h.Received = func(lifecycle.Target) (last string) {
			for {
				select {
				case last = <-r.texts:
				default:
					return last
				}
			}
		}
	}
	return h
}
