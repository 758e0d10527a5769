//go:build unix

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
)

// rounds is how often each row of the life table is played: SHEPHERD_ROUNDS, or once.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("SHEPHERD_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 1
}

// stage is one pi in one session, with an agent at hand.
type stage struct {
	*rpc
	is    *is.I
	main  string // the session's file
	agent string
	round int
}

func (m *machine) stage(t *testing.T, name string) *stage {
	t.Helper()
	file := m.session(name)
	p := m.rpc(t, "--session", file)
	p.turn("say hello")
	return &stage{rpc: p, is: is.New(t), main: p.file(), agent: p.agent("a")}
}

// gate is a name that nobody has used.
func (s *stage) gate(what string) string { return fmt.Sprintf("%s-%d-%d", what, s.round, rand.Int64()) }

// busy has the model at work until rest is called, or pi ends or aborts the turn.
func (s *stage) busy() (rest func()) {
	s.t.Helper()
	g := s.gate("busy")
	s.prompt("gate " + g)
	s.until("pi works", s.streaming)
	return func() { s.model.open(g) }
}

func (s *stage) streaming() bool {
	return s.ask(object{"type": "get_state"})["data"].(map[string]any)["isStreaming"] == true
}

// finish opens the gate and waits until the agent's prompt has settled and its notice is
// on its way.
func (s *stage) finish(gate string) {
	s.model.open(gate)
	s.until("the notice is in the ledger", func() bool { return len(s.ledgerIDs()) > 0 })
	time.Sleep(100 * time.Millisecond) // and with the extension
}

func (m *machine) ledgers() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(m.project, ".shepherd/pi/*.json"))
	for _, f := range files {
		raw, _ := os.ReadFile(f)
		all.Write(raw)
	}
	return all.String()
}

func (m *machine) ledgerIDs() (ids []string) {
	for line := range strings.Lines(m.ledgers()) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), `"id": "`); ok {
			ids = append(ids, strings.TrimSuffix(id, `",`))
		}
	}
	return ids
}

// host is the process id of pi's host.
func (s *stage) host() (pid int) {
	s.t.Helper()
	s.until("there is a host", func() bool {
		out, _ := exec.Command("pgrep", "-P", strconv.Itoa(s.cmd.Process.Pid), "-f", "shepherd-pi").Output()
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(string(out)))
		return err == nil
	})
	return pid
}

// hosts counts pi's hosts.
func (s *stage) hosts() int {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(s.cmd.Process.Pid), "-f", "shepherd-pi").Output()
	return len(strings.Fields(string(out)))
}

// calls counts the parent's model calls that f causes, until pi is idle again.
func (s *stage) calls(f func()) int {
	s.t.Helper()
	before := s.model.count()
	f()
	s.idle()
	return s.model.count() - before
}

