package headless

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

func TestHerdr_OfScriptedAgents(t *testing.T) {
	lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness {
		received := filepath.Join(t.TempDir(), "received")
		return lifecycletest.Harness{
			Herdr:   herd(t, scripted()),
			Spec:    lifecycle.Spec{Name: "scout"},
			Say:     func(text string) string { return "save " + received + "\nsay " + text },
			Fail:    func(why string) string { return "fail " + why },
			Hang:    func() string { return "hang" },
			Exit:    func() string { return "exit 7" },
			Signals: true,
			Received: func(lifecycle.Target) string {
				b, err := os.ReadFile(received)
				if err != nil {
					t.Error(err)
				}
				return string(b)
			},
		}
	})
}

func TestHerdr_OfRealPi(t *testing.T) {
	lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness {
		h, pi := realPi(t)
		return lifecycletest.Harness{
			Herdr:    h,
			Spec:     lifecycle.Spec{Name: "scout", Dir: t.TempDir()},
			Say:      func(text string) string { return "say " + text },
			Fail:     func(why string) string { return "status 400 " + why },
			Hang:     func() string { return "hang" },
			Exit:     func() string { return "bash kill -9 $PPID" }, // pi is the shell's parent
			Signals:  true,
			Patience: 2 * limit,
			Received: func(lifecycle.Target) string { return text(pi.Model.Received()) },
		}
	})
}

// realPi returns a Herdr of real pi processes and the model behind them.
func realPi(t *testing.T) (*Herdr, *pitest.Pi) {
	t.Helper()
	pi := pitest.New(t)
	return herd(t, Options{
		Command: append(pi.Program, DefaultCommand()[1:]...),
		Env:     pi.Env,
		Dir:     t.TempDir(),
	}), pi
}
