//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
)

func TestAParentIsToldOnceAndThenTurnsToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		is := is.New(t)
		file := m.session("main")
		p := m.rpc(t, "--session", file)
		p.turn("start scout auth", "prompt 1 slow 300ms it is in retry.go", "watch 1", "say waiting")
		before := m.model.count()
		p.until("the parent is told", func() bool { return len(m.model.parent("shepherd_watcher completion")) > 0 })
		p.idle()
		is.Equal(m.model.count(), before+1) // exactly one further call
		last := m.model.parent("shepherd_watcher completion: scout: auth done")
		is.Equal(len(last), 1)
		told := last[0].Messages[len(last[0].Messages)-1]
		is.Equal(told.Role, "user")
		is.True(strings.Contains(told.text(), `"text":"it is in retry.go"`))

		stored := notices(t, file)
		is.Equal(len(stored), 1)
		is.True(stored[0].Display)
		is.Equal(len(stored[0].Details.IDs), 1)
		is.Equal(len(stored[0].Details.Items), 1)
		item := stored[0].Details.Items[0]
		for _, name := range []string{"watcherId", "promptId", "agentId", "agent", "label", "status", "ok", "returnCode", "notePath", "pending", "seconds"} {
			if _, ok := item[name]; !ok {
				t.Errorf("the details lack %s", name)
			}
		}
		is.Equal(item["text"], nil) // it is in the content, once
	})
}

func TestThreeCompletionsInALongTurnAreOneMessageInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		s := m.stage(t, "main")
		agents := []string{s.agent, s.again(), s.again()}
		gates := []string{s.gate("one"), s.gate("two"), s.gate("three")}
		prompts := []any{}
		for i, a := range agents {
			prompts = append(prompts, s.call("shepherd_prompt", object{"id": a, "message": "gate " + gates[i]})["promptId"])
		}
		first := s.call("shepherd_watch", object{"id": []any{prompts[2], prompts[0]}})["watcherId"].(string)
		second := s.call("shepherd_watch", object{"id": prompts[1]})["watcherId"].(string)
		rest := s.busy()
		s.finish(gates[1])
		s.model.open(gates[0], gates[2])
		s.until("all are in the ledger", func() bool {
			known := s.ledgers()
			return !slices.ContainsFunc(prompts, func(p any) bool { return !strings.Contains(known, p.(string)) })
		})
		time.Sleep(100 * time.Millisecond) // and with the extension
		rest()
		s.until("they are told", func() bool { return len(notices(t, s.main)) > 0 })
		s.idle()
		all := notices(t, s.main)
		s.is.Equal(len(all), 1)
		var got []any
		for _, i := range all[0].Details.Items {
			got = append(got, i["promptId"])
		}
		s.is.Equal(got, []any{prompts[2], prompts[0], prompts[1]}) // by watch, then by input
		s.is.Equal(all[0].Details.IDs[0][:len(first)], first)
		s.is.Equal(all[0].Details.IDs[len(all[0].Details.IDs)-1], second+"/1")
	})
}

// TestANoticeCutsIntoNothingAndWakesTheParent is case C10: always one custom message, never a
// user's, with a turn of its own, whether the parent works or rests.
func TestANoticeCutsIntoNothingAndWakesTheParent(t *testing.T) {
	onBoth(t, aNoticeCutsIntoNothing)
}

func aNoticeCutsIntoNothing(t *testing.T, m *machine) {
	s := m.stage(t, "main")
	for _, busy := range []bool{false, true} {
		g := s.gate("c10")
		id := s.watched(s.agent, g)
		if busy {
			s.prompt("slow 1s one two three four five six seven eight nine ten")
			s.until("pi works", s.streaming)
		}
		s.model.open(g)
		s.gets(id)
		s.idle()
		if busy {
			reply := s.model.parent("result of " + g)[0].Messages
			s.is.True(strings.Contains(reply[len(reply)-2].text(), "ten")) // the reply was not cut
		}
		s.is.Equal(len(s.model.parent("result of "+g)), 1) // one call, since one message
	}
	raw, err := os.ReadFile(s.main)
	s.is.NoErr(err)
	s.is.Equal(strings.Count(string(raw), `"type":"custom_message"`), 2)
}

