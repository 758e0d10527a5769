package agentdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// world is a home directory with a project below it, and what Trust was asked.
type world struct {
	t             *testing.T
	home, project string
	asked         []string
}

func newWorld(t *testing.T) *world {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home, project: filepath.Join(home, "src", "project")}
	w.write("src/project/main.go", "")
	return w
}

// write writes a file below the home directory.
func (w *world) write(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.home, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// link makes a link below the home directory, or skips where there are none.
func (w *world) link(target, name string) {
	w.t.Helper()
	name = filepath.Join(w.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		w.t.Skip("no symlinks here: ", err)
	}
}

func (w *world) options(s Scope) Options {
	return Options{Home: w.home, Project: w.project, Scope: s, NoBundled: true,
		Trust: func(_ context.Context, dir string, names []string) bool {
			w.asked = append(w.asked, w.rel(dir)+": "+strings.Join(names, " "))
			return true
		}}
}

func (w *world) load(o Options) Catalog {
	w.t.Helper()
	c, err := Load(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) rel(path string) string {
	if rel, err := filepath.Rel(w.home, path); err == nil && filepath.IsAbs(path) {
		return filepath.ToSlash(rel)
	}
	return path
}

// found lists the definitions: name, level and source.
func (w *world) found(c Catalog) []string {
	var list []string
	for _, d := range c.All() {
		list = append(list, fmt.Sprintf("%s %s %s", d.Name, d.Level, w.rel(d.Source)))
	}
	return list
}

// broken lists the broken files and what is said about them.
func (w *world) broken(c Catalog) []string {
	var list []string
	for _, b := range c.Broken() {
		list = append(list, w.rel(b.Path)+": "+b.Err.Error())
	}
	return list
}

func agent(name string) string { return file("name: "+name, "description: d") }

var everywhere = []string{
	".pi/agent/agents/", ".agents/agents/", "src/project/.pi/agents/", "src/project/.agents/agents/",
}

func TestLoad_TheFirstPlaceThatHasANameWins(t *testing.T) {
	levels := []Level{LevelUser, LevelUser, LevelProject, LevelProject, LevelBundled}
	for first := range levels {
		is := is.New(t)
		w := newWorld(t)
		for _, dir := range everywhere[first:] {
			w.write(dir+"own.md", agent("scout"))
		}
		o := w.options(ScopeBoth)
		o.NoBundled = false
		d, err := w.load(o).Find("scout")
		is.NoErr(err)
		is.Equal(d.Level, levels[first])
		if first < len(everywhere) {
			is.Equal(w.rel(d.Source), everywhere[first]+"own.md")
		} else {
			is.Equal(d.Source, "bundled")
		}
	}
}

func TestLoad_Scope(t *testing.T) {
	tests := map[Scope][]string{
		"":           {"a0 user .pi/agent/agents/a0.md", "a1 user .agents/agents/a1.md"},
		ScopeUser:    {"a0 user .pi/agent/agents/a0.md", "a1 user .agents/agents/a1.md"},
		ScopeProject: {"a2 project src/project/.pi/agents/a2.md", "a3 project src/project/.agents/agents/a3.md"},
		ScopeBoth: {"a0 user .pi/agent/agents/a0.md", "a1 user .agents/agents/a1.md",
			"a2 project src/project/.pi/agents/a2.md", "a3 project src/project/.agents/agents/a3.md"},
	}
	for scope, want := range tests {
		t.Run(string(scope), func(t *testing.T) {
			is := is.New(t)
			w := newWorld(t)
			for i, dir := range everywhere {
				w.write(fmt.Sprintf("%sa%d.md", dir, i), agent(fmt.Sprintf("a%d", i)))
			}
			is.Equal(w.found(w.load(w.options(scope))), want)
			is.Equal(len(w.asked) > 0, scope == ScopeProject || scope == ScopeBoth)
		})
	}
}

func TestLoad_EmptyHome_HasTheBundledOnes(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	c := w.load(Options{Home: filepath.Join(w.home, "nowhere")})
	is.Equal(w.found(c), []string{"planner bundled bundled", "reviewer bundled bundled", "scout bundled bundled", "worker bundled bundled"})
	is.Equal(c.Broken(), nil)
	for _, d := range c.All() {
		is.True(len(d.Prompt) > 200 && len(d.Prompt) < 2000)
		is.Equal(d.Model, "") // the parent's
		is.Equal(d.Tools == nil, d.Name == "worker")
		is.True(!slices.Contains(d.Tools, "write") && !slices.Contains(d.Tools, "edit"))
	}
}

func TestLoad_PiMoved(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write("moved/agents/a.md", agent("a"))
	t.Setenv("HOME", w.home)
	t.Setenv("USERPROFILE", w.home)
	t.Setenv("PI_CODING_AGENT_DIR", filepath.Join(w.home, "moved"))
	is.Equal(w.found(w.load(Options{NoBundled: true})), []string{"a user moved/agents/a.md"})
	is.Equal(w.found(w.load(Options{NoBundled: true, Home: w.home})), nil) // a home given by hand is not the process's
}

func TestLoad_WhichFilesCount(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	dir := ".agents/agents/"
	for _, name := range []string{"a.md", "b.agent.md", ".hidden.md", "c.txt", "d.md.bak", "e.MD", "sub/f.md", "dir.md/x"} {
		w.write(dir+name, file("description: d"))
	}
	w.write(dir+"README.md", "# Agents\n")
	w.write(dir+"empty.agent.md", "# Agents\n")
	c := w.load(w.options(ScopeUser))
	is.Equal(w.found(c), []string{"a user .agents/agents/a.md", "b user .agents/agents/b.agent.md"})
	is.Equal(w.broken(c), []string{".agents/agents/empty.agent.md: " + errNoHeader.Error()})
}

func TestLoad_ABrokenFile_HidesNoOther(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write(".agents/agents/a.md", agent("a"))
	w.write(".agents/agents/b.md", file("name: [b"))
	w.write(".agents/agents/c.md", file("description: d", "user-invocable: yes", "name: gone"))
	w.write(".agents/agents/d.md", agent("d"))
	c := w.load(w.options(ScopeUser))
	is.Equal(w.found(c), []string{"a user .agents/agents/a.md", "d user .agents/agents/d.md"})
	is.Equal(len(c.Broken()), 2)
	_, err := c.Find("gone")
	var broken *FileError
	is.True(errors.As(err, &broken))
	is.Equal(w.rel(broken.Path), ".agents/agents/c.md")
	is.True(strings.Contains(err.Error(), "neither true nor false"))
}

// The user's own scout may use fewer tools than the bundled one.
func TestLoad_ABrokenFile_KeepsItsNameTaken(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write(".agents/agents/scout.md", file("description: d", "tools: 1"))
	w.write(".agents/agents/mine.agent.md", file("name: worker", "tools: 1"))
	o := w.options(ScopeUser)
	o.NoBundled = false
	c := w.load(o)
	is.Equal(w.found(c), []string{"planner bundled bundled", "reviewer bundled bundled"})
	for _, name := range []string{"scout", "worker"} {
		_, err := c.Find(name)
		var broken *FileError
		is.True(errors.As(err, &broken))
		is.True(!errors.Is(err, ErrUnknown))
	}

	w.write(".pi/agent/agents/scout.md", agent("scout")) // an earlier place is not touched by it
	is.Equal(w.found(w.load(w.options(ScopeUser))), []string{"scout user .pi/agent/agents/scout.md"})
}

func TestLoad_TwoOfOneNameInOneDirectory_TheSecondIsReported(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write(".agents/agents/a.md", agent("scout"))
	w.write(".agents/agents/b.md", agent("scout"))
	w.write(".agents/agents/scout.md", file("name: [")) // broken, and not in the way
	w.write("src/project/.pi/agents/b.md", agent("b"))
	c := w.load(w.options(ScopeBoth))
	is.Equal(w.found(c), []string{"b project src/project/.pi/agents/b.md", "scout user .agents/agents/a.md"})
	is.Equal(w.broken(c)[0], `.agents/agents/b.md: another file of this directory defines "scout" too; this one is left out`)
	is.Equal(len(c.Broken()), 2)
}

func TestLoad_Limits(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write(".agents/agents/fits.md", agent("fits")+strings.Repeat("x", maxFile-len(agent("fits"))))
	w.write(".agents/agents/over.md", agent("over")+strings.Repeat("x", maxFile-len(agent("over"))+1))
	c := w.load(w.options(ScopeUser))
	is.Equal(w.found(c), []string{"fits user .agents/agents/fits.md"})
	is.Equal(w.broken(c), []string{".agents/agents/over.md: more than 262144 bytes"})

	for i := range maxFiles + 1 {
		w.write(fmt.Sprintf(".pi/agent/agents/%04d.md", i), file("description: d"))
	}
	c = w.load(w.options(ScopeUser))
	is.Equal(len(c.All()), maxFiles+1)
	is.Equal(w.broken(c)[0], ".pi/agent/agents: 129 files; only the first 128 are read")
}

func TestLoad_TheNearestProjectCounts_ForEachKindOfDirectory(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write("src/.pi/agents/a.md", agent("outer"))
	w.write("src/.agents/agents/b.md", agent("other"))
	w.write("src/project/.pi/agents/a.md", agent("inner"))
	w.write("src/project/deep/down/x", "")
	o := w.options(ScopeProject)
	o.Project = filepath.Join(w.project, "deep", "down")
	is.Equal(w.found(w.load(o)), []string{"inner project src/project/.pi/agents/a.md", "other project src/.agents/agents/b.md"})
}

func TestLoad_AProjectBelowTheHomeDirectory_DoesNotFindTheUsersOwn(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write(".agents/agents/a.md", agent("a"))
	c := w.load(w.options(ScopeProject))
	is.Equal(w.found(c), nil)
	is.Equal(w.asked, nil)
}

func TestLoad_AProjectReachedThroughALink_HasItsRealParents(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write("src/.pi/agents/a.md", agent("real"))
	w.write("links/.pi/agents/a.md", agent("wrong"))
	w.link(w.project, "links/project")
	o := w.options(ScopeProject)
	o.Project = filepath.Join(w.home, "links", "project")
	is.Equal(w.found(w.load(o)), []string{"real project src/.pi/agents/a.md"})
}

func TestLoad_BadOptions(t *testing.T) {
	w := newWorld(t)
	tests := map[string]struct {
		o    Options
		want string
	}{
		"scope":      {Options{Home: w.home, Scope: "everyone"}, `unknown scope "everyone"`},
		"no project": {Options{Home: w.home, Scope: ScopeBoth}, "needs a project"},
	}
	for name, tt := range tests {
		_, err := Load(t.Context(), tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Load(t.Context(), Options{Home: w.home, Scope: ScopeProject, Project: filepath.Join(w.home, "gone")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestLoad_EndsWithItsContext(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	w.write("src/project/.pi/agents/a.md", agent("a"))
	ctx, cancel := context.WithCancel(t.Context())
	o := w.options(ScopeProject)
	o.Trust = func(context.Context, string, []string) bool {
		cancel() // the human went away, and the callback made a yes of it
		return true
	}
	_, err := Load(ctx, o)
	is.True(errors.Is(err, context.Canceled))
	_, err = Load(ctx, Options{Home: w.home})
	is.True(errors.Is(err, context.Canceled))
}

// Of the user's 20 definitions and the bundled ones.
func BenchmarkLoad(b *testing.B) {
	home := b.TempDir()
	dir := filepath.Join(home, ".agents", "agents")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		text := file(fmt.Sprintf("name: a%d", i), "description: does something useful", "tools: [read, grep]") + strings.Repeat("A line of the prompt.\n", 50)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a%d.md", i)), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		c, err := Load(b.Context(), Options{Home: home})
		if err != nil || len(c.All()) != 24 {
			b.Fatal(len(c.All()), err)
		}
	}
}
