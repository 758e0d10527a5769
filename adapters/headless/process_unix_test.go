//go:build unix

package headless

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// alive reports whether the process exists and is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true // no /proc here
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func dies(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "process "+strconv.Itoa(pid)+" is gone", func() bool { return !alive(pid) })
}

func TestLaunch_TheAgent_GetsDirEnvAndArgs(t *testing.T) {
	is := is.New(t)
	t.Setenv("HERDR_PANE_ID", "w1:p1")
	t.Setenv("PI_SESSION_ID", "the parent's")
	t.Setenv("UNRELATED", "passes")
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	_, err := herd(t, Options{
		Command: []string{"sh", "-c", `{ env; echo "args=$*"; echo "cwd=$(pwd)"; } >out`, "sh"},
		Env:     map[string]string{"A": "options", "B": "options"},
	}).Launch(t.Context(), lifecycle.Spec{Name: "scout", Dir: dir, Env: map[string]string{"B": "spec"}, Args: []string{"--model", "a b"}})
	is.True(err != nil) // it was only a shell
	b, err := os.ReadFile(out)
	is.NoErr(err)
	got := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, want := range []string{"A=options", "B=spec", "UNRELATED=passes", "PI_OFFLINE=1", "SHEPHERD_DEPTH=1", "PWD=" + dir, "args=--model a b", "cwd=" + dir} {
		if !slices.Contains(got, want) {
			t.Errorf("missing %q", want)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "HERDR_") || strings.HasPrefix(kv, "PI_SESSION_") {
			t.Errorf("the parent's identity was passed on: %q", kv)
		}
	}
}

func TestTheEndOfAProcess_IsGoneWithHow(t *testing.T) { // C25
	tests := map[string]struct{ prompt, want string }{
		"it exits":      {"exit 7", "exit status 7; stderr: told to exit"},
		"it is killed":  {"kill", "exit status 137 (killed)"},
		"it exits with": {"exit 0", "exit status 0; stderr: told to exit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h := herd(t, scripted())
			target := launch(t, h)
			submit(t, h, target, prompt1, "say so far", "tool x", "think 20ms", tt.prompt)
			o := until(t, h, target, "gone", gone)
			is.Equal(o.Detail, "process "+strconv.Itoa(pid(t, target))+" ended: "+tt.want)
			is.True(!o.Signal.Final())
			is.Equal(o.Turns, uint64(1))
			reply, err := h.Reply(t.Context(), target, prompt1)
			is.NoErr(err)
			is.Equal(reply, "so far")
			err = h.Submit(t.Context(), target, lifecycle.Submission{Prompt: prompt2, Text: "say x"})
			is.True(errors.Is(err, lifecycle.ErrAgentGone))
			is.NoErr(h.Close(t.Context(), target)) // of what is gone
		})
	}
}

func TestAnAnswerGivenJustBeforeTheEnd_IsHeard(t *testing.T) { // C25
	h := herd(t, scripted())
	for range 10 {
		is := is.New(t)
		target := launch(t, h)
		submit(t, h, target, prompt1, "leave", "deafen 1000000", "say done")
		o := until(t, h, target, "gone", gone)
		is.Equal(o.Signal.Kind, lifecycle.Finished) // whoever sees the end sees the answer
		is.Equal(o.Signal.Text, "done")
	}
}

func TestAnIdleAgentThatDies_IsNoticed(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	_, changed := h.Observe(target)
	is.NoErr(syscall.Kill(pid(t, target), syscall.SIGKILL))
	select {
	case <-changed:
	case <-time.After(limit):
		t.Fatal("nobody was woken")
	}
	o, _ := h.Observe(target)
	is.Equal(o.State, lifecycle.Gone)
}

func TestClose_AlsoEndsWhatTheAgentHasStarted(t *testing.T) {
	for _, verb := range []string{"child", "spawn"} {
		if verb == "spawn" && runtime.GOOS != "linux" {
			continue // see marked_other.go
		}
		for _, faults := range [][]headlesstest.Fault{nil, {headlesstest.Stubborn}} {
			t.Run(strings.TrimSpace(verb+" "+join(faults)), func(t *testing.T) {
				is := is.New(t)
				h := herd(t, scripted(faults...))
				target := launch(t, h)
				submit(t, h, target, prompt1, verb)
				grandchild, err := strconv.Atoi(settled(t, h, target, prompt1).Text)
				is.NoErr(err)
				is.True(alive(grandchild))
				is.NoErr(h.Close(t.Context(), target))
				is.True(!alive(pid(t, target)))
				dies(t, grandchild)
			})
		}
	}
}

func TestAnAgentThatIsKilled_LeavesNothingBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what has left the process group can be found on Linux only")
	}
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	submit(t, h, target, prompt1, "spawn") // holds the agent's stdout and stderr open
	grandchild, err := strconv.Atoi(settled(t, h, target, prompt1).Text)
	is.NoErr(err)
	is.NoErr(syscall.Kill(pid(t, target), syscall.SIGKILL))
	until(t, h, target, "gone", gone)
	dies(t, grandchild)
}