// TestPrintAndJSONMode holds ruling R15 and that nothing keeps pi alive.
func TestPrintAndJSONMode(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		for _, mode := range [][]string{{"-p"}, {"--mode", "json"}} {
			t.Run(mode[len(mode)-1], func(t *testing.T) {
				is := is.New(t)
				script := "start scout auth\nprompt 1 say it is in retry.go\nwatch 1\nwait 1\nsay finished"
				out, err := m.once(t, append(mode, script)...)
				is.NoErr(err)
				is.True(strings.Contains(out, "finished"))
				is.True(len(m.model.parent("use shepherd_wait")) > 0) // what watch said
				is.True(len(m.model.parent(`"text":"it is in retry.go"`)) > 0)
				m.nothingLeft(t)
			})
		}
	})
}

// TestNothingIsLeft ends pi in every way and looks for what it has started.
func TestNothingIsLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		for name, end := range map[string]func(p *rpc){
			"quit":    func(p *rpc) { p.quit() },
			"SIGTERM": func(p *rpc) { p.kill(syscall.SIGTERM) },
			"SIGHUP":  func(p *rpc) { p.kill(syscall.SIGHUP) },
			"SIGKILL": func(p *rpc) { p.kill(syscall.SIGKILL) },
		} {
			t.Run(name, func(t *testing.T) {
				s := m.stage(t, "left-"+name)
				s.watched(s.agent, s.gate("never"))
				s.busy()
				end(s.rpc)
				m.nothingLeft(t)
			})
		}
	})
}

func TestWithoutItsHostPiWorksAndSaysWhatIsMissing(t *testing.T) {
	m := newMachine(t, pitest.Version)
	for i, kv := range m.env {
		if strings.HasPrefix(kv, "SHEPHERD_PI=") {
			m.env[i] = "SHEPHERD_PI=/nowhere/shepherd-pi"
		}
	}
	p := m.rpc(t, "--session", m.session("main"))
	text := p.call("shepherd_start", object{"agent": "scout"})["text"].(string)
	if !strings.Contains(text, "/nowhere/shepherd-pi") || !strings.Contains(text, "go install github.com/pi-shepherd/go-shepherd/examples/shepherd-pi@latest") {
		t.Error(text)
	}
}

// TestTheChildThinksItIsTheParent is case C35: a child that inherits the parent's extension
// has none of its tools.
func TestTheChildThinksItIsTheParent(t *testing.T) {
	m := newMachine(t, pitest.Version)
	dir := filepath.Join(envOf(m, "PI_CODING_AGENT_DIR"), "extensions")
	is := is.New(t)
	is.NoErr(os.MkdirAll(dir, 0o700))
	is.NoErr(os.Symlink(extension(t), filepath.Join(dir, "shepherd.ts"))) // installed for every pi of the user
	p := m.rpc(t, "--session", m.session("main"))
	p.turn("start scout auth", "prompt 1 say done", "wait 1", "say ok")
	is.True(len(m.model.parent(`"text":"done"`)) > 0)
	is.Equal(m.model.children(), 1) // the child's call had no tool of ours
}

func TestAnUnknownAgentIsAnErrorThatListsWhatThereIs(t *testing.T) {
	m := newMachine(t, pitest.Version)
	p := m.rpc(t, "--session", m.session("main"))
	text := p.call("shepherd_start", object{"agent": "scuot"})["text"].(string)
	if !strings.Contains(text, `did you mean \"scout\"`) && !strings.Contains(text, `did you mean "scout"`) || !strings.Contains(text, "planner") {
		t.Error(text)
	}
	text = p.call("shepherd_agents", object{})["text"].(string)
	if !strings.Contains(text, `"agent":"reviewer"`) || !strings.Contains(text, `"source":"bundled"`) {
		t.Error(text)
	}
}

