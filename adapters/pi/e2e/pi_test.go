//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
)

// host is the program of examples/shepherd-pi, built once.
var host = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "shepherd-pi-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "shepherd-pi")
	build := []string{"build", "-o", program}
	if raceEnabled {
		build = append(build, "-race") // a race ends the host, which the tests notice
	}
	out, err := exec.Command("go", append(build, "../../../examples/shepherd-pi")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the host: %w: %s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := host(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// machine is one user's home, one project, and a model.
type machine struct {
	t       *testing.T
	program []string
	env     []string
	project string
	model   *script
	plain   bool // pi is started without extensions of the test's
}

const oldest = "1.3.0"

// onBoth runs a test with the newest and with the oldest pi.
func onBoth(t *testing.T, test func(t *testing.T, m *machine)) {
	for _, version := range []string{pitest.Version, oldest} {
		t.Run("pi "+version, func(t *testing.T) { test(t, newMachine(t, version)) })
	}
}

func newMachine(t *testing.T, version string) *machine {
	t.Helper()
	p := pitest.New(t)
	m := &machine{t: t, program: p.Program, model: newScript(t), project: t.TempDir()}
	if version == oldest {
		cli, err := filepath.Abs("testdata/pi-1.3.0/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(cli); err != nil {
			missing := t.Skipf
			if os.Getenv("CI") == "true" {
				missing = t.Fatalf
			}
			missing("no pi %s to test with (npm ci --prefix adapters/pi/e2e/testdata/pi-1.3.0): %v", oldest, err)
		}
		m.program = []string{p.Program[0], cli}
	}
	home := p.Env["PI_CODING_AGENT_DIR"]
	models := filepath.Join(home, "models.json")
	raw, err := os.ReadFile(models)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), p.Model.URL, m.model.url)
	text = strings.ReplaceAll(text, `"contextWindow":1000000`, `"contextWindow":20000`) // so that it can be filled
	if err := os.WriteFile(models, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	settings(t, filepath.Join(home, "settings.json"))
	program, err := host()
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"PI_OFFLINE": "1", "SHEPHERD_PI": program, "SHEPHERD_CHILDREN": "headless", "GORACE": "halt_on_error=1"}
	for k, v := range p.Env {
		vars[k] = v
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(k, "HERDR_") && !strings.HasPrefix(k, "SHEPHERD_") && !strings.HasPrefix(k, "PI_") && vars[k] == "" {
			m.env = append(m.env, kv)
		}
	}
	for k, v := range vars {
		m.env = append(m.env, k+"="+v)
	}
	return m
}

// settings makes compaction possible in the short conversations of a test.
func settings(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	var all map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err == nil {
		all["compaction"] = object{"reserveTokens": 2000, "keepRecentTokens": 10}
		raw, err = json.Marshal(all)
	}
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func extension(t testing.TB) string {
	path, err := filepath.Abs("../extension/parent.ts")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// probe is an extension with commands for what RPC mode has no words for.
func probe(t testing.TB) string {
	path, err := filepath.Abs("testdata/probe.ts")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// session is a path for a session file.
func (m *machine) session(name string) string { return filepath.Join(m.project, "..", name+".jsonl") }

// rpc is a pi in RPC mode.
type rpc struct {
	*machine
	cmd *exec.Cmd
	in  io.WriteCloser

	mu     sync.Mutex
	events []map[string]any
	ids    int
	ended  chan struct{}
	stderr strings.Builder
}

func (m *machine) rpc(t *testing.T, args ...string) *rpc {
	t.Helper()
	on := *m
	on.t = t
	p := &rpc{machine: &on, ended: make(chan struct{})}
	all := append(slices.Clone(m.program[1:]), "--mode", "rpc", "-na")
	if !m.plain {
		all = append(all, "-e", extension(t), "-e", probe(t))
	}
	p.cmd = exec.Command(m.program[0], append(all, args...)...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = m.project, m.env, &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(func() { p.quit() })
	return p
}

func (p *rpc) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e map[string]any
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			p.mu.Lock()
			p.events = append(p.events, e)
			p.mu.Unlock()
		}
	}
	_ = p.cmd.Wait()
	close(p.ended)
}

func (p *rpc) send(command object) {
	raw, _ := json.Marshal(command)
	_, _ = p.in.Write(append(raw, '\n'))
}

// ask sends a command and waits for its answer.
func (p *rpc) ask(command object) map[string]any {
	p.t.Helper()
	p.mu.Lock()
	p.ids++
	id := fmt.Sprintf("t%d", p.ids)
	p.mu.Unlock()
	command["id"] = id
	p.send(command)
	var answer map[string]any
	p.until(fmt.Sprintf("answer to %v", command["type"]), func() bool {
		for _, e := range p.all() {
			if e["type"] == "response" && e["id"] == id {
				answer = e
				return true
			}
		}
		return false
	})
	return answer
}

func (p *rpc) all() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

// until waits for what another process is about to do.
func (p *rpc) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			p.t.Fatalf("never happened: %s\nstderr: %s\nlast events: %s", what, p.stderr.String(), p.tail())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *rpc) tail() string {
	all := p.all()
	var b strings.Builder
	for _, e := range all {
		if e["type"] == "message_end" || e["type"] == "extension_ui_request" {
			raw, _ := json.Marshal(e["message"])
			fmt.Fprintf(&b, "\n%.600s", raw)
		}
	}
	return b.String()
}

