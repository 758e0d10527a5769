package pi

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/watch"
	"github.com/pi-shepherd/go-shepherd/watch/watchtest"
)

func TestHost_TheBridgeCarriesTheWholeJob(t *testing.T) {
	p := newHosting().pi(t)
	entered := p.enter(bridgeSession{})
	p.Equal(entered.Place, "the test")
	p.Equal(len(entered.Again), 0)

	agent, prompt := p.working("auth")
	watched := p.good("shepherd_watch", object{"id": prompt})
	p.True(strings.HasPrefix(watched.Text, "watching 1 prompt asynchronously"))
	agent.Finish("it is in retry.go")

	eventually(t, "a notice", func() bool { return len(p.notices()) == 1 })
	n := p.notices()[0]
	p.Equal(string(n.WatchID), watched.Details["watcherId"])
	p.Equal(n.ID, watch.NotificationID(n.WatchID+"/1"))
	p.Equal(n.Session, "session-1")
	p.Equal(len(n.Items), 1)
	i := n.Items[0]
	p.Equal(string(i.PromptID), prompt)
	p.Equal(i.Agent, "scout")
	p.Equal(i.Label, "auth")
	p.Equal(i.Status, lifecycle.StatusDone)
	p.Equal(i.OK, true)
	p.Equal(i.ReturnCode, 0)
	p.Equal(i.Text, "it is in retry.go")
	p.True(strings.HasSuffix(i.NotePath, "/scout-01.md"))
	p.Equal(len(p.openWatches()), 0)
}

func TestHost_WhereAgentsLiveIsSaidOnce(t *testing.T) {
	p := newHosting().pi(t)
	p.enter(bridgeSession{})
	first := p.good("shepherd_start", object{"agent": "scout"})
	second := p.good("shepherd_start", object{"agent": "planner"})
	p.True(strings.Contains(first.Text, "\n   agents live in: the test\n   return code: 0"))
	p.True(!strings.Contains(second.Text, "agents live in"))
}

func TestHost_TheHerdIsShownAsItChanges(t *testing.T) {
	p := newHosting().pi(t)
	p.enter(bridgeSession{})
	agent, _ := p.working("auth")
	state := func() (s string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.herd {
			s += c.Agent + " " + c.Label + " " + c.State + ";"
		}
		return s
	}
	eventually(t, "work is shown", func() bool { return state() == "scout auth working;" })
	agent.Block()
	eventually(t, "the dialog is shown", func() bool { return state() == "scout auth blocked;" })
	agent.Work()
	agent.Finish("done")
	eventually(t, "the end is shown", func() bool { return state() == "scout auth done;" })
	p.True(p.herd[0].Until > 0) // its age stands still
	p.good("shepherd_close", object{"id": p.herd[0].ID})
	eventually(t, "a closed agent is not shown", func() bool { return state() == "" })
}

func TestHost_HostTools(t *testing.T) {
	w := newHosting()
	w.open = func(*Parent) (Parts, error) {
		return Parts{
			Place: "the test",
			Agents: func(context.Context) ([]Definition, error) {
				return []Definition{{"scout", "looks around", "bundled", ""}, {"planner", "plans", "~/.pi/agent/agents/planner.md", "x/y"}}, nil
			},
			Prune: func(context.Context) ([]string, error) { return []string{"pane w1:p2 (scout)"}, nil },
		}, nil
	}
	p := w.pi(t)
	p.enter(bridgeSession{})
	p.working("auth")
	for name, test := range map[string]struct {
		args any
		want string
	}{
		"shepherd_agents": {object{}, "2 agents are defined.\n\ncall:\n    shepherd_agents {}\n\nreturn:\n    [{\"agent\":\"scout\",\"description\":\"looks around\",\"model\":\"as the parent\",\"source\":\"bundled\"},\n     {\"agent\":\"planner\""},
		"shepherd_herd":   {object{}, `"label":"auth","state":"working"`},
		"shepherd_prune":  {object{}, `["pane w1:p2 (scout)"]`},
	} {
		r := p.good(name, test.args)
		if !strings.Contains(r.Text, test.want) {
			t.Errorf("%s says\n%s\nwant in it\n%s", name, r.Text, test.want)
		}
		if r := p.tool(name, object{"colour": "red"}); !r.IsError || !strings.Contains(r.Text, "colour") {
			t.Errorf("%s took an unknown argument: %s", name, r.Text)
		}
	}
	for _, args := range []any{object{}, object{"id": nil}, object{"id": "null"}, object{"id": 5}, object{"id": "x", "lines": -1}} {
		if r := p.tool("shepherd_read", args); !r.IsError || r.ReturnCode != 1 || r.Details["code"] != "invalid_argument" {
			t.Errorf("shepherd_read took %v: %s", args, r.Text)
		}
	}
	if r := p.tool("shepherd_read", object{"id": "nobody"}); r.Details["code"] != "unknown_handle" {
		t.Errorf("shepherd_read knew nobody: %s", r.Text)
	}
}

