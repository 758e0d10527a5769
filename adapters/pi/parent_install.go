package pi

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed extension/parent.ts
var parentExtension []byte

//go:embed extension/package.json
var parentPackage []byte

// InstallExtension puts the parent's extension where every pi of the user finds it: into
// extensions/shepherd of pi's agent directory, which is $PI_CODING_AGENT_DIR or ~/.pi/agent
// for agentDir "". What an earlier version left there is replaced. It returns the directory.
// Errors are those of the file system.
func InstallExtension(agentDir string) (string, error) {
	if agentDir == "" {
		agentDir = os.Getenv("PI_CODING_AGENT_DIR")
	}
	if agentDir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("pi: install the extension: %w", err)
		}
		agentDir = filepath.Join(home, ".pi", "agent")
	}
	dir := filepath.Join(agentDir, "extensions", "shepherd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("pi: install the extension: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"tools.json", parentTools}, {"parent.ts", parentExtension}, {"package.json", parentPackage}} {
		if err := replaceFile(filepath.Join(dir, f.name), f.data); err != nil {
			return "", fmt.Errorf("pi: install the extension: %w", err)
		}
	}
	return dir, nil
}

// replaceFile writes the whole file or nothing: a pi may be reading it.
func replaceFile(name string, data []byte) error {
	temp := name + ".new"
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
