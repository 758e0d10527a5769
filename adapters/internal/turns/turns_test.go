package turns

import (
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

const (
	one = lifecycle.PromptID("shepherd-prompt-0a1b2c3d-6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
	two = lifecycle.PromptID("shepherd-prompt-0a1b2c3d-7c9e6679-7425-40de-944b-e07fc1f90ae7")
)

var (
	start   = Event{Type: "agent_start"}
	end     = Event{Type: "agent_end"}
	settled = Event{Type: "agent_settled"}
	stopped = Event{Type: "agent_settled", Aborted: true}
)

func message(role, text string) Event {
	return Event{Type: "message_end", Message: Message{Role: role, Text: text}}
}
func prompt(p lifecycle.PromptID) Event {
	return message("user", Wrap(lifecycle.Submission{Prompt: p, Text: "do it"}))
}
func says(text, stop string) Event {
	return Event{Type: "message_end", Message: Message{Role: "assistant", Text: text, Stop: stop}}
}
func fails(msg string) Event {
	return Event{Type: "message_end", Message: Message{Role: "assistant", Stop: "error", Error: msg}}
}

func TestTracker(t *testing.T) {
	finished := func(text string) lifecycle.Signal {
		return lifecycle.Signal{Prompt: one, Kind: lifecycle.Finished, Text: text}
	}
	failed := func(msg string) lifecycle.Signal {
		return lifecycle.Signal{Prompt: one, Kind: lifecycle.Failed, Error: msg}
	}
	aborted := func(text string) lifecycle.Signal {
		return lifecycle.Signal{Prompt: one, Kind: lifecycle.Aborted, Text: text}
	}
	started := lifecycle.Signal{Prompt: one, Kind: lifecycle.Started}
	none := lifecycle.Signal{}

	tests := map[string]struct {
		events []Event
		want   lifecycle.Signal
		turns  uint64
		busy   bool
	}{
		"nothing yet":                           {nil, none, 0, false},
		"a run has begun, not yet our turn":     {[]Event{start}, none, 1, true},
		"our turn has begun":                    {[]Event{start, prompt(one)}, started, 1, true},
		"answered, not settled":                 {[]Event{start, prompt(one), says("done", "stop"), end}, started, 1, true},
		"answered":                              {[]Event{start, prompt(one), says("done", "stop"), end, settled}, finished("done"), 1, false},
		"an empty answer is an answer":          {[]Event{start, prompt(one), says("", "stop"), settled}, finished(""), 1, false},
		"cut at the token limit":                {[]Event{start, prompt(one), says("half", "length"), settled}, finished("half"), 1, false},
		"tools: the last message counts":        {[]Event{start, prompt(one), says("look", "toolUse"), message("toolResult", "Error: no"), says("done", "stop"), settled}, finished("done"), 1, false},
		"ended by a tool":                       {[]Event{start, prompt(one), says("bye", "toolUse"), message("toolResult", "ok"), settled}, finished("bye"), 1, false},
		"error words in an answer are no error": {[]Event{start, prompt(one), says("Error: none", "stop"), settled}, finished("Error: none"), 1, false},
		"provider failure":                      {[]Event{start, prompt(one), fails("401: bad key"), end, settled}, failed("401: bad key"), 1, false},
		"failure without a message":             {[]Event{start, prompt(one), fails(""), settled}, failed("the model call failed; the provider gave no message"), 1, false},
		"failed, retried, answered":             {[]Event{start, prompt(one), fails("500"), end, start, says("done", "stop"), end, settled}, finished("done"), 1, false},
		"failed, retry under way":               {[]Event{start, prompt(one), fails("500"), end, start}, started, 1, true},
		"retries run out":                       {[]Event{start, prompt(one), fails("500 a"), end, start, fails("500 b"), end, settled}, failed("500 b"), 1, false},
		"aborted":                               {[]Event{start, prompt(one), says("so far", "aborted"), end, stopped}, aborted("so far"), 1, false},
		"aborted, older pi without the flag":    {[]Event{start, prompt(one), says("so far", "aborted"), settled}, aborted("so far"), 1, false},
		"aborted before the first word":         {[]Event{start, prompt(one), stopped}, aborted(""), 1, false},
		"aborted between two attempts":          {[]Event{start, prompt(one), fails("500"), end, stopped}, aborted(""), 1, false},
		"aborted after the answer":              {[]Event{start, prompt(one), says("done", "stop"), stopped}, finished("done"), 1, false},
		"settled without an answer":             {[]Event{start, prompt(one), settled}, failed("the agent settled without an answer"), 1, false},
		"a turn that is not ours":               {[]Event{start, message("user", "hello"), says("hi", "stop"), settled}, none, 1, false},
		"the prompt before ours, late":          {[]Event{start, prompt(two), says("old", "stop"), settled}, none, 1, false},
		"a human's message joins our turn":      {[]Event{start, prompt(one), says("done", "stop"), message("user", "and?"), says("hi", "stop"), settled}, finished("done"), 1, false},
		"the human's part of it is aborted":     {[]Event{start, prompt(one), says("done", "stop"), message("user", "and?"), says("", "aborted"), stopped}, finished("done"), 1, false},
		"our prompt joins another's turn":       {[]Event{start, message("user", "hello"), says("hi", "stop"), prompt(one), says("done", "stop"), settled}, finished("done"), 1, false},
		"what comes after the end changes it not": {
			[]Event{start, prompt(one), says("done", "stop"), settled, start, message("user", "more"), fails("401"), stopped}, finished("done"), 2, false},
		"the marker stands further down": {[]Event{start, message("user", "context\n"+marker(one)+"\ndo it"), says("done", "stop"), settled}, finished("done"), 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			tr := Tracker{}.Expect(one)
			for _, e := range tt.events {
				tr = tr.Next(e)
			}
			is.Equal(tr.Signal, tt.want)
			is.Equal(tr.Turns, tt.turns)
			is.Equal(tr.Busy, tt.busy)
		})
	}
}

func TestTracker_TheNextPrompt_KnowsNothingOfTheLast(t *testing.T) {
	is := is.New(t)
	tr := Tracker{}.Expect(one)
	for _, e := range []Event{start, prompt(one), says("one", "stop"), settled} {
		tr = tr.Next(e)
	}
	tr = tr.Expect(two)
	is.Equal(tr.Signal, lifecycle.Signal{})
	is.Equal(tr.Turns, uint64(1))
	is.Equal(tr.Reply(one), "")

	for _, e := range []Event{start, prompt(two), says("two, so far", "toolUse")} {
		tr = tr.Next(e)
	}
	is.Equal(tr.Reply(two), "two, so far")
	tr = tr.Next(fails("401")).Next(settled)
	is.Equal(tr.Signal.Kind, lifecycle.Failed)
	is.Equal(tr.Signal.Text, "") // not an older answer
	is.Equal(tr.Turns, uint64(2))
}

func TestWrap_KeepsTheTextByteForByte(t *testing.T) {
	is := is.New(t)
	text := " /quit\r\n\t!ls @x \u2028 [sheep:no] \x00"
	line, inside, ok := strings.Cut(Wrap(lifecycle.Submission{Prompt: one, Text: text}), "\n")
	is.True(ok)
	is.Equal(line, "[sheep:00cf4fc964ff]")
	is.Equal(inside, text)
}
