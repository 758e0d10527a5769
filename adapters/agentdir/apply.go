package agentdir

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Launch is what a definition leaves to whoever starts the agent.
type Launch struct {
	// Model is the parent's, as pi's --model takes it (provider/id), for a definition that
	// names none. "" leaves the choice to the agent's pi.
	Model string
	// Tools are what the agent must have whatever its definition says, such as those of the
	// child's extension: where a definition names tools, pi removes all others.
	Tools []string
	// PromptDir is where system prompts are kept as files. "" is shepherd/prompts in the
	// user's cache directory. It is made if it is missing, for the user alone.
	PromptDir string
}

// Apply returns the spec of an agent with this definition: its name is the definition's, and
// the definition's flags come before the spec's own arguments, which therefore win. The spec
// that was given stays as it is.
//
// The system prompt is handed over as a file. A pane's program is started by typing its
// arguments, so none can hold a line break; one argument has at most 128 KiB on Linux; everybody
// on the machine can read it; and pi would take a text for the name of a file that exists. The
// file is named after its content and never removed: a running pi reads it again at a reload.
//
// Errors: lifecycle.ErrInvalid for an agent that is not a pi; whatever prevents writing the
// file. Apply does not block beyond that, and may be called by many at once.
func (d Definition) Apply(s lifecycle.Spec, l Launch) (lifecycle.Spec, error) {
	if s.Kind != "" && s.Kind != "pi" {
		return lifecycle.Spec{}, fmt.Errorf("agentdir: %w: agent %q is defined for pi, not for %q", lifecycle.ErrInvalid, d.Name, s.Kind)
	}
	var args []string
	if model := cmp.Or(d.Model, l.Model); model != "" {
		args = append(args, "--model", model)
	}
	args = append(args, d.toolArgs(l.Tools)...)
	if d.OmitContextFiles {
		args = append(args, "--no-context-files")
	}
	if d.Prompt != "" {
		file, err := keep(l.PromptDir, d.Prompt)
		if err != nil {
			return lifecycle.Spec{}, fmt.Errorf("agentdir: the system prompt of agent %q: %w", d.Name, err)
		}
		flag := "--append-system-prompt"
		if d.OmitSystemPrompt {
			flag = "--system-prompt"
		}
		args = append(args, flag, file)
	}
	s.Name, s.Args = d.Name, slices.Concat(args, s.Args)
	return s, nil
}

func (d Definition) toolArgs(always []string) []string {
	if len(d.Tools) == 0 && !d.NoTools {
		return nil
	}
	tools := slices.Clone(d.Tools)
	for _, t := range always {
		if !slices.Contains(tools, t) {
			tools = append(tools, t)
		}
	}
	if len(tools) == 0 {
		return []string{"--no-tools"}
	}
	return []string{"--tools", strings.Join(tools, ",")}
}

// keep returns the path of a file in dir that holds the text.
func keep(dir, text string) (string, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "shepherd", "prompts")
	}
	dir, err := filepath.Abs(dir) // the agent works elsewhere
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(text))
	file := filepath.Join(dir, hex.EncodeToString(sum[:16])+".md")
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, []byte(text)) {
		return file, nil
	}
	return file, replace(file, text)
}

// replace writes the whole file or nothing: an agent may be about to read it.
func replace(file, text string) error {
	temp, err := os.CreateTemp(filepath.Dir(file), ".prompt-*") // for the user alone
	if err != nil {
		return err
	}
	_, err = temp.WriteString(text)
	if e := temp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
