//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a model server for parents and children. Each call does the next line of the
// newest user message that has such lines; when they are used up it says "ok".
//
//	start NAME LABEL        call shepherd_start
//	prompt N TEXT           call shepherd_prompt for the N-th agent of the session; "/" ends a line of TEXT
//	watch N M …             call shepherd_watch for the N-th, M-th … prompt of the session
//	wait N …                call shepherd_wait
//	call TOOL JSON          call that tool
//	bash COMMAND            call bash
//	gate NAME               answer "result of NAME" as soon as the test opens that gate
//	big WORDS               answer, and claim that the context is nearly full
//	say WORDS               answer
//	slow 300ms WORDS        answer word by word over that time
//	status 401 WORDS        fail with that HTTP status
//	hang                    never answer
type script struct {
	url string

	mu       sync.Mutex
	requests []request
	gates    map[string]chan struct{}
	failing  []string // a parent's call whose newest message has one of these is a 401
}

// fail makes the parent's next turns about a text fail.
func (s *script) fail(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = append(s.failing, text)
}

// gate is closed when the test opens it.
func (s *script) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates == nil {
		s.gates = map[string]chan struct{}{}
	}
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

// open opens gates: children that wait there finish now.
func (s *script) open(names ...string) {
	for _, name := range names {
		close(s.gate(name))
	}
}

// request is one call of the model.
type request struct {
	Parent   bool // it has shepherd's tools
	Messages []chat
	At       time.Time
}

type chat struct {
	Role      string
	Content   json.RawMessage
	ToolCalls []struct{ ID string } `json:"tool_calls"`
}

func newScript(t testing.TB) *script {
	s := &script{}
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	s.url = srv.URL
	return s
}

func (c chat) text() string {
	var s string
	if json.Unmarshal(c.Content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(c.Content, &parts)
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// parent returns the parent's calls whose messages contain a text.
func (s *script) parent(containing string) (found []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		for _, m := range r.Messages {
			if r.Parent && strings.Contains(m.text(), containing) {
				found = append(found, r)
				break
			}
		}
	}
	return found
}

func (s *script) count() (parent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.Parent {
			parent++
		}
	}
	return parent
}

var verbs = regexp.MustCompile(`^(start|prompt|watch|wait|call|bash|gate|big|say|slow|status|hang)\b`)

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Messages []chat
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := request{Messages: call.Messages, At: time.Now()}
	for _, t := range call.Tools {
		req.Parent = req.Parent || t.Function.Name == "shepherd_start"
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	last := call.Messages[len(call.Messages)-1]
	for _, text := range s.failing {
		if req.Parent && last.Role == "user" && strings.Contains(last.text(), text) {
			s.mu.Unlock()
			fail(w, 401, "scripted")
			return
		}
	}
	s.mu.Unlock()

	verb, rest, _ := strings.Cut(next(call.Messages), " ")
	a := answer{w: w, tokens: 2}
	switch verb {
	case "start":
		name, label, _ := strings.Cut(rest, " ")
		a.call("shepherd_start", object{"agent": name, "label": label})
	case "prompt":
		n, text, _ := strings.Cut(rest, " ")
		a.call("shepherd_prompt", object{"id": nth(call.Messages, agentID, n), "message": strings.ReplaceAll(text, "/", "\n")})
	case "watch", "wait":
		ids := []string{}
		for _, n := range strings.Fields(rest) {
			ids = append(ids, nth(call.Messages, promptID, n))
		}
		a.call("shepherd_"+verb, object{"id": ids})
	case "call":
		name, raw, _ := strings.Cut(rest, " ")
		a.call(name, json.RawMessage(raw))
	case "bash":
		a.call("bash", object{"command": rest})
	case "slow":
		span, words, _ := strings.Cut(rest, " ")
		a.slow(r, span, words)
	case "status":
		code, words, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(code)
		fail(w, n, words)
	case "hang":
		<-r.Context().Done()
	case "gate":
		select {
		case <-s.gate(rest):
			a.say("result of " + rest)
		case <-r.Context().Done():
		}
	case "big":
		a.tokens = 19_000
		a.say(rest)
	case "say":
		a.say(rest)
	default:
		a.say("ok")
	}
}

func fail(w http.ResponseWriter, code int, words string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": words}})
}

// next is the line to do: the newest user message's, after as many answers as came since.
func next(messages []chat) string {
	done := 0
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i]; m.Role {
		case "assistant":
			done++
		case "user":
			var lines []string
			for line := range strings.Lines(m.text()) {
				if line = strings.TrimRight(line, "\r\n"); verbs.MatchString(line) {
					lines = append(lines, line)
				}
			}
			if done < len(lines) {
				return lines[done]
			}
			return ""
		}
	}
	return ""
}

var (
	agentID  = regexp.MustCompile(`"id":"(shepherd-agent-[^"]+)","agent"`)
	promptID = regexp.MustCompile(`"id":"(shepherd-prompt-[^"]+)","agentId"`)
)

// nth is the n-th id that tool results have brought.
func nth(messages []chat, id *regexp.Regexp, n string) string {
	var ids []string
	for _, m := range messages {
		if m.Role == "tool" {
			for _, found := range id.FindAllStringSubmatch(m.text(), -1) {
				ids = append(ids, found[1])
			}
		}
	}
	if i, err := strconv.Atoi(n); err == nil && i >= 1 && i <= len(ids) {
		return ids[i-1]
	}
	return "there is no " + n
}

type object = map[string]any

// answer writes a streamed answer.
type answer struct {
	w      http.ResponseWriter
	tokens int // that the call claims to have used
}

func (a answer) say(words string) {
	a.delta(object{"role": "assistant", "content": words})
	a.end("stop")
}

func (a answer) slow(r *http.Request, span, words string) {
	d, err := time.ParseDuration(span)
	if err != nil {
		a.say(err.Error())
		return
	}
	parts := strings.SplitAfter(words, " ")
	for _, part := range parts {
		a.delta(object{"role": "assistant", "content": part})
		select {
		case <-time.After(d / time.Duration(len(parts))):
		case <-r.Context().Done():
			return
		}
	}
	a.end("stop")
}

func (a answer) call(tool string, args any) {
	raw, _ := json.Marshal(args)
	a.delta(object{"role": "assistant", "content": nil, "tool_calls": []object{{
		"index": 0, "id": fmt.Sprintf("call_%d", time.Now().UnixNano()), "type": "function",
		"function": object{"name": tool, "arguments": string(raw)},
	}}})
	a.end("tool_calls")
}

func (a answer) delta(delta object) {
	a.event(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": nil}}})
}

func (a answer) end(reason string) {
	a.event(object{
		"choices": []object{{"index": 0, "delta": object{}, "finish_reason": reason}},
		"usage":   object{"prompt_tokens": a.tokens - 1, "completion_tokens": 1, "total_tokens": a.tokens},
	})
	fmt.Fprint(a.w, "data: [DONE]\n\n")
}

func (a answer) event(o object) {
	a.w.Header().Set("Content-Type", "text/event-stream")
	o["id"], o["object"], o["created"], o["model"] = "c1", "chat.completion.chunk", 1, "scripted-1"
	b, _ := json.Marshal(o)
	fmt.Fprintf(a.w, "data: %s\n\n", b)
	if f, ok := a.w.(http.Flusher); ok {
		f.Flush()
	}
}

// children counts the calls of those that have no tool of ours.
func (s *script) children() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if !r.Parent {
			n++
		}
	}
	return n
}
