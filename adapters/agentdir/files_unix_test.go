//go:build unix

package agentdir

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/matryer/is"
)

func TestLoad_APipeThatLooksLikeAFile_HoldsNobodyUp(t *testing.T) {
	for _, scope := range []Scope{ScopeUser, ScopeProject} {
		is := is.New(t)
		w := newWorld(t)
		dir := map[Scope]string{ScopeUser: ".agents/agents/", ScopeProject: "src/project/.agents/agents/"}[scope]
		w.write(dir+"b.md", agent("b"))
		is.NoErr(syscall.Mkfifo(filepath.Join(w.home, dir, "a.md"), 0o600))
		c := w.load(w.options(scope))
		is.Equal(w.broken(c), []string{dir + "a.md: not a regular file"})
		is.Equal(len(c.All()), 1)
	}
}

func TestLoad_WhatMayNotBeRead_IsReported(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	is := is.New(t)
	w := newWorld(t)
	w.write(".agents/agents/a.md", agent("a"))
	w.write(".agents/agents/b.md", agent("b"))
	w.write(".pi/agent/agents/c.md", agent("c"))
	is.NoErr(os.Chmod(filepath.Join(w.home, ".agents/agents/a.md"), 0))
	is.NoErr(os.Chmod(filepath.Join(w.home, ".pi/agent/agents"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.home, ".pi/agent/agents"), 0o700) })
	c := w.load(w.options(ScopeUser))
	is.Equal(w.found(c), []string{"b user .agents/agents/b.md"})
	is.Equal(len(c.Broken()), 2)
}
