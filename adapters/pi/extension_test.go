package pi

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// node runs Node.js, the one that pi is tested with, in the extension's folder.
func node(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pitest.New(t).Program[0], args...)
	cmd.Dir = "extension"
	return cmd
}

func TestExtension(t *testing.T) {
	if out, err := node(t, "--test").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The rules by which events become a signal stand in Go, in package turns, and in the
// extension: the same random stories must have the same end in both.
func TestExtension_TellsTheSameStoryAsPackageTurns(t *testing.T) {
	is := is.New(t)
	const seed, stories = 1, 2000
	rng := rand.New(rand.NewPCG(seed, seed))
	var all [][]any
	var want []turns.Tracker
	for range stories {
		turn := turns.Tracker{}.Expect("p")
		var story []any
		for range 1 + rng.IntN(12) {
			e := randomEvent(rng)
			turn = turn.Next(e)
			story = append(story, asPi(e))
		}
		all, want = append(all, story), append(want, turn)
	}

	in, err := json.Marshal(all)
	is.NoErr(err)
	cmd := node(t, "replay.ts")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	is.NoErr(err)
	var got []struct {
		Busy   bool
		Turns  uint64
		Signal signal
	}
	is.NoErr(json.Unmarshal(out, &got))
	is.Equal(len(got), stories)

	ends := map[lifecycle.SignalKind]int{}
	for i, g := range got {
		s := g.Signal.decode()
		s.At = want[i].Signal.At
		if g.Busy != want[i].Busy || g.Turns != want[i].Turns || s != want[i].Signal {
			story, _ := json.Marshal(all[i])
			t.Errorf("story %d (seed %d): %s\nextension: %+v\nturns:     %+v", i, seed, story, g, want[i])
		}
		ends[s.Kind]++
	}
	for _, k := range []lifecycle.SignalKind{lifecycle.NoSignal, lifecycle.Started, lifecycle.Finished, lifecycle.Failed, lifecycle.Aborted} {
		is.True(ends[k] > stories/50) // the stories are worth something
	}
}

func randomEvent(rng *rand.Rand) turns.Event {
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	switch rng.IntN(8) {
	case 0, 1:
		return turns.Event{Type: "agent_start"}
	case 2:
		return turns.Event{Type: "agent_settled", Aborted: rng.IntN(3) == 0}
	case 3, 4:
		return turns.Event{Type: "message_end", Message: turns.Message{Role: "user", Text: pick("[sheep:p]\ndo it", "[sheep:p]\ndo it", "hello", "x\n[sheep:p]", "[sheep:q]\nold")}}
	case 5:
		return turns.Event{Type: "message_end", Message: turns.Message{Role: pick("toolResult", "custom", "system"), Text: pick("", "[sheep:p]", "no")}}
	default:
		stop := pick("stop", "stop", "length", "toolUse", "error", "aborted")
		m := turns.Message{Role: "assistant", Text: pick("", "a", "b"), Stop: stop}
		if stop == "error" {
			m.Error = pick("", "500", "401")
		}
		return turns.Event{Type: "message_end", Message: m}
	}
}

// asPi is the event as pi gives it to an extension. A text comes in two parts.
func asPi(e turns.Event) any {
	type object = map[string]any
	half := len(e.Message.Text) / 2
	m := object{"role": e.Message.Role, "content": []object{
		{"type": "text", "text": e.Message.Text[:half]},
		{"type": "thinking", "thinking": "[sheep:p]"},
		{"type": "text", "text": e.Message.Text[half:]},
	}}
	if e.Message.Role == "user" && strings.HasPrefix(e.Message.Text, "hello") {
		m["content"] = e.Message.Text // as older entries are
	}
	if e.Message.Stop != "" {
		m["stopReason"] = e.Message.Stop
	}
	if e.Message.Error != "" {
		m["errorMessage"] = e.Message.Error
	}
	return object{"type": e.Type, "message": m, "aborted": e.Aborted}
}
