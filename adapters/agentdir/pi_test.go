package agentdir_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/agentdir"
	"github.com/pi-shepherd/go-shepherd/adapters/headless"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// tell is an extension that writes down with what the agent works, and has a tool of its own.
const tell = `import { writeFileSync } from "node:fs";
export default function (pi) {
	pi.registerTool({ name: "shepherd_done", label: "done", description: "done",
		parameters: { type: "object", properties: {} }, execute: async () => ({ content: [], details: {} }) });
	pi.on("before_agent_start", (event, ctx) => writeFileSync(process.env.TELL, JSON.stringify({
		Prompt: event.systemPrompt, Tools: pi.getActiveTools(), Model: ctx.model.provider + "/" + ctx.model.id })));
}`

type told struct {
	Prompt, Model string
	Tools         []string
}

// start runs a real pi with a definition and returns what it works with.
func start(t *testing.T, definition, name string) told {
	t.Helper()
	is := is.New(t)
	pi := pitest.New(t)
	dir := t.TempDir()
	write(filepath.Join(dir, "tell.ts"), tell)
	write(filepath.Join(dir, "home", ".agents", "agents", "own.md"), definition)
	write(filepath.Join(dir, "work", "AGENTS.md"), "The project's own rules.")
	catalog, err := agentdir.Load(t.Context(), agentdir.Options{Home: filepath.Join(dir, "home")})
	is.NoErr(err)
	d, err := catalog.Find(name)
	is.NoErr(err)
	spec, err := d.Apply(lifecycle.Spec{
		Dir:  filepath.Join(dir, "work"),
		Env:  map[string]string{"TELL": filepath.Join(dir, "told")},
		Args: []string{"-e", filepath.Join(dir, "tell.ts")},
	}, agentdir.Launch{Model: "scripted/scripted-1", Tools: []string{"shepherd_done"}, PromptDir: filepath.Join(dir, "prompts")})
	is.NoErr(err)

	h := headless.New(headless.Options{Command: append(pi.Program, headless.DefaultCommand()[1:]...), Env: pi.Env})
	defer func() { is.NoErr(h.CloseAll(context.Background())) }()
	target, err := h.Launch(t.Context(), spec)
	is.NoErr(err)
	is.NoErr(h.Submit(t.Context(), target, lifecycle.Submission{Prompt: "p1", Text: "say done"}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		o, changed := h.Observe(target)
		if o.Signal.Final() {
			is.Equal(o.Signal.Text, "done")
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("no answer")
		}
	}
	var told told
	data, err := os.ReadFile(filepath.Join(dir, "told"))
	is.NoErr(err)
	is.NoErr(json.Unmarshal(data, &told))
	slices.Sort(told.Tools)
	return told
}

func TestPi_WorksByABundledDefinition(t *testing.T) {
	is := is.New(t)
	told := start(t, "", "scout")
	is.Equal(told.Model, "scripted/scripted-1")
	is.Equal(told.Tools, []string{"find", "grep", "ls", "read", "shepherd_done"})
	is.True(strings.Contains(told.Prompt, "You are a scout. Somebody else will work with what you find, without having seen\nthe files."))
	is.True(strings.Contains(told.Prompt, "pi, a coding agent harness")) // it was added
	is.True(strings.Contains(told.Prompt, "The project's own rules."))
}

func TestPi_WorksByADefinitionThatLeavesAllOut(t *testing.T) {
	is := is.New(t)
	told := start(t, `---
name: bare
description: d
model: scripted/another
tools: []
omit-system-prompt: true
omit-context-files: true
---
You are bare. "$HOME" 'é' 🐑
	Second line.`, "bare")
	is.Equal(told.Model, "scripted/another")
	is.Equal(told.Tools, []string{"shepherd_done"})
	is.True(strings.HasPrefix(told.Prompt, "You are bare. \"$HOME\" 'é' 🐑\n\tSecond line."))
	is.True(!strings.Contains(told.Prompt, "harness"))
	is.True(!strings.Contains(told.Prompt, "Pi documentation"))
	is.True(!strings.Contains(told.Prompt, "The project's own rules."))
}
