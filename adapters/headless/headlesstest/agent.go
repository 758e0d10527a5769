package headlesstest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"
)

// object is one record, in either direction.
type object = map[string]any

// agent is the scripted pi.
type agent struct {
	script     Script
	mute, deaf bool

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	turn    *Turn // under way
	prompts int
}

// serve answers commands until the input ends.
func (a *agent) serve(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var cmd struct {
			ID, Type, Message string
			Confirmed         bool
		}
		if err := json.Unmarshal(line, &cmd); err != nil {
			a.emit(object{"type": "response", "command": "parse", "success": false, "error": "Failed to parse command: " + err.Error()})
			continue
		}
		answer := func(more object) { a.emit(merge(object{"id": cmd.ID, "type": "response", "command": cmd.Type}, more)) }
		switch cmd.Type {
		case "get_state":
			answer(object{"success": true, "data": object{"sessionId": "scripted", "isStreaming": a.busy()}})
			if a.deaf {
				time.Sleep(10 * time.Minute)
			}
		case "prompt":
			t, ok := a.begin(cmd.Message)
			if !ok {
				answer(object{"success": false, "error": "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."})
				break
			}
			answer(object{"success": true, "data": object{"disposition": "started"}})
			go t.run()
		case "abort":
			a.abort()
			answer(object{"success": true})
		case "extension_ui_response":
			a.answerDialog(cmd.Confirmed)
		default:
			answer(object{"success": false, "error": "Unknown command: " + cmd.Type})
		}
	}
}

func (a *agent) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turn != nil
}

func (a *agent) begin(message string) (*Turn, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn != nil {
		return nil, false
	}
	a.prompts++
	text := message
	if marker, rest, ok := strings.Cut(message, "\n"); ok && strings.HasPrefix(marker, "[sheep:") {
		text = rest
	}
	a.turn = &Turn{Message: message, Text: text, N: a.prompts, agent: a,
		aborted: make(chan struct{}), dialog: make(chan bool, 1), over: make(chan struct{})}
	return a.turn, true
}

func (a *agent) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.turn.over)
	a.turn = nil
}

// abort interrupts the turn under way and waits for its end.
func (a *agent) abort() {
	a.mu.Lock()
	t := a.turn
	a.mu.Unlock()
	if t != nil {
		close(t.aborted)
		<-t.over
	}
}

func (a *agent) answerDialog(confirmed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn != nil {
		select {
		case a.turn.dialog <- confirmed:
		default: // nobody has asked
		}
	}
}

func (a *agent) emit(o object) { a.raw(append(leading("type", o), '\n')) }

func (a *agent) raw(b []byte) {
	a.writing.Lock()
	defer a.writing.Unlock()
	if !a.mute {
		_, _ = a.out.Write(b)
	}
}

// leading encodes an object with that member first, as pi does.
func leading(first string, o object) json.RawMessage {
	rest := maps.Clone(o)
	delete(rest, first)
	b := must(json.Marshal(rest))
	head := fmt.Appendf(nil, "{%q:%q", first, o[first])
	if len(rest) > 0 {
		head = append(head, ',')
	}
	return append(head, b[1:]...)
}

func merge(a, b object) object {
	maps.Copy(a, b)
	return a
}
