package agentdir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

func TestApply_Arguments(t *testing.T) {
	tests := map[string]struct {
		d    Definition
		l    Launch
		want []string
	}{
		"nothing said":                {Definition{}, Launch{}, nil},
		"the parent's model":          {Definition{}, Launch{Model: "p/m"}, []string{"--model", "p/m"}},
		"its own model":               {Definition{Model: "o/n"}, Launch{Model: "p/m"}, []string{"--model", "o/n"}},
		"pi's tools":                  {Definition{}, Launch{Tools: []string{"done"}}, nil},
		"its own tools":               {Definition{Tools: []string{"read", "ls"}}, Launch{}, []string{"--tools", "read,ls"}},
		"its own tools and the child": {Definition{Tools: []string{"read", "done"}}, Launch{Tools: []string{"done", "ask"}}, []string{"--tools", "read,done,ask"}},
		"no tools":                    {Definition{NoTools: true}, Launch{}, []string{"--no-tools"}},
		"no tools but the child's":    {Definition{NoTools: true}, Launch{Tools: []string{"done"}}, []string{"--tools", "done"}},
		"no context files":            {Definition{OmitContextFiles: true}, Launch{}, []string{"--no-context-files"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			tt.d.Name = "scout"
			given := lifecycle.Spec{Name: "other", Label: "retry", Dir: "/x", Args: []string{"--thinking", "low"}}
			got, err := tt.d.Apply(given, tt.l)
			is.NoErr(err)
			is.Equal(got, lifecycle.Spec{Name: "scout", Label: "retry", Dir: "/x", Args: append(tt.want, "--thinking", "low")})
			is.Equal(given.Args, []string{"--thinking", "low"})
		})
	}
}

func TestApply_ThePromptIsAFile(t *testing.T) {
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "new", "prompts")
	d := Definition{Name: "scout", Prompt: "You are a scout.\n\n\tLook. `$HOME` 🐑\n" + strings.Repeat("x", 200<<10)}
	s, err := d.Apply(lifecycle.Spec{}, Launch{PromptDir: dir})
	is.NoErr(err)
	is.Equal(len(s.Args), 2)
	is.Equal(s.Args[0], "--append-system-prompt")
	is.True(filepath.IsAbs(s.Args[1]))
	is.True(!strings.ContainsFunc(s.Args[1], unicode.IsControl)) // a pane could not take it
	text, err := os.ReadFile(s.Args[1])
	is.NoErr(err)
	is.Equal(string(text), d.Prompt)

	d.OmitSystemPrompt = true
	again, err := d.Apply(lifecycle.Spec{}, Launch{PromptDir: dir})
	is.NoErr(err)
	is.Equal(again.Args, []string{"--system-prompt", s.Args[1]}) // the same file

	d.Prompt += "."
	other, err := d.Apply(lifecycle.Spec{}, Launch{PromptDir: dir})
	is.NoErr(err)
	is.True(other.Args[1] != s.Args[1])
	is.Equal(len(list(t, dir)), 2)

	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{dir: 0o700, s.Args[1]: 0o600} {
			info, err := os.Stat(name)
			is.NoErr(err)
			is.Equal(info.Mode().Perm(), want)
		}
	}
}

func TestApply_ATornPromptFile_IsWrittenAgain(t *testing.T) {
	is := is.New(t)
	d := Definition{Name: "scout", Prompt: "You are a scout."}
	l := Launch{PromptDir: t.TempDir()}
	s, err := d.Apply(lifecycle.Spec{}, l)
	is.NoErr(err)
	is.NoErr(os.WriteFile(s.Args[1], []byte("You are"), 0o600))
	_, err = d.Apply(lifecycle.Spec{}, l)
	is.NoErr(err)
	text, err := os.ReadFile(s.Args[1])
	is.NoErr(err)
	is.Equal(string(text), d.Prompt)
}

func TestApply_ManyAtOnce_LeaveOneWholeFile(t *testing.T) {
	is := is.New(t)
	d := Definition{Name: "scout", Prompt: strings.Repeat("You are a scout. ", 1000)}
	l := Launch{PromptDir: t.TempDir()}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			s, err := d.Apply(lifecycle.Spec{}, l)
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(s.Args[1]); err != nil || string(text) != d.Prompt {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	wg.Wait()
	is.Equal(len(list(t, l.PromptDir)), 1)
}

func TestApply_Fails(t *testing.T) {
	is := is.New(t)
	d := Definition{Name: "scout", Prompt: "You are a scout."}
	_, err := d.Apply(lifecycle.Spec{Kind: "claude"}, Launch{PromptDir: t.TempDir()})
	is.True(errors.Is(err, lifecycle.ErrInvalid))

	file := filepath.Join(t.TempDir(), "file")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	s, err := d.Apply(lifecycle.Spec{Name: "x"}, Launch{PromptDir: file})
	is.True(err != nil)
	is.Equal(s, lifecycle.Spec{})
	is.True(strings.Contains(err.Error(), `agent "scout"`))
}

func TestApply_TheUsersCache_IsTheDefault(t *testing.T) {
	is := is.New(t)
	home := t.TempDir()
	for _, v := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(v, home)
	}
	s, err := Definition{Name: "scout", Prompt: "x"}.Apply(lifecycle.Spec{}, Launch{})
	is.NoErr(err)
	is.True(strings.HasPrefix(s.Args[1], home))
	is.True(strings.Contains(filepath.ToSlash(s.Args[1]), "/shepherd/prompts/"))
}

// What checkName lets through, lifecycle starts.
func TestName_IsFitForASpec(t *testing.T) {
	is := is.New(t)
	registry, err := lifecycle.New(new(lifecycletest.Herdr), lifecycle.Options{})
	is.NoErr(err)
	defer registry.Close(t.Context())
	for _, name := range []string{"a", "Code Reviewer", "../x", "-x", strings.Repeat("🐑", maxName), "ü"} {
		d, err := parse([]byte(file("name: "+name, "description: d")), "stem")
		is.NoErr(err)
		d.Prompt = ""
		s, err := d.Apply(lifecycle.Spec{}, Launch{})
		is.NoErr(err)
		_, err = registry.Start(t.Context(), s)
		is.NoErr(err)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
