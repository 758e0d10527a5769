package headless

import (
	"encoding/json"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/jsonl"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
)

// What we write: one object a line.

type command struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

// A prompt carries no streamingBehavior: a pi that is at work then refuses it, in one step
// with its own state, instead of queueing it (ruling R8).
func promptLine(id, text string) []byte { return line(command{id, "prompt", text}) }
func stateLine(id string) []byte        { return line(command{ID: id, Type: "get_state"}) }

// cancelLine answers a dialog the way escape would.
func cancelLine(dialog string) []byte {
	return line(struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Cancelled bool   `json:"cancelled"`
	}{"extension_ui_response", dialog, true})
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings and bools
	}
	return append(b, '\n')
}

// What we read. A record holds the few members that matter, whatever type it is of; the
// rest of a line is never held in memory.

const (
	maxWord  = 1 << 10  // bytes of ids, types and reasons that are kept
	maxError = 64 << 10 // bytes of error messages
	maxUser  = 64 << 10 // bytes of a user's message, for the marker near its beginning
	maxText  = 64 << 20 // bytes of an assistant's message: far above what any model says
)

type record struct {
	Type    string
	ID      string
	Success bool   // response
	Error   string // response
	Outcome string // response to a prompt: "started", "queued", "handled"
	Method  string // extension_ui_request
	turns.Event
}

func readRecord(r *jsonl.Reader) (record, error) {
	var rec record
	err := r.Object(func(key string) (err error) {
		switch key {
		case "type":
			rec.Type, err = r.String(maxWord)
		case "id":
			rec.ID, err = r.String(maxWord)
		case "success":
			rec.Success, err = r.Bool()
		case "error":
			rec.Error, err = r.String(maxError)
		case "data":
			rec.Outcome, err = readMember(r, "disposition")
		case "method":
			rec.Method, err = r.String(maxWord)
		case "aborted":
			rec.Aborted, err = r.Bool()
		case "message":
			if rec.Type == "message_end" || rec.Type == "" {
				rec.Message, err = readMessage(r)
			}
		}
		return err
	})
	rec.Event.Type = rec.Type
	return rec, err
}

// readMessage reads role before content where pi writes them, so that tool results and
// other people's messages are not kept; in another order they are only kept for a moment.
func readMessage(r *jsonl.Reader) (turns.Message, error) {
	var m turns.Message
	err := r.Object(func(key string) (err error) {
		switch key {
		case "role":
			m.Role, err = r.String(maxWord)
		case "content":
			m.Text, err = readContent(r, m.Role)
		case "stopReason":
			m.Stop, err = r.String(maxWord)
		case "errorMessage":
			m.Error, err = r.String(maxError)
		}
		return err
	})
	return m, err
}

// readContent joins the text parts of a content, which may also be one string.
func readContent(r *jsonl.Reader, role string) (string, error) {
	room := 0
	switch role {
	case "assistant", "":
		room = maxText
	case "user":
		room = maxUser
	}
	if r.Kind() == '"' {
		return r.String(room)
	}
	text := ""
	err := r.Array(func() error {
		kind, part := "", ""
		err := r.Object(func(key string) (err error) {
			switch key {
			case "type":
				kind, err = r.String(maxWord)
			case "text":
				part, err = r.String(room - len(text))
			}
			return err
		})
		if kind == "text" {
			text += part
		}
		return err
	})
	return text, err
}

func readMember(r *jsonl.Reader, name string) (value string, err error) {
	err = r.Object(func(key string) (err error) {
		if key == name {
			value, err = r.String(maxWord)
		}
		return err
	})
	return value, err
}