// TestAProjectsAgentsNeedTheUsersWord: the bridge asks, once, and takes no for an answer.
func TestAProjectsAgentsNeedTheUsersWord(t *testing.T) {
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			is := is.New(t)
			m := newMachine(t, pitest.Version)
			m.env = append(m.env, "SHEPHERD_AGENTS=both")
			dir := filepath.Join(m.project, ".pi", "agents")
			is.NoErr(os.MkdirAll(dir, 0o700))
			is.NoErr(os.WriteFile(filepath.Join(dir, "gardener.md"), []byte("---\nname: gardener\ndescription: waters\n---\nYou water.\n"), 0o600))
			p := m.rpc(t, "--session", m.session("main"))
			p.prompt(`call shepherd_start {"agent":"gardener"}`, `call shepherd_start {"agent":"gardener"}`, "say ok")
			var asked map[string]any
			p.until("the user is asked", func() bool {
				for _, e := range p.all() {
					if e["type"] == "extension_ui_request" && e["method"] == "confirm" {
						asked = e
						return true
					}
				}
				return false
			})
			is.True(strings.Contains(fmt.Sprint(asked["message"]), "gardener"))
			p.send(object{"type": "extension_ui_response", "id": asked["id"], "confirmed": yes})
			p.until("it settles", func() bool { return p.count("agent_settled") == 1 })
			questions := 0
			for _, e := range p.all() {
				if e["method"] == "confirm" {
					questions++
				}
			}
			is.Equal(questions, 1)
			started := len(m.model.parent(`shepherd_start started gardener`)) > 0
			is.Equal(started, yes)
		})
	}
}

func TestTheCommand(t *testing.T) {
	m := newMachine(t, pitest.Version)
	s := m.stage(t, "main")
	s.turn("say hi")
	for command, want := range map[string]string{
		"/shepherd":                  "scout: a ",
		"/shepherd agents":           "reviewer: ",
		"/shepherd start worker mow": "shepherd_start started worker: mow, shepherd-agent-",
		"/shepherd notes":            ".shepherd/sessions/0001-",
		"/shepherd settings":         "agents live in: headless processes",
		"/shepherd dance":            "there is: herd, agents, start, notes, settings",
	} {
		s.ask(object{"type": "prompt", "message": command})
		s.until(command+" answers "+want, func() bool {
			for _, e := range s.all() {
				if e["method"] == "notify" && strings.Contains(fmt.Sprint(e["message"]), want) {
					return true
				}
			}
			return false
		})
	}
}

func TestTheWidgetFollowsTheHerd(t *testing.T) {
	m := newMachine(t, pitest.Version)
	s := m.stage(t, "main")
	g := s.gate("widget")
	shows := func(want string) func() bool {
		return func() bool {
			var last any
			for _, e := range s.all() {
				if e["method"] == "setWidget" {
					last = e["widgetLines"]
				}
			}
			return fmt.Sprint(last) == want
		}
	}
	s.until("the idle agent is shown", shows("[scout: a idle]"))
	s.watched(s.agent, g)
	s.until("work is shown", shows("[scout: a working]"))
	s.model.open(g)
	s.until("the end is shown", shows("[scout: a done]"))
	s.call("shepherd_close", object{"id": s.agent})
	s.until("nothing is shown", shows("<nil>"))
}

func TestAWaitShowsHowItGoesAndEndsWithEscape(t *testing.T) {
	m := newMachine(t, pitest.Version)
	s := m.stage(t, "main")
	g := s.gate("wait")
	d := s.call("shepherd_prompt", object{"id": s.agent, "message": "gate " + g})
	s.prompt(fmt.Sprintf(`call shepherd_wait {"id":%q}`, d["promptId"]))
	s.until("the call waits", func() bool { return s.count("tool_execution_start") > s.count("tool_execution_end") })
	s.ask(object{"type": "abort"})
	s.until("it stops, though the prompt goes on", func() bool { return s.count("tool_execution_start") == s.count("tool_execution_end") })
	s.model.open(g)
	s.is.True(strings.Contains(s.call("shepherd_wait", object{"id": d["promptId"]})["text"].(string), "result of "+g)) // the prompt went on
}

func TestTwoPisOnOneSession(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		s := m.stage(t, "main")
		g := s.gate("first")
		id := s.watched(s.agent, g)
		second := m.rpc(t, "--session", s.main)
		agent := second.agent("b") // tools work
		d := second.call("shepherd_prompt", object{"id": agent, "message": "say hi"})
		text := second.call("shepherd_watch", object{"id": d["promptId"]})["text"].(string)
		s.is.True(strings.Contains(text, "another pi has this session open"))
		s.model.open(g)
		s.gets(id)
		s.idle()
		s.once()
	})
}
