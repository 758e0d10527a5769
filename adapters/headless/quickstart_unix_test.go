//go:build unix

package headless_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/notes"
)

// TestE2E_QuickstartWithPi runs the quickstart example with the pi that is on PATH, which
// here is the pinned one and its scripted model.
func TestE2E_QuickstartWithPi(t *testing.T) {
	is, pi := is.New(t), pitest.New(t)
	bin, project := t.TempDir(), t.TempDir()
	shim := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", strings.Join(pi.Program, "' '"))
	is.NoErr(os.WriteFile(filepath.Join(bin, "pi"), []byte(shim), 0o700))
	program := filepath.Join(bin, "quickstart")
	out, err := exec.Command("go", "build", "-o", program, "../../examples/quickstart").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "-agent", "pi", "-project", project)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, value := range pi.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err = cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("quickstart -agent pi: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, agent := range []string{"scout", "planner"} { // a pi may be done before it is watched
		is.True(strings.Contains(string(out), "notified: "+agent+" done") || strings.Contains(string(out), "settled by then: "+agent+" done"))
	}
	is.Equal(pi.Model.Calls(), 2) // one for each agent
	sessions, err := notes.List(t.Context(), aferofs.OS(project))
	is.NoErr(err)
	is.Equal(len(sessions), 1)
	is.Equal(len(sessions[0].Notes), 2)
	for _, n := range sessions[0].Notes {
		is.Equal(n.Status, notes.Completed)
	}
}
