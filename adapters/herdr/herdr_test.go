package herdr_test

import (
	"testing"

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
				return start(t, herdrtest.Options{}, test.linked).harness()
			})
		})
	}
}

func (r *rig) harness() lifecycletest.Harness {
	word := func(do string) func(string) string { return func(arg string) string { return do + " " + arg } }
	h := lifecycletest.Harness{
		Herdr: r.herdr, Signals: r.linked,
		Say: word("say"), Fail: word("fail"),
		Hang: func() string { return "hang" }, Exit: func() string { return "exit" },
	}
	if r.linked {
		h.Received = func(lifecycle.Target) string {
			all := r.received()
			return all[len(all)-1]
		}
	}
	return h
}
