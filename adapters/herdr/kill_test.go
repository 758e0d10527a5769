//go:build unix

package herdr_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
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
	h := herdr.New(herdr.Options{Socket: socket, Dir: dir, Parent: "me", Store: herdr.FileStore(aferofs.OS(dir), ".shepherd/herdr.json")})
	t, err := h.Launch(context.Background(), lifecycle.Spec{Name: "scout", ID: "agent-1"})
	fmt.Println(t, err)
	select {}
}

func TestAfterAKill_TheNextProcessPrunes(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), launcherVar+"="+r.server.Socket, launcherVar+"_DIR="+dir)
	out, err := cmd.StdoutPipe()
	is.NoErr(err)
	is.NoErr(cmd.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	is.NoErr(err)
	is.Equal(said, "w2:p1 <nil>\n")

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
