package shepherd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
)

// TestMain puts a `pi` on PATH that is this program as a scripted agent, so that the README's
// program runs as it stands.
func TestMain(m *testing.M) {
	headlesstest.Main(func(t *headlesstest.Turn) { t.Say("It is decided in retry.go.") })
	os.Exit(withPi(m.Run))
}

func withPi(run func() int) int {
	dir, err := os.MkdirTemp("", "pi-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"PATH", "TMPDIR"} { // the example's project goes with the directory
		value := dir
		if name == "PATH" {
			value += string(os.PathListSeparator) + os.Getenv(name)
		}
		os.Setenv(name, value)
	}
	quoted := make([]string, 0, 4)
	for _, arg := range headlesstest.Command() {
		quoted = append(quoted, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s\n", strings.Join(quoted, " "))
	if err := os.WriteFile(filepath.Join(dir, "pi"), []byte(script), 0o700); err != nil {
		panic(err)
	}
	return run()
}

// TestReadmeProgramIsTheExample keeps the README true: its program is the Example, which is
// run and whose output is checked.
func TestReadmeProgramIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	between := func(s, from, to string) string {
		_, rest, ok := strings.Cut(s, from)
		body, _, ok2 := strings.Cut(rest, to)
		if !ok || !ok2 {
			t.Fatalf("there is no text between %q and %q", from, to)
		}
		return strings.TrimSpace(body)
	}
	want := between(string(source), "func Example() {\n", "\t// Output:")
	if got := between(string(readme), "func main() {\n", "\n}\n"); got != want {
		t.Errorf("the README's program is\n%s\nthe Example is\n%s", got, want)
	}
}
