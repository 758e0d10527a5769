package herdr

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// exchange is one line of a recording; see testdata/README.md.
type exchange struct {
	file   string
	Scene  string `json:"scene"`
	Sent   string `json:"sent"`
	Got    string `json:"got"`
	Stream string `json:"stream"`
	Event  string `json:"event"`
}

func recordings(t testing.TB) (all []exchange) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			x := exchange{file: filepath.Base(file)}
			if err := json.Unmarshal(line, &x); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, x)
		}
	}
	return all
}

func TestRecordedAnswers_Decode(t *testing.T) {
	count := 0
	for _, x := range recordings(t) {
		if x.Sent == "" || x.Got == "" {
			continue
		}
		var sent struct {
			ID     string
			Method string
		}
		_ = json.Unmarshal([]byte(x.Sent), &sent) // some are broken on purpose
		var result json.RawMessage
		err := answer(context.Background(), bufio.NewReader(strings.NewReader(x.Got+"\n")), sent.Method, sent.ID, &result)
		refused := strings.Contains(x.Got, `"error"`)
		if _, isError := err.(*Error); isError != refused || (err != nil && !isError && !strings.Contains(x.Sent, "\n")) {
			t.Errorf("%s %s: %s\n is read as %v", x.file, x.Scene, x.Got, err)
		}
		into := map[string]any{
			"ping": new(pong), "tab.create": new(placeResult), "workspace.create": new(placeResult), "pane.split": new(placeResult),
			"pane.get": new(paneResult), "agent.get": new(agentResult), "agent.prompt": new(agentResult), "agent.start": new(agentResult),
			"pane.process_info": new(processResult), "pane.read": new(readResult), "session.snapshot": new(snapshotResult),
		}[sent.Method]
		if err != nil || into == nil {
			continue
		}
		count++
		if err := json.Unmarshal(result, into); err != nil {
			t.Errorf("%s: %v in %s", sent.Method, err, x.Got)
		}
		if reflect.ValueOf(into).Elem().IsZero() {
			t.Errorf("%s: nothing was understood of %s", sent.Method, x.Got)
		}
	}
	if count < 60 {
		t.Errorf("only %d answers were decoded", count)
	}
}

func TestRecordedEvents_NameTheirPane(t *testing.T) {
	is := is.New(t)
	kinds := make(map[string]int)
	for _, x := range recordings(t) {
		if x.Event == "" {
			continue
		}
		s := stream{in: bufio.NewReader(strings.NewReader(x.Event + "\n"))}
		e, err := s.next()
		is.NoErr(err)
		kinds[e.kind()]++
		switch e.kind() {
		case "pane_agent_status_changed", "pane_agent_detected", "pane_closed", "pane_exited":
			is.True(e.Data.PaneID != "")
		case "pane_moved":
			is.True(e.Data.PreviousPaneID != "" && e.Data.Pane.TerminalID != "")
		case "tab_closed":
			is.True(e.Data.TabID != "")
		case "workspace_closed":
			is.True(e.Data.WorkspaceID != "")
		}
	}
	for _, s := range append(lifecycleEvents, subscription{Type: statusEvent}) {
		if kinds[strings.ReplaceAll(s.Type, ".", "_")] == 0 {
			t.Errorf("no recorded %s", s.Type)
		}
	}
}

// TestRequests_SendOnlyWhatTheRecordedServerAccepted: Herdr ignores a field that it does not
// know, so a misspelt one changes the meaning without an error.
func TestRequests_SendOnlyWhatTheRecordedServerAccepted(t *testing.T) {
	accepted := make(map[string]map[string]bool)
	for _, x := range recordings(t) {
		var sent struct {
			Method string
			Params map[string]any
		}
		if json.Unmarshal([]byte(x.Sent), &sent) != nil || x.Got == "" || strings.Contains(x.Got, `"error"`) {
			continue
		}
		if accepted[sent.Method] == nil {
			accepted[sent.Method] = make(map[string]bool)
		}
		for key := range sent.Params {
			accepted[sent.Method][key] = true
		}
	}
	for key := range accepted["tab.create"] { // was not tried with all of them
		accepted["workspace.create"][key] = true
	}
	env := map[string]string{"A": "b"}
	for _, r := range []request{
		{"1", "ping", none{}},
		{"1", "session.snapshot", none{}},
		{"1", "tab.create", placeParams{"w1", "/d", false, "l", env}},
		{"1", "workspace.create", placeParams{"", "/d", false, "l", env}},
		{"1", "pane.split", splitParams{"w1:p1", "right", "/d", false, env}},
		{"1", "pane.get", paneParams{"w1:p1"}},
		{"1", "pane.close", paneParams{"w1:p1"}},
		{"1", "pane.process_info", paneParams{"w1:p1"}},
		{"1", "pane.read", readParams{"w1:p1", "recent_unwrapped", 200, "text", true}},
		{"1", "pane.send_keys", keysParams{"w1:p1", []string{"enter"}}},
		{"1", "agent.start", startParams{"a", "pi", "w1:p1", []string{"-x"}, 4000}},
		{"1", "agent.get", targetParams{"w1:p1"}},
		{"1", "agent.prompt", promptParams{"w1:p1", "text"}},
		{"1", "events.subscribe", subscribeParams{lifecycleEvents}},
	} {
		line, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			ID, Method string
			Params     map[string]any
		}
		if err := json.Unmarshal(line, &back); err != nil || back.Params == nil || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%s: %v in %q", r.Method, err, line)
		}
		for key := range back.Params {
			if !accepted[r.Method][key] {
				t.Errorf("%s: no recorded request has %q", r.Method, key)
			}
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"id":"1","result":{"type":"pong","version":"0.8.0","protocol":20}}`))
	f.Add([]byte(`{"id":"","error":{"code":"invalid_request","message":"x"}}`))
	f.Add([]byte(`{"event":"pane.agent_status_changed","data":{"pane_id":"w1:p1"}}`))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p pong
		err := answer(context.Background(), bufio.NewReader(bytes.NewReader(data)), "ping", "1", &p)
		if err == nil && !json.Valid(bytes.TrimSpace(bytes.SplitN(data, []byte("\n"), 2)[0])) {
			t.Errorf("%q was taken for an answer", data)
		}
		s := stream{in: bufio.NewReader(bytes.NewReader(data))}
		for {
			if _, err := s.next(); err != nil {
				break
			}
		}
	})
}
