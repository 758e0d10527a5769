package headless

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// text is what a message says below its marker line.
func text(message string) string {
	_, inside, _ := strings.Cut(message, "\n")
	return inside
}

func TestPi_EachPrompt_HasItsOwnEnding(t *testing.T) {
	h, pi := realPi(t)
	target := launch(t, h)
	tests := []struct {
		name   string
		prompt string
		kind   lifecycle.SignalKind
		text   string
		err    string // a part of it
		calls  int
	}{
		{"an answer", "say Grüße 🐑 \u2028!", lifecycle.Finished, "Grüße 🐑 \u2028!", "", 1},
		{"an answer in pieces", "slow 300ms word by word by word", lifecycle.Finished, "word by word by word", "", 1},
		{"an empty answer", "say", lifecycle.Finished, "", "", 1},
		{"a tool, and words like error in its output", "bash echo 'Error: provider'\nsay after the tool", lifecycle.Finished, "after the tool", "", 2},
		{"a provider failure is not the answer before it", "status 401 bad key", lifecycle.Failed, "", "bad key", 1},
		{"a passing error", "status 500 overloaded\nsay better", lifecycle.Finished, "better", "", 2},
		{"errors until the retries run out", "status 500 still overloaded", lifecycle.Failed, "", "still overloaded", 1 + pitest.Retries},
		{"and it still answers", "say fine", lifecycle.Finished, "fine", "", 1},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			is := is.New(t)
			before := pi.Model.Calls()
			id := lifecycle.PromptID(fmt.Sprintf("shepherd-prompt-%012d", i))
			submit(t, h, target, id, tt.prompt)
			s := settled(t, h, target, id)
			is.Equal(s.Kind, tt.kind)
			is.Equal(s.Text, tt.text)
			is.True(strings.Contains(s.Error, tt.err))
			is.Equal(s.Error == "", tt.err == "")
			is.Equal(pi.Model.Calls()-before, tt.calls) // of the model
			o, _ := h.Observe(target)
			is.Equal(o.State, lifecycle.Idle)
			is.Equal(o.Turns, uint64(i+1)) // a retry is no turn of its own
		})
	}
}

func TestPi_AnExtensionThatAborts_IsAnAbortedTurn(t *testing.T) {
	is := is.New(t)
	h, _ := realPi(t)
	ext := extension(t, `export default function (pi) {
		pi.on("message_update", (_, ctx) => ctx.abort());
	}`)
	target, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout", Args: []string{"-e", ext}})
	is.NoErr(err)
	submit(t, h, target, prompt1, "slow 60s a very long answer")
	is.Equal(settled(t, h, target, prompt1).Kind, lifecycle.Aborted)
}

func TestPi_ADialog_IsCancelledAndTheWorkGoesOn(t *testing.T) {
	is := is.New(t)
	h, _ := realPi(t)
	ext := extension(t, `export default function (pi) {
		pi.on("tool_call", async (_, ctx) => {
			if (!await ctx.ui.confirm("Run it?", "really")) return { block: true, reason: "nobody said yes" };
		});
	}`)
	target, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout", Args: []string{"-e", ext}})
	is.NoErr(err)
	file := filepath.Join(t.TempDir(), "made")
	submit(t, h, target, prompt1, "bash touch "+file, "say it was refused")
	is.Equal(settled(t, h, target, prompt1).Text, "it was refused")
	_, err = os.Stat(file)
	is.True(os.IsNotExist(err)) // the tool did not run
}

func TestPi_APromptThatAnExtensionTakesAway_IsRefused(t *testing.T) {
	is := is.New(t)
	h, _ := realPi(t)
	ext := extension(t, `export default function (pi) {
		pi.on("input", () => ({ action: "handled" }));
	}`)
	target, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout", Args: []string{"-e", ext}})
	is.NoErr(err)
	err = h.Submit(t.Context(), target, lifecycle.Submission{Prompt: prompt1, Text: "say hello"})
	is.True(err != nil && strings.Contains(err.Error(), "took the prompt away"))
}

func TestPi_ThatCannotStart_SaysWhy(t *testing.T) {
	is := is.New(t)
	h, _ := realPi(t)
	_, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout", Args: []string{"-e", "/no/such/extension.ts"}})
	is.True(err != nil)
	is.True(strings.Contains(err.Error(), "exit status 1"))
	is.True(strings.Contains(err.Error(), "extension.ts")) // pi's own words
}

func extension(t *testing.T, source string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.ts")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
