package herdrtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
)

// TestRecordedRequests_AreAnsweredAsRecorded replays each recorded session against the fake and
// compares the answers: kinds, ids, codes, statuses, and which fields there are. What time or
// a machine decides is left out.
func TestRecordedRequests_AreAnsweredAsRecorded(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) { replay(t, file) })
	}
}

type exchange struct {
	Scene, Sent, Got, Stream, Event string
}

func replay(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := herdrtest.New(filepath.Join(dir, "s"), herdrtest.Options{
		NoDisk: true, Missing: []string{"/usr/bin:/bin"}, Blind: true,
		Script: func(turn *herdrtest.Turn) { turn.Think(20 * time.Millisecond); herdrtest.Obey(turn) },
	})
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop() }()
	compared := 0
	for line := range bytes.Lines(data) {
		var x exchange
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		if x.Event != "" || x.Got == "" && x.Sent == "" {
			continue
		}
		if leftOut(x) {
			continue
		}
		if x.Scene == "integration" { // which was installed by hand
			s.Integrate()
		}
		want, got := normal(x.Got), ""
		await(t, s.Socket, x)
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			got = normal(ask(t, s.Socket, x.Sent))
			if got == want || time.Now().After(end) || !again.MatchString(x.Sent) {
				break
			}
		}
		compared++
		if got != want {
			t.Errorf("%s: %s\n want %s\n got  %s", x.Scene, x.Sent, want, got)
		}
		if strings.Contains(x.Sent, "server.stop") {
			time.Sleep(20 * time.Millisecond)
			s.Restart()
		}
	}
	t.Logf("%d exchanges", compared)
}

// again are requests that change nothing: asked until time has done its part.
var again = regexp.MustCompile(`"(agent.get|pane.get|session.snapshot|pane.process_info)"`)

// leftOut is what depends on a moment, or on something that was not recorded.
func leftOut(x exchange) bool {
	switch {
	case x.Scene == "server-stop" && strings.Contains(x.Sent, "snapshot"): // a start that fails after 4 s, one that is 4 ms old
	case strings.Contains(x.Got, "/srv/lab/k2.jsonl") && strings.Contains(x.Sent, "agent.get"), strings.Contains(x.Sent, `"20", "method": "session.snapshot"`): // prompts through that experiment's link
	default:
		return false
	}
	return true
}

// await waits until the agent is as it was when the request was recorded.
func await(t *testing.T, socket string, x exchange) {
	var sent struct {
		Method string
		Params struct {
			Target string
			PaneID string `json:"pane_id"`
		}
	}
	var got struct {
		Result struct {
			Agent struct {
				AgentStatus string `json:"agent_status"`
			}
		}
	}
	_ = json.Unmarshal([]byte(x.Sent), &sent)
	_ = json.Unmarshal([]byte(x.Got), &got)
	status := got.Result.Agent.AgentStatus
	if sent.Method == "pane.move" || sent.Method == "pane.report_agent" {
		sent.Params.Target, status = sent.Params.PaneID, ""
	} else if sent.Method != "agent.prompt" {
		return
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		now := ask(t, socket, `{"id":"w","method":"agent.get","params":{"target":"`+sent.Params.Target+`"}}`)
		if strings.Contains(now, `"error"`) || strings.Contains(now, `"interactive_ready"`) && strings.Contains(now, `"agent_status":"`+status) {
			return
		}
	}
}

// ask sends a line and returns the first line that comes back.
func ask(t *testing.T, socket, line string) string {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(c, "%s\n", line); err != nil {
		t.Fatal(err)
	}
	got, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(got)
}

// normal is an answer without what differs from one machine, or moment, to the next.
func normal(answer string) string {
	if answer == "" {
		return ""
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		return "not JSON: " + answer
	}
	if e, ok := v["error"].(map[string]any); ok && e["code"] == "invalid_request" {
		e["message"] = "…" // the words of a JSON library
	}
	b, _ := json.Marshal(strip(v))
	return terminals.ReplaceAllString(string(b), "term")
}

var (
	terminals = regexp.MustCompile(`term_[0-9a-f]+`)
	varying   = map[string]bool{
		"cwd": true, "foreground_cwd": true, "scroll": true, "revision": true, "terminal_title": true,
		"terminal_title_stripped": true, "state_change_seq": true, "layouts": true, "target_layout": true, "text": true,
		"focused_pane_id": true, "pid": true, "shell_pid": true, "foreground_process_group_id": true, "argv": true, "cmdline": true, "messages": true,
	}
)

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if varying[key] {
				delete(v, key)
				continue
			}
			v[key] = strip(x)
		}
	case []any:
		for i, x := range v {
			v[i] = strip(x)
		}
	}
	return v
}
