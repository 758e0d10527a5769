//go:build unix

package herdr_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/adapters/pi"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// The process that is killed: a launcher that says what it has made and waits.
const launcherVar = "HERDR_TEST_LAUNCHER"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(launcherVar) != "":
		launcher(os.Getenv(launcherVar), os.Getenv(launcherVar+"_DIR"))
	case filepath.Base(os.Args[0]) == "herdr":
		serve()
	}
	os.Exit(m.Run())
}

func launcher(socket, dir string) {
	o := herdr.Options{Socket: socket, Dir: dir, Parent: "me", Store: herdr.FileStore(aferofs.OS(dir), ".shepherd/herdr.json")}
	if home := os.Getenv(launcherVar + "_PI"); home != "" {
		o.Links, o.StartTimeout = pi.Links(), patience
		o.Env = map[string]string{"HOME": home, "PI_CODING_AGENT_DIR": filepath.Join(home, "agent")}
	}
	h := herdr.New(o)
	t, err := h.Launch(context.Background(), lifecycle.Spec{Name: "scout", ID: "agent-1"})
	fmt.Println(t, err)
	select {}
}

// otherProcess launches an agent in a process of its own, which then waits to be killed.
func (r *rig) otherProcess(dir string, env ...string) *exec.Cmd {
	r.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), launcherVar+"="+r.server.Socket, launcherVar+"_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "w2:p1 <nil>\n" {
		r.Fatalf("the other process says %q, %v", said, err)
	}
	return cmd
}

func TestAfterAKill_TheNextProcessPrunes(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	dir := t.TempDir()
	cmd := r.otherProcess(dir)
	h := r.another(func(o *herdr.Options) {
		o.Parent, o.Store = "me", herdr.FileStore(aferofs.OS(dir), ".shepherd/herdr.json")
	})
	pruned, err := h.Prune(t.Context())
	is.NoErr(err)
	is.Equal(len(pruned), 0) // it lives
	is.NoErr(cmd.Process.Kill())
	_ = cmd.Wait()
	pruned, err = h.Prune(t.Context())
	is.NoErr(err)
	is.Equal(len(pruned), 1)
	is.Equal(pruned[0].Agent, lifecycle.AgentID("agent-1"))
	r.nothingIsLeft()
}

func TestAfterAKill_TheNextProcessPrunesRealPi(t *testing.T) {
	is := is.New(t)
	p := pitest.New(t)
	r := start(t, herdrtest.Options{Programs: map[string][]string{"pi": p.Program}}, true)
	dir := t.TempDir()
	cmd := r.otherProcess(dir, launcherVar+"_PI="+p.Env["HOME"])
	is.NoErr(cmd.Process.Kill())
	_ = cmd.Wait()
	h := r.another(func(o *herdr.Options) {
		o.Links, o.Parent, o.Store = pi.Links(), "me", herdr.FileStore(aferofs.OS(dir), ".shepherd/herdr.json")
	})
	orphans, err := h.Orphans()
	is.NoErr(err)
	is.Equal(len(orphans), 1)
	_, err = os.Stat(orphans[0].Dir)
	is.NoErr(err)
	is.NoErr(syscall.Kill(orphans[0].PID, 0)) // the child lives on

	_, err = h.Prune(t.Context())
	is.NoErr(err)
	r.nothingIsLeft()
	_, err = os.Stat(orphans[0].Dir)
	is.True(errors.Is(err, fs.ErrNotExist))
	r.eventually("the child has ended", func() bool { return syscall.Kill(orphans[0].PID, 0) != nil })
}
