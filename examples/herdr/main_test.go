package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
)

// TestHerdr runs the example on a fake Herdr with scripted agents.
func TestHerdr(t *testing.T) {
	for _, name := range []string{"HERDR_SOCKET_PATH", "HERDR_PANE_ID", "SHEPHERD_DEPTH"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	s := herdrtest.Start(t, herdrtest.Options{Script: func(turn *herdrtest.Turn) { turn.Say("In retry.go.") }})
	project := t.TempDir()
	var out strings.Builder
	if err := run(t.Context(), &out, project, false, herdr.Options{Socket: s.Socket, Links: s.Links()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"started", "scout done", "planner done", "In retry.go.", project} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, out.String())
		}
	}
	if panes := s.Panes(); len(panes) != 1 {
		t.Errorf("panes are left: %v", panes)
	}
	if dirs := s.Links().Dirs(); len(dirs) != 0 {
		t.Errorf("directories are left: %v", dirs)
	}
	notes, err := filepath.Glob(filepath.Join(project, ".shepherd/sessions/0001-*/*-01.md"))
	if err != nil || len(notes) != 2 {
		t.Errorf("notes %v %v", notes, err)
	}
}
