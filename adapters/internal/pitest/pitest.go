// Package pitest runs a real pi in tests: the pinned one that `make pi` installs, with a
// home of its own and a scripted model server on this machine. No account, no network.
package pitest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Version is the pi that the lock file in npm/ pins.
const Version = "1.6.0"

// Pi is an installed pi, set up for one test.
type Pi struct {
	Program []string          // node and pi's main file; pi's own arguments follow
	Env     map[string]string // private home and settings
	Model   *Model            // what its model says
}

// New finds pi, gives it an empty home and starts a model server; both are gone when the
// test ends. Without an installed pi the test is skipped, or fails where CI=true.
func New(t testing.TB) *Pi {
	t.Helper()
	program := program(t)
	home := t.TempDir()
	model := NewModel(t)
	write(t, filepath.Join(home, "agent", "models.json"), object{"providers": object{provider: object{
		"baseUrl": model.URL + "/v1",
		"api":     "openai-completions",
		"apiKey":  "none",
		"models": []object{{
			"id": modelID, "name": "Scripted", "reasoning": false, "input": []string{"text"},
			"cost":          object{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
			"contextWindow": 1_000_000, "maxTokens": 4096,
		}},
	}}})
	write(t, filepath.Join(home, "agent", "settings.json"), object{
		"defaultProvider": provider,
		"defaultModel":    modelID,
		"retry":           object{"maxRetries": Retries, "baseDelayMs": 10},
	})
	return &Pi{
		Program: program,
		Env: map[string]string{
			"HOME":                home,
			"PI_CODING_AGENT_DIR": filepath.Join(home, "agent"),
			"PI_TELEMETRY":        "0",
		},
		Model: model,
	}
}

const (
	provider = "scripted"
	modelID  = "scripted-1"
)

// Retries is how often this pi tries a failed call again.
const Retries = 2

type object = map[string]any

func program(t testing.TB) []string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	modules := filepath.Join(filepath.Dir(here), "npm", "node_modules")
	node := filepath.Join(modules, "node", "bin", "node")
	if runtime.GOOS == "windows" {
		node += ".exe"
	}
	cli := filepath.Join(modules, "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js")
	for _, file := range []string{node, cli} {
		if _, err := os.Stat(file); err != nil {
			missing := t.Skipf
			if os.Getenv("CI") == "true" {
				missing = t.Fatalf
			}
			missing("no pi %s to test with (run `make pi`; it needs npm): %v", Version, err)
		}
	}
	return []string{node, cli}
}

func write(t testing.TB, name string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
