package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestQuickstart runs the program as a reader would, twice, in fresh directories, and looks
// at what it prints and leaves.
func TestQuickstart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for range 2 {
		project := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, program, "-project", project).CombinedOutput()
		if err != nil {
			t.Fatalf("quickstart: %v\n%s", err, out)
		}
		for _, want := range []string{
			"2 pending", "page 1 of its own work", "notified: scout done", "notified: planner done",
			"waited for scout: done", "waited for planner: done", project,
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("the output has no %q:\n%s", want, out)
			}
		}
		sessions, err := filepath.Glob(filepath.Join(project, ".shepherd/sessions/[0-9]*"))
		if err != nil || len(sessions) != 1 || !strings.HasPrefix(filepath.Base(sessions[0]), "0001-") {
			t.Fatalf("sessions %v %v", sessions, err)
		}
		index := read(t, sessions[0], "shepherd.md")
		for note, answer := range map[string]string{"scout-01.md": "In retry.go", "planner-01.md": "Count the attempts"} {
			if content := read(t, sessions[0], note); !strings.Contains(content, "status: completed") || !strings.Contains(content, answer) {
				t.Errorf("%s:\n%s", note, content)
			}
			if !regexp.MustCompile(`\]\((\./)?` + note + `\)`).MatchString(index) {
				t.Errorf("shepherd.md does not link %s:\n%s", note, index)
			}
		}
	}
	if left := processes(program); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// processes lists what still runs the program, where there is a /proc to look at.
func processes(program string) []string {
	var left []string
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		if target, err := os.Readlink(exe); err == nil && target == program {
			left = append(left, exe)
		}
	}
	return left
}

func TestUnknownAgentIsRefused(t *testing.T) {
	if err := run(t.Context(), "robot", t.TempDir()); err == nil || !strings.Contains(err.Error(), "robot") {
		t.Errorf("run: %v", err)
	}
}