// life is the table: what happens, and what is delivered where.
var life = map[string]func(s *stage) *stage{
	"while pi is idle": func(s *stage) *stage {
		g := s.gate("idle")
		id := s.watched(s.agent, g)
		s.is.Equal(s.calls(func() { s.model.open(g); s.gets(id) }), 1)
		return s
	},
	"in the middle of a tool chain": func(s *stage) *stage {
		g := s.gate("chain")
		id := s.watched(s.agent, g)
		s.prompt("bash sleep 0.2", "bash sleep 0.4", "bash sleep 0.1", "say chain done")
		s.until("pi works", s.streaming)
		s.model.open(g)
		s.gets(id)
		s.idle()
		all := s.model.parent("result of " + g)
		first := all[0].Messages
		s.is.True(strings.Contains(first[len(first)-2].text(), "chain done")) // after the chain, not in it
		return s
	},
	"reload at that moment": func(s *stage) *stage {
		g := s.gate("reload")
		id := s.watched(s.agent, g)
		jitter := time.Duration(rand.IntN(120)) * time.Millisecond
		s.is.Equal(s.calls(func() {
			if s.round%2 == 0 {
				s.model.open(g)
				time.Sleep(jitter)
			}
			s.ask(object{"type": "prompt", "message": "/reload-now"})
			if s.round%2 == 1 {
				time.Sleep(jitter)
				s.model.open(g)
			}
			s.gets(id)
		}), 1)
		s.is.True(strings.Contains(s.call("shepherd_status", object{})["text"].(string), s.agent)) // results are readable
		return s
	},
	"new session in mid-run, with one queued": func(s *stage) *stage {
		return s.left(func() { s.ask(object{"type": "new_session"}) })
	},
	"fork in mid-run, with one queued": func(s *stage) *stage {
		return s.left(func() {
			list := s.ask(object{"type": "get_fork_messages"})["data"].(map[string]any)["messages"].([]any)
			s.ask(object{"type": "fork", "entryId": list[len(list)-1].(map[string]any)["entryId"]})
		})
	},
	"switch in mid-run, with one queued": func(s *stage) *stage {
		other := s.session("other")
		if _, err := os.Stat(other); err != nil {
			s.is.NoErr(os.WriteFile(other, []byte(`{"type":"session","version":3,"id":"other-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"`+s.project+`"}`+"\n"), 0o600))
		}
		return s.left(func() { s.ask(object{"type": "switch_session", "sessionPath": other}) })
	},
	"what settles after its session is not told": func(s *stage) *stage {
		g := s.gate("late")
		d := s.call("shepherd_prompt", object{"id": s.agent, "message": "gate " + g})
		s.call("shepherd_watch", object{"id": d["promptId"]})
		before := delivered(s.t, s.main)
		s.ask(object{"type": "new_session"})
		s.call("shepherd_status", object{}) // so the host knows that the other is over
		s.is.Equal(s.calls(func() {
			s.model.open(g)
			time.Sleep(500 * time.Millisecond)
			s.ask(object{"type": "switch_session", "sessionPath": s.main})
			time.Sleep(500 * time.Millisecond)
		}), 0)
		s.is.Equal(delivered(s.t, s.main), before)
		s.is.True(strings.Contains(s.call("shepherd_wait", object{"id": d["promptId"]})["text"].(string), "result of "+g)) // but it can be read
		return s
	},
	"quit with three queued, restart, resume": func(s *stage) *stage { return s.restarted(func() { s.quit() }) },
	"pi killed with three queued":             func(s *stage) *stage { return s.restarted(func() { s.kill(syscall.SIGKILL) }) },
	"pi hung up with three queued":            func(s *stage) *stage { return s.restarted(func() { s.kill(syscall.SIGHUP) }) },
	"both killed with three queued": func(s *stage) *stage {
		return s.restarted(func() {
			_ = syscall.Kill(s.host(), syscall.SIGKILL)
			s.kill(syscall.SIGKILL)
		})
	},
	"Escape with one queued": func(s *stage) *stage {
		g := s.gate("escape")
		id := s.watched(s.agent, g)
		s.busy()
		s.finish(g)
		s.is.Equal(s.calls(func() { s.ask(object{"type": "abort"}); s.gets(id) }), 0)
		return s
	},
	"Escape with one handed over": func(s *stage) *stage {
		g := s.gate("handed")
		id := s.watched(s.agent, g)
		s.is.Equal(s.calls(func() {
			s.model.open(g)
			s.until("it is handed over", func() bool { return len(s.model.parent("result of "+g)) > 0 })
			s.ask(object{"type": "abort"})
			s.gets(id)
		}), 1)
		return s
	},
	"in the same instant as a prompt": func(s *stage) *stage {
		g := s.gate("instant")
		id := s.watched(s.agent, g)
		s.model.open(g)
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
		s.prompt("say I was not lost " + g)
		s.gets(id)
		s.idle()
		s.is.True(len(s.model.parent("I was not lost "+g)) > 0)
		return s
	},
	"manual compaction": func(s *stage) *stage {
		g := s.gate("compact")
		id := s.watched(s.agent, g)
		s.turn("say something to compact")
		before := s.model.count()
		s.send(object{"type": "compact", "id": "c" + g})
		s.model.open(g)
		s.gets(id)
		s.idle()
		s.is.True(s.model.count()-before <= 4) // the summary's calls and one turn
		s.is.Equal(len(s.ledgerIDs()), 0)
		return s
	},
	"automatic compaction": func(s *stage) *stage {
		g := s.gate("auto")
		id := s.watched(s.agent, g)
		s.turn("say something to compact")
		s.prompt("big and now it is full")
		s.until("compaction", func() bool { return s.count("compaction_start") > s.round })
		s.model.open(g)
		s.gets(id)
		s.idle()
		return s
	},
	"the notice's own turn fails": func(s *stage) *stage {
		g := s.gate("error")
		id := s.watched(s.agent, g)
		s.model.fail("result of " + g)
		s.is.Equal(s.calls(func() { s.model.open(g); s.gets(id) }), 1) // delivered; not repeated
		return s
	},
	"a turn fails with one queued": func(s *stage) *stage {
		g := s.gate("failed")
		id := s.watched(s.agent, g)
		s.prompt("bash sleep 0.7", "status 401 no")
		s.until("pi works", s.streaming)
		s.finish(g)
		s.gets(id)
		s.idle()
		return s
	},
	"host killed with a call waiting": func(s *stage) *stage {
		g := s.gate("waiting")
		d := s.call("shepherd_prompt", object{"id": s.agent, "message": "gate " + g})
		s.prompt(`call shepherd_wait {"id":"`+d["promptId"].(string)+`"}`, "say it went on")
		s.until("the call waits", func() bool { return s.count("tool_execution_start") > s.count("tool_execution_end") })
		time.Sleep(100 * time.Millisecond)
		_ = syscall.Kill(s.host(), syscall.SIGKILL)
		s.until("the turn goes on", func() bool { return !s.streaming() })
		s.is.True(len(s.model.parent("may have been carried out")) > 0)
		s.agent = s.again() // and a new host serves the next call
		return s
	},
	"host killed with a notice queued and a watch open": func(s *stage) *stage {
		if s.round > 0 && s.round%3 == 0 { // a fourth host within a minute would wait for a tool call
			s = s.fresh()
		}
		g, h := s.gate("queued"), s.gate("open")
		queued := s.watched(s.agent, g)
		open := s.watched(s.again(), h)
		rest := s.busy()
		s.finish(g)
		_ = syscall.Kill(s.host(), syscall.SIGKILL)
		rest()
		s.gets(queued, open)
		s.idle()
		s.is.True(len(s.model.parent(`"status":"interrupted"`)) > 0)
		s.agent = s.again()
		return s
	},
}