func TestHost_ArgumentsAreCheckedAgainInGo(t *testing.T) {
	p := newHosting().pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	for _, args := range []any{object{"id": `["` + prompt + `"]`}, object{"id": []string{prompt}}, object{"id": prompt}} {
		r := p.good("shepherd_watch", args) // a list in a string, as models send it
		p.True(strings.Contains(r.Text, prompt))
	}
	for _, args := range []any{object{"id": "null"}, object{"id": ""}, object{"id": 5}, object{"id": []any{"a", 5}}, object{}, "text", nil} {
		r := p.tool("shepherd_watch", args)
		p.True(r.IsError)
	}
	agent.Finish("done")
}

func TestHost_TheBridgeIsANotifier(t *testing.T) {
	watchtest.TestNotifier(t, func(t *testing.T) (watch.Notifier, func() []watch.NotificationID) {
		w := newHosting()
		p := w.pi(t)
		p.enter(bridgeSession{})
		return w.parent.host.all()[0], func() []watch.NotificationID {
			var ids []watch.NotificationID
			for _, n := range p.notices() {
				ids = append(ids, n.ID)
			}
			return ids
		}
	})
}

var update = flag.Bool("update", false, "write extension/tools.json anew")

// TestHost_TheToolListIsTheTools holds the file that the extension registers from against the
// tools that there are. After a change: go test ./adapters/pi -run TheToolList -update
func TestHost_TheToolListIsTheTools(t *testing.T) {
	is := is.New(t)
	sh, err := shepherd.New(shepherd.Config{Herdr: &lifecycletest.Herdr{}, FS: notestest.NewDisk().View(), Parent: shepherd.Parent("list")})
	is.NoErr(err)
	t.Cleanup(func() { _ = sh.Close(t.Context()) })
	type entry struct {
		Name        string          `json:"name"`
		Label       string          `json:"label"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	var list []entry
	for _, tool := range append(sh.Tools(), (&hostSession{}).hostTools()...) {
		list = append(list, entry{tool.Name, strings.ReplaceAll(tool.Name, "_", " "), tool.Description, tool.Schema})
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	is.NoErr(e.Encode(list))
	if *update {
		is.NoErr(os.WriteFile("extension/tools.json", want.Bytes(), 0o644))
		return
	}
	if want.String() != string(parentTools) {
		t.Error("extension/tools.json is not what the tools are; run this test with -update")
	}
}

// A notice's text is cut, and says so; what is not UTF-8 is mended (ruling R20).
func TestHost_ABigTextIsCutAndSaysWhereTheWholeIs(t *testing.T) {
	is := is.New(t)
	is.Equal(cutText("short", "/n.md"), "short")
	is.Equal(cutText("broken \xff", ""), "broken \uFFFD")
	for _, pad := range []string{"", "x", "xx", "xxx"} { // the cut falls into a character
		cut := cutText(pad+strings.Repeat("日", maxNoticeText/3+1), "/n.md")
		is.True(utf8.ValidString(cut))
		head, tail, _ := strings.Cut(cut, "\n")
		is.True(len(head) <= maxNoticeText && len(head) > maxNoticeText-4)
		is.Equal(tail, "[cut here: 64.0 KiB of 64.0 KiB; the whole is in /n.md]")
	}
	p := newHosting().pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	p.good("shepherd_watch", object{"id": prompt})
	agent.Finish(strings.Repeat("long answer é ", 1<<20))
	eventually(t, "a notice", func() bool { return len(p.notices()) == 1 })
	text := p.notices()[0].Items[0].Text
	is.True(len(text) < maxNoticeText+200)
	is.True(strings.Contains(text, "scout-01.md]"))
}

// Two watches of one prompt are two notices, in the order in which they were registered.
func TestHost_EveryWatchIsTold(t *testing.T) {
	p := newHosting().pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	for range 3 {
		p.good("shepherd_watch", object{"id": prompt})
	}
	agent.Finish("done")
	eventually(t, "three notices", func() bool { return len(p.notices()) == 3 })
	orders := map[int]bool{}
	for _, n := range p.notices() {
		orders[n.Order] = true
	}
	p.Equal(orders, map[int]bool{1: true, 2: true, 3: true})
}
