package agentdir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pi-shepherd/go-shepherd/adapters/agentdir"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// A user has a definition of their own, which comes before the bundled one of its name.
func Example() {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	write(filepath.Join(home, ".agents", "agents", "reviewer.agent.md"), `---
description: Looks for races, and for nothing else.
tools: [read, grep]
---
You look for data races in Go programs.
`)

	ctx := context.Background()
	catalog, err := agentdir.Load(ctx, agentdir.Options{Home: home}) // without Home: the current user's
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range catalog.All() {
		fmt.Printf("%-8s %s\n", d.Name, d.Level)
	}
	_, err = catalog.Find("reviwer")
	fmt.Println(err)

	reviewer, err := catalog.Find("reviewer")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := reviewer.Apply(lifecycle.Spec{Label: "parser"}, agentdir.Launch{
		Model:     "anthropic/claude-sonnet-4-5", // the parent's
		Tools:     []string{"shepherd_done"},     // what every child keeps
		PromptDir: filepath.Join(home, "prompts"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	last := len(spec.Args) - 1 // the file with the system prompt
	fmt.Println(spec.Name, spec.Label, strings.Join(spec.Args[:last], " "))
	// Output:
	// planner  bundled
	// reviewer user
	// scout    bundled
	// worker   bundled
	// agentdir: unknown agent "reviwer"; did you mean "reviewer"?; there are planner, reviewer, scout, worker
	// reviewer parser --model anthropic/claude-sonnet-4-5 --tools read,grep,shepherd_done --append-system-prompt
}

func write(name, text string) {
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Println(err)
	}
}