// count counts the events of a type.
func (p *rpc) count(kind string) (n int) {
	for _, e := range p.all() {
		if e["type"] == kind {
			n++
		}
	}
	return n
}

// turn sends a prompt and waits until pi has settled after it.
func (p *rpc) turn(lines ...string) {
	p.t.Helper()
	before := p.count("agent_settled")
	p.prompt(lines...)
	p.until("the turn settles", func() bool { return p.count("agent_settled") > before })
}

func (p *rpc) prompt(lines ...string) {
	p.t.Helper()
	p.until("the prompt is taken", func() bool {
		r := p.ask(object{"type": "prompt", "message": strings.Join(lines, "\n"), "streamingBehavior": "followUp"})
		if r["success"] == true {
			return true
		}
		if !strings.Contains(fmt.Sprint(r["error"]), "compaction is in progress") { // then pi asks to try again
			p.t.Fatalf("prompt: %v", r)
		}
		return false
	})
}

// call has the model call a tool, in a turn of its own, and returns the details of the result.
func (p *rpc) call(name string, args object) map[string]any {
	p.t.Helper()
	raw, _ := json.Marshal(args)
	before, settled := len(p.all()), p.count("agent_settled")
	p.prompt("call "+name+" "+string(raw), "say ok")
	var details map[string]any
	p.until(name+" is called", func() bool {
		for _, e := range p.all()[before:] {
			if e["type"] == "tool_execution_end" && e["toolName"] == name {
				result := e["result"].(map[string]any)
				if details, _ = result["details"].(map[string]any); details == nil {
					details = map[string]any{}
				}
				details["text"] = result["content"].([]any)[0].(map[string]any)["text"]
				return p.count("agent_settled") > settled
			}
		}
		return false
	})
	return details
}

// agent starts an agent and returns its id.
func (p *rpc) agent(label string) string {
	p.t.Helper()
	d := p.call("shepherd_start", object{"agent": "scout", "label": label})
	id, ok := d["agentId"].(string)
	if !ok {
		p.t.Fatalf("start: %v", d["text"])
	}
	return id
}

// watched prompts an agent, which answers at a gate of that name, and watches; it returns the
// id that the notice will have.
func (p *rpc) watched(agent, gate string) string {
	p.t.Helper()
	d := p.call("shepherd_prompt", object{"id": agent, "message": "gate " + gate})
	prompt, ok := d["promptId"].(string)
	if !ok {
		p.t.Fatalf("prompt: %v", d["text"])
	}
	d = p.call("shepherd_watch", object{"id": prompt})
	id, ok := d["watcherId"].(string)
	if !ok {
		p.t.Fatalf("watch: %v", d["text"])
	}
	return id + "/1"
}

// file is the session's file, as pi knows it.
func (p *rpc) file() string {
	p.t.Helper()
	return p.ask(object{"type": "get_state"})["data"].(map[string]any)["sessionFile"].(string)
}

// delivered are the ids of all notices in a session file, each as often as it is there.
func delivered(t testing.TB, file string) (ids []string) {
	for _, n := range notices(t, file) {
		ids = append(ids, n.Details.IDs...)
	}
	return ids
}

// idle waits until pi has been idle for a moment.
func (p *rpc) idle() {
	p.t.Helper()
	calm := 0
	p.until("pi is idle", func() bool {
		if s := p.ask(object{"type": "get_state"}); s["data"].(map[string]any)["isStreaming"] == false {
			calm++
		} else {
			calm = 0
		}
		time.Sleep(50 * time.Millisecond)
		return calm > 8
	})
}

func (p *rpc) quit() {
	_ = p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.t.Error("pi did not end with its input")
	}
}

func (p *rpc) kill(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s)
	<-p.ended
}

// entry is what a session file holds of a completion message.
type entry struct {
	Type       string
	CustomType string
	Content    string
	Display    bool
	Details    struct {
		V     int
		IDs   []string
		Items []map[string]any
	}
}

// notices reads the completion messages of a session file.
func notices(t testing.TB, file string) (found []entry) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var e entry
		if json.Unmarshal([]byte(line), &e) == nil && e.CustomType == "shepherd.prompt.completion" {
			found = append(found, e)
		}
	}
	return found
}

// once runs a pi that answers one prompt and ends.
func (m *machine) once(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(m.program[0], append(append(slices.Clone(m.program[1:]), "-na", "-e", extension(t)), args...)...)
	cmd.Dir, cmd.Env = m.project, m.env
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.Output()
	return string(out), err
}

// nothingLeft waits until no process works in the project's directory any more: no host, no
// agent, nothing that they have started.
func (m *machine) nothingLeft(t *testing.T) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left = m.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %q", left)
		}
	}
}

// processes are those that have the test's home in their environment.
func (m *machine) processes() (found []string) {
	mark := "HOME=" + envOf(m, "HOME") + "\x00"
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains(string(env)+"\x00", mark) {
			continue
		}
		if status, _ := os.ReadFile(filepath.Join(dir, "stat")); strings.Contains(string(status), ") Z ") {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
	}
	return found
}

func envOf(m *machine, name string) string {
	for _, kv := range m.env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
