//go:build unix

package headless

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// shell lets pi run a shell that sleeps, and returns the id of its process.
func shell(t *testing.T, h *Herdr, target lifecycle.Target) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	submit(t, h, target, prompt1, "bash echo $$ >"+file+".tmp; mv "+file+".tmp "+file+"; sleep 600; true")
	shell := 0
	eventually(t, "pi runs its shell", func() bool {
		b, err := os.ReadFile(file)
		shell, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil && shell > 0
	})
	return shell
}

func TestPi_ClosedInTheMiddleOfATool_EndsWithItsShell(t *testing.T) {
	is := is.New(t)
	h, _ := realPi(t)
	target := launch(t, h)
	shell := shell(t, h, target)
	is.NoErr(h.Close(t.Context(), target))
	is.True(!alive(pid(t, target)))
	dies(t, shell)
}

func TestPi_KilledInTheMiddleOfATool_IsGoneAndItsShellToo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what has left the process group can be found on Linux only")
	}
	is := is.New(t)
	h, _ := realPi(t)
	target := launch(t, h)
	shell := shell(t, h, target)
	is.NoErr(syscall.Kill(pid(t, target), syscall.SIGKILL))
	o := until(t, h, target, "gone", gone)
	is.True(strings.Contains(o.Detail, "exit status 137 (killed)"))
	dies(t, shell)
}

func TestPi_ClosedWhileTheModelHangs_EndsAtOnce(t *testing.T) {
	is := is.New(t)
	h, _ := realPi(t)
	target := launch(t, h)
	submit(t, h, target, prompt1, "hang")
	until(t, h, target, "started", func(o lifecycle.Observation) bool { return o.Signal.Kind == lifecycle.Started })
	is.NoErr(h.Close(t.Context(), target))
	is.True(!alive(pid(t, target)))
}
