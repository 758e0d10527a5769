package pitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Model is an OpenAI-compatible model server that does what the newest user message says:
// its first call for that message does the first of these lines, the second call the
// second, and so on; the last line serves all further calls. Other lines mean nothing.
//
//	say WORDS              answer
//	slow 500ms WORDS       answer word by word over that time
//	bash COMMAND           call the bash tool
//	status 401 MESSAGE     answer with that HTTP status and message
//	hang                   never answer
//
// So "status 500 x\nsay done" is a passing error, and "bash ls\nsay done" a tool call.
type Model struct {
	URL string

	mu    sync.Mutex
	calls map[string]int // by user message
	last  string         // the newest user message
	count int
}

// NewModel starts a server that ends with the test.
func NewModel(t testing.TB) *Model {
	m := &Model{calls: make(map[string]int)}
	srv := httptest.NewServer(m)
	t.Cleanup(func() {
		srv.CloseClientConnections() // a call may hang on purpose
		srv.Close()
	})
	m.URL = srv.URL
	return m
}

// Received returns the newest user message, as the model got it.
func (m *Model) Received() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Calls returns how many calls there were.
func (m *Model) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// ServeHTTP answers one call.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	user := ""
	for _, msg := range call.Messages {
		if msg.Role == "user" {
			user = plain(msg.Content)
		}
	}
	verb, rest := m.next(user)
	s := stream{w}
	switch verb {
	case "say":
		s.say(rest)
	case "slow":
		span, words, _ := strings.Cut(rest, " ")
		s.slowly(r, words, span)
	case "bash":
		s.call("bash", object{"command": rest})
	case "status":
		code, message, _ := strings.Cut(rest, " ")
		fail(w, code, message)
	case "hang":
		<-r.Context().Done()
	default:
		s.say("")
	}
}

// next returns what to do at this call for the user message.
func (m *Model) next(user string) (verb, rest string) {
	m.mu.Lock()
	n := m.calls[user]
	m.calls[user]++
	m.count++
	m.last = user
	m.mu.Unlock()

	var script []string
	for line := range strings.Lines(user) {
		line = strings.TrimRight(line, "\r\n")
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "say", "slow", "bash", "status", "hang":
			script = append(script, line)
		}
	}
	if len(script) == 0 {
		return "", ""
	}
	verb, rest, _ = strings.Cut(script[min(n, len(script)-1)], " ")
	return verb, rest
}

// plain returns a content's text: a string, or the text parts of a list.
func plain(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		s += p.Text
	}
	return s
}

func fail(w http.ResponseWriter, code, message string) {
	status, err := strconv.Atoi(code)
	if err != nil {
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": message, "type": "scripted"}})
}

// stream writes a streamed answer.
type stream struct{ w http.ResponseWriter }

func (s stream) say(words string) {
	s.delta(object{"role": "assistant", "content": words})
	s.end("stop")
}

func (s stream) slowly(r *http.Request, words, span string) {
	d, err := time.ParseDuration(span)
	if err != nil {
		s.say("pitest: " + err.Error())
		return
	}
	parts := strings.SplitAfter(words, " ")
	pause := time.NewTicker(max(1, d/time.Duration(len(parts))))
	defer pause.Stop()
	for _, part := range parts {
		s.delta(object{"role": "assistant", "content": part})
		select {
		case <-pause.C:
		case <-r.Context().Done():
			return
		}
	}
	s.end("stop")
}

func (s stream) call(tool string, args object) {
	arguments, _ := json.Marshal(args)
	s.delta(object{"role": "assistant", "content": nil, "tool_calls": []object{{
		"index": 0, "id": fmt.Sprintf("call_%d", time.Now().UnixNano()), "type": "function",
		"function": object{"name": tool, "arguments": string(arguments)},
	}}})
	s.end("tool_calls")
}

func (s stream) delta(delta object) {
	s.event(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": nil}}})
}

func (s stream) end(reason string) {
	s.event(object{
		"choices": []object{{"index": 0, "delta": object{}, "finish_reason": reason}},
		"usage":   object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}

func (s stream) event(o object) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	o["id"], o["object"], o["created"], o["model"] = "c1", "chat.completion.chunk", 1, modelID
	b, _ := json.Marshal(o)
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
