//go:build unix

package pi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
)

// toolModel is a pitest.Model that knows one line more, which may only be the first that
// a message's calls do:
//
//	tool NAME JSON         call that tool
//
// and shows what the last call brought.
type toolModel struct {
	inner *pitest.Model

	mu     sync.Mutex
	called map[string]bool
	body   string
}

// withTools puts a toolModel in front of p's model.
func withTools(t *testing.T, p *pitest.Pi) *toolModel {
	t.Helper()
	m := &toolModel{inner: p.Model, called: make(map[string]bool)}
	srv := httptest.NewServer(m)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	edit(t, filepath.Join(p.Env["PI_CODING_AGENT_DIR"], "models.json"), func(s string) string {
		return strings.ReplaceAll(s, p.Model.URL, srv.URL)
	})
	return m
}

func edit(t *testing.T, name string, change func(string) string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, []byte(change(string(b))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m *toolModel) lastBody() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.body
}

func (m *toolModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if name, args := m.tool(body); name != "" {
		call, _ := json.Marshal(map[string]any{"index": 0, "id": "call_1", "type": "function",
			"function": map[string]any{"name": name, "arguments": args}})
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"calling","tool_calls":[%s]},"finish_reason":null}]}`+"\n\n", call)
		fmt.Fprint(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.inner.ServeHTTP(w, r)
}

// tool returns the call that the newest user message asks for, once.
func (m *toolModel) tool(body []byte) (name, args string) {
	var call struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &call)
	user := ""
	for _, msg := range call.Messages {
		if msg.Role == "user" {
			user = text(msg.Content)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.body = string(body)
	if m.called[user] {
		return "", ""
	}
	m.called[user] = true
	for line := range strings.Lines(user) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "tool "); ok {
			name, args, _ = strings.Cut(rest, " ")
			return name, args
		}
	}
	return "", ""
}