// fresh is another pi in the same session.
func (s *stage) fresh() *stage {
	s.t.Helper()
	s.quit()
	next := &stage{rpc: s.rpc.machine.rpc(s.t, "--session", s.main), is: s.is, main: s.main, round: s.round}
	next.agent = next.again()
	return next
}

// again starts another agent.
func (s *stage) again() string {
	s.t.Helper()
	return s.rpc.agent(s.gate("more"))
}

// gets waits until the session holds these notices besides those that it had, each once.
func (s *stage) gets(ids ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the session holds %q", ids), func() bool {
		all := delivered(s.t, s.main)
		for _, id := range ids {
			if !contains(all, id) {
				return false
			}
		}
		return true
	})
}

func contains(all []string, id string) bool {
	for _, a := range all {
		if a == id {
			return true
		}
	}
	return false
}

// left plays the leaving of a session in mid-run: what is queued is stored in the session that
// asked for it, without a turn, and the other one hears nothing.
func (s *stage) left(leave func()) *stage {
	g := s.gate("left")
	id := s.watched(s.agent, g)
	s.busy()
	s.finish(g)
	s.is.Equal(s.calls(func() {
		leave()
		s.until("it is another session", func() bool { return s.file() != s.main })
		time.Sleep(600 * time.Millisecond)
		if other := s.file(); contains(delivered(s.t, other), id) && !strings.Contains(parentOf(s.t, other), s.main) {
			s.t.Error("the notice is in the other session")
		}
		s.ask(object{"type": "switch_session", "sessionPath": s.main})
		s.gets(id)
	}), 0)
	return s
}

func parentOf(t testing.TB, file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	return first
}

// restarted plays the end of pi with three notices queued: they are shown once, as one
// message, without a turn, when the session is opened again.
func (s *stage) restarted(end func()) *stage {
	var ids []string
	gates := []string{s.gate("one"), s.gate("two"), s.gate("three")}
	for i, g := range gates {
		agent := s.agent
		if i > 0 {
			agent = s.again()
		}
		ids = append(ids, s.watched(agent, g))
	}
	s.busy()
	s.model.open(gates...)
	s.until("all three are in the ledger", func() bool { return len(s.ledgerIDs()) == 3 })
	time.Sleep(100 * time.Millisecond)
	before := s.model.count()
	end()
	next := &stage{rpc: s.rpc.machine.rpc(s.t, "--session", s.main), is: s.is, main: s.main, round: s.round}
	next.gets(ids...)
	next.idle()
	next.is.Equal(next.model.count(), before) // nobody asked for a turn
	next.until("the ledger is empty", func() bool { return len(next.ledgerIDs()) == 0 })
	next.agent = next.again()
	return next
}

func TestLife(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		for name, row := range life {
			t.Run(name, func(t *testing.T) {
				own := *m
				own.t, own.project, own.model = t, t.TempDir(), m.model
				s := own.stage(t, "main")
				for i := range rounds() {
					s.round = i
					s = row(s)
					s.once()
					if t.Failed() {
						return
					}
				}
			})
		}
	})
}

// once checks that no notice stands twice in the session.
func (s *stage) once() {
	s.t.Helper()
	seen := map[string]bool{}
	for _, id := range delivered(s.t, s.main) {
		if seen[id] {
			s.t.Errorf("notice %s was delivered twice", id)
		}
		seen[id] = true
	}
}
