package headlesstest

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Turn is one prompt being worked on. Its methods are for the script's goroutine. When the
// turn is aborted, the next method that takes time ends the script.
type Turn struct {
	Message string // the prompt as it arrived
	Text    string // without the marker line
	N       int    // how many prompts this agent has had, with this one

	agent   *agent
	aborted chan struct{}
	dialog  chan bool
	over    chan struct{}

	said   *string // not yet told: the answer, if nothing follows it
	failed string
	broken bool // interrupted
	leaves bool
}

// run plays the script between the events of a run.
func (t *Turn) run() {
	emit := t.agent.emit
	emit(object{"type": "agent_start"})
	t.message(object{"role": "user", "content": text(t.Message)})
	done := make(chan struct{})
	go func() {
		defer close(done) // the script may end by Goexit
		t.agent.script(t)
	}()
	<-done
	t.conclude()
	t.agent.end()
	emit(object{"type": "agent_end", "messages": []object{}, "willRetry": false})
	emit(object{"type": "agent_settled", "aborted": t.broken})
	if t.leaves {
		exit(0)
	}
}

// conclude tells the last message, which is the answer.
func (t *Turn) conclude() {
	answer := object{"role": "assistant", "content": []object{}, "stopReason": "stop"}
	if t.said != nil {
		answer["content"] = text(*t.said)
	}
	switch {
	case t.broken:
		answer["stopReason"], answer["errorMessage"] = "aborted", "Request was aborted"
	case t.failed != "":
		answer["content"], answer["stopReason"], answer["errorMessage"] = []object{}, "error", t.failed
	}
	t.message(answer)
}

// Say lets the agent say something. What is said last is the answer.
func (t *Turn) Say(words string) {
	t.flush()
	t.agent.emit(object{"type": "message_update", "assistantMessageEvent": object{"type": "text_delta", "contentIndex": 0, "delta": words}})
	t.said = &words
}

// Think lets time pass.
func (t *Turn) Think(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.aborted:
		t.Abort()
	}
}

// Hang waits for ever, or until the turn is aborted.
func (t *Turn) Hang() {
	<-t.aborted
	t.Abort()
}

// Tool lets the agent use a tool that gives output.
func (t *Turn) Tool(name, output string) {
	t.flush()
	result := object{"content": text(output)}
	t.agent.emit(object{"type": "tool_execution_start", "toolCallId": "c1", "toolName": name, "args": object{}})
	t.agent.emit(object{"type": "tool_execution_end", "toolCallId": "c1", "toolName": name, "result": result, "isError": false})
	t.message(object{"role": "toolResult", "toolCallId": "c1", "toolName": name, "content": text(output), "isError": false})
}

// Retry lets one attempt fail with the provider's words; the agent tries again.
func (t *Turn) Retry(words string) {
	t.flush()
	t.message(object{"role": "assistant", "content": []object{}, "stopReason": "error", "errorMessage": words})
	t.agent.emit(object{"type": "agent_end", "messages": []object{}, "willRetry": true})
	t.agent.emit(object{"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1, "errorMessage": words})
	t.agent.emit(object{"type": "agent_start"})
}

// Fail ends the turn, and the script, with the provider's words.
func (t *Turn) Fail(words string) {
	t.failed = words
	runtime.Goexit()
}

// Abort ends the turn, and the script, as an interrupt does.
func (t *Turn) Abort() {
	t.broken = true
	runtime.Goexit()
}

// Ask opens a dialog and waits for its answer.
func (t *Turn) Ask(question string) (confirmed bool) {
	t.agent.emit(object{"type": "extension_ui_request", "id": "u-1", "method": "confirm", "title": question, "message": question})
	select {
	case confirmed = <-t.dialog:
	case <-t.aborted:
		t.Abort()
	}
	return confirmed
}

// Exit ends the agent's process in the middle of the turn, with words on stderr.
func (t *Turn) Exit(code int, words string) {
	if words != "" {
		_, _ = os.Stderr.WriteString(words + "\n")
	}
	exit(code)
}

// Leave ends the agent's process right after this turn has settled.
func (t *Turn) Leave() { t.leaves = true }

// Raw writes bytes to stdout as they are.
func (t *Turn) Raw(b []byte) { t.agent.raw(b) }

// Spawn starts a process that runs for minutes and holds the agent's stdout and stderr
// open; in a session of its own, where there are such, as pi runs its shell tools.
func (t *Turn) Spawn(ownSession bool) (pid int, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(exe, sleeperArg)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if ownSession {
		detach(cmd)
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}

// NotePath is the path of the note that the prompt's context block assigns, "" without one.
func (t *Turn) NotePath() string {
	for line := range strings.Lines(t.Text) {
		if path, ok := strings.CutPrefix(line, "- Your note: "); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}

// Note appends to the agent's own note.
func (t *Turn) Note(words string) error {
	f, err := os.OpenFile(t.NotePath(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(words); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// flush tells what was said, now that it is not the answer.
func (t *Turn) flush() {
	if t.said != nil {
		t.message(object{"role": "assistant", "content": text(*t.said), "stopReason": "toolUse"})
		t.said = nil
	}
}

func (t *Turn) message(m object) {
	t.agent.emit(object{"type": "message_start", "message": object{"role": m["role"], "content": []object{}}})
	t.agent.emit(object{"type": "message_end", "message": leading("role", m)})
}

func text(s string) []object { return []object{{"type": "text", "text": s}} }
