// Package turns knows how pi's events tell the story of one prompt. It is pure: a value
// that events move on, so the same rules can serve every way of listening to a pi.
//
//	message_end, user, with our marker     the prompt's own turn has begun
//	message_end, assistant                 may be its result: the last one counts
//	message_end, user, without the marker  somebody else's; what follows answers that one
//	agent_end, auto_retry_*                say nothing: a retry may follow (ruling R4)
//	agent_settled                          final
//
// The extension inside an interactive pi (adapters/pi/extension/child.ts) follows the same
// rules; a test in adapters/pi holds the two together.
package turns

import (
	"strings"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Event is what is needed of one of pi's events. Events of other types may be left out.
type Event struct {
	Type    string  // "agent_start", "message_end", "agent_settled"
	Message Message // of message_end
	Aborted bool    // of agent_settled
}

// Message is a message that has ended.
type Message struct {
	Role  string // "user", "assistant", or one that does not matter here
	Text  string // its text parts, joined; of a user's message the beginning is enough
	Stop  string // the assistant's stop reason: "stop", "length", "toolUse", "error", "aborted"
	Error string // what the provider said, with stop reason "error"
}

// Tracker follows one agent. The zero value is an agent at rest without a prompt.
type Tracker struct {
	// Busy: from the start of a run until pi has settled, retries and all.
	Busy bool
	// Turns counts how often the agent left its rest. A retry, a queued message and a
	// compaction belong to the turn that they happen in.
	Turns uint64
	// Signal is the newest word about the prompt, its time left open.
	Signal lifecycle.Signal

	prompt   lifecycle.PromptID
	ours     bool // the newest user message is the prompt
	answered bool
	answer   Message // the last assistant message that belongs to the prompt
}

// Expect returns the tracker waiting for prompt p; what was before it is over.
func (t Tracker) Expect(p lifecycle.PromptID) Tracker {
	return Tracker{Busy: t.Busy, Turns: t.Turns, prompt: p}
}

// Reply returns the last text that the agent has said for prompt p so far.
func (t Tracker) Reply(p lifecycle.PromptID) string {
	if p != t.prompt {
		return ""
	}
	return t.answer.Text
}

// Next returns the tracker moved on by one event.
func (t Tracker) Next(e Event) Tracker {
	switch e.Type {
	case "agent_start":
		if !t.Busy {
			t.Turns++
		}
		t.Busy = true
	case "message_end":
		t.hear(e.Message)
	case "agent_settled":
		t.Busy = false
		if t.Signal.Kind == lifecycle.Started {
			t.Signal = t.ending(e.Aborted)
		}
	}
	return t
}

func (t *Tracker) hear(m Message) {
	switch {
	case t.Signal.Final() || t.prompt == "":
	case m.Role == "user":
		t.ours = strings.Contains(m.Text, marker(t.prompt))
		if t.ours {
			t.Signal = lifecycle.Signal{Prompt: t.prompt, Kind: lifecycle.Started}
			t.answered, t.answer = false, Message{}
		}
	case m.Role == "assistant" && t.ours:
		t.answered, t.answer = true, m
	}
}

// ending says how the prompt ended. The flag counts where the answer itself cannot tell:
// an abort while pi waits before a retry leaves the error as the last message.
func (t *Tracker) ending(aborted bool) lifecycle.Signal {
	s := lifecycle.Signal{Prompt: t.prompt, Text: t.answer.Text}
	aborted = aborted && t.ours && t.answer.Stop != "stop" && t.answer.Stop != "length"
	switch {
	case aborted || t.answer.Stop == "aborted":
		s.Kind = lifecycle.Aborted
	case t.answer.Stop == "error":
		s.Kind, s.Error = lifecycle.Failed, t.answer.Error
		if s.Error == "" {
			s.Error = "the model call failed; the provider gave no message"
		}
	case !t.answered:
		s.Kind, s.Error = lifecycle.Failed, "the agent settled without an answer"
	default:
		s.Kind = lifecycle.Finished // also with an empty text
	}
	return s
}