func TestTheEndOfAnAgent_IsTheEndOfItsGroup(t *testing.T) {
	is := is.New(t)
	file := filepath.Join(t.TempDir(), "pid")
	h := herd(t, shellAgent(`env -i sleep 600 & echo $! >`+file+`; answer get_state; read x; exit 0`))
	target := launch(t, h)
	b, err := os.ReadFile(file)
	is.NoErr(err)
	sleeper, err := strconv.Atoi(strings.TrimSpace(string(b)))
	is.NoErr(err)
	is.True(alive(sleeper))
	err = h.Submit(t.Context(), target, lifecycle.Submission{Prompt: prompt1, Text: "exit"})
	is.True(errors.Is(err, lifecycle.ErrOutcomeUnknown)) // it ended before it answered
	dies(t, sleeper)
}

func TestARefusal_ChangesNothing(t *testing.T) {
	tests := map[string]struct {
		answer string // to the second prompt
		busy   bool
	}{
		"at work":    {`"success":false,"error":"Agent is already processing. Specify ..."`, true},
		"compacting": {`"success":false,"error":"Cannot submit a prompt while compaction is in progress. ..."`, true},
		"no key":     {`"success":false,"error":"No API key found for the selected model."`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h := herd(t, shellAgent(`
				answer get_state
				answer prompt
				say '{"type":"agent_start"}'
				say '{"type":"message_end","message":{"role":"user","content":"[sheep:00cf4fc964ff]"}}'
				say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"one"}],"stopReason":"stop"}}'
				say '{"type":"agent_settled"}'
				n=$((n+1)); read x; say '{"type":"response","id":"c'$n'",`+tt.answer+`}'
				read x`))
			target := launch(t, h)
			submit(t, h, target, prompt1, "one")
			first := settled(t, h, target, prompt1)
			err := h.Submit(t.Context(), target, lifecycle.Submission{Prompt: prompt2, Text: "two"})
			is.True(err != nil)
			is.Equal(errors.Is(err, lifecycle.ErrAgentBusy), tt.busy)
			is.True(!errors.Is(err, lifecycle.ErrOutcomeUnknown))
			o, _ := h.Observe(target)
			is.Equal(o.Signal, first)
			is.Equal(o.State, lifecycle.Idle)
		})
	}
}

// shellAgent is an agent that is a shell script: say writes a record, answer reads a
// command and grants it.
func shellAgent(script string) Options {
	return Options{Command: []string{"sh", "-c", `
		n=0
		say() { printf '%s\n' "$1"; }
		answer() { n=$((n+1)); read x; say '{"type":"response","command":"'$1'","id":"c'$n'","success":true}'; }
		` + script}}
}

func TestClose_OfAStubbornAgent_TakesTheGraceTwiceAndNoLonger(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted(headlesstest.Stubborn))
	target := launch(t, h)
	submit(t, h, target, prompt1, "hang")
	begin := time.Now()
	is.NoErr(h.Close(t.Context(), target))
	is.True(time.Since(begin) >= 2*h.o.StopGrace) // it was given its time
	is.True(!alive(pid(t, target)))
	o, _ := h.Observe(target)
	is.Equal(o.State, lifecycle.Gone)
}

func TestClose_WhenItsContextEnds_GivesNoMoreTime(t *testing.T) {
	is := is.New(t)
	o := scripted(headlesstest.Stubborn)
	o.StopGrace = time.Hour
	h := herd(t, o)
	target := launch(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	is.NoErr(h.Close(ctx, target))
	is.True(!alive(pid(t, target)))
}

func TestAnAgentThatCannotBeHeardAnyMore_IsEnded(t *testing.T) {
	is := is.New(t)
	h := herd(t, shellAgent(`answer get_state; exec >&-; sleep 600`))
	target := launch(t, h)
	o := until(t, h, target, "gone", gone)
	is.True(strings.Contains(o.Detail, "exit status 137"))
}

func TestStderr_IsKeptInPartAndNeverBlocks(t *testing.T) {
	is := is.New(t)
	h := herd(t, Options{
		Command:     []string{"sh", "-c", `yes "a line of words" | head -c 1000000 >&2; echo the end >&2; exit 4`},
		StderrLimit: 100,
	})
	_, err := h.Launch(t.Context(), lifecycle.Spec{Name: "scout"})
	is.True(err != nil)
	_, said, ok := strings.Cut(err.Error(), "exit status 4; stderr: a line of words\n")
	is.True(ok)                                 // from the beginning of a line
	is.True(len(said) < 100)                    // the limit
	is.True(strings.HasSuffix(said, "the end")) // and it is the end
}

func TestIfTheHostDies_ItsAgentsEnd(t *testing.T) {
	is := is.New(t)
	if dir := os.Getenv("TEST_HOST_DIR"); dir != "" { // in the host
		h := New(scripted())
		target := launch(t, h)
		is.NoErr(os.WriteFile(filepath.Join(dir, "tmp"), []byte(target), 0o600))
		is.NoErr(os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "target")))
		select {}
	}
	dir := t.TempDir()
	host := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	host.Env = append(os.Environ(), "TEST_HOST_DIR="+dir)
	is.NoErr(host.Start())
	var target []byte
	eventually(t, "the agent is there", func() (ok bool) {
		b, err := os.ReadFile(filepath.Join(dir, "target"))
		target = b
		return err == nil
	})
	is.NoErr(host.Process.Kill())
	_ = host.Wait()
	dies(t, pid(t, lifecycle.Target(target)))
}

func join(faults []headlesstest.Fault) string {
	s := ""
	for _, f := range faults {
		s += string(f)
	}
	return s
}
