//go:build unix

package pi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestChild_GetsItsPromptByteForByte(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	begin := "!ls\n/quit\n@x\n"
	text := begin + strings.Repeat("\ttab \"double\" 'single' `back` $HOME \\n\r\n[paste #1 +3 lines] 🐑 \u2028 \x1b[31m\n", 300) + "say got it\n\n  "
	is.True(len(text) > 20_000)
	p := c.send("1", text)
	is.Equal(c.result(p).Text, "got it")
	_, got, _ := strings.Cut(c.model.Received(), "\n")
	is.True(got == text)

	for i, begin := range []string{"!echo no > made", "/quit", "/new", "@x", "[paste #1 +3 lines]"} {
		p := c.send("a"+string(rune('0'+i)), begin+"\nsay yes")
		is.Equal(c.result(p).Text, "yes")
	}
	_, err := os.Stat(filepath.Join(c.dir, "made"))
	is.True(os.IsNotExist(err))
}

// One child, one prompt after the other, and everything that happens in between.
func TestChild_EachPromptGetsItsOwnTextAndStatus(t *testing.T) {
	is := is.New(t)
	c := launch(t)

	p := c.send("1", "say one")
	is.Equal(c.result(p).Text, "one")

	c.types("say for a human", enter)
	e := c.until(t, "turn of a human over", func(e link.Event) bool { return e.Turns == 2 && !e.Busy })
	is.Equal(e.Current.Prompt, p)   // still the newest word
	is.Equal(e.Current.Text, "one") // and unchanged

	p = c.send("2", "slow 4s two at leisure")
	c.until(t, "started", started(p))
	c.types("say and a human joins", enter) // steers into the same run
	s := c.result(p)
	is.Equal(s.Kind, lifecycle.Finished)
	is.Equal(s.Text, "two at leisure")
	is.Equal(c.model.Received(), "say and a human joins") // which was answered in it

	p = c.send("3", "slow 20s three words never") // a human's escape
	c.until(t, "started", started(p))
	time.Sleep(200 * time.Millisecond) // let a word come
	c.types(escape)
	s = c.result(p)
	is.Equal(s.Kind, lifecycle.Aborted)
	is.True(s.Text != "three words never")

	p = c.send("4", "status 500 passing\nsay four")
	s = c.result(p)
	is.Equal(s.Kind, lifecycle.Finished)
	is.Equal(s.Text, "four")
	is.True(!c.has(func(e link.Event) bool { return e.Current.Prompt == p && e.Current.Kind == lifecycle.Failed }))

	p = c.send("5", "status 500 for good")
	s = c.result(p)
	is.Equal(s.Kind, lifecycle.Failed)
	is.True(strings.Contains(s.Error, "for good"))
	is.Equal(s.Text, "")

	p = c.send("6", "status 401 bad key")
	s = c.result(p)
	is.Equal(s.Kind, lifecycle.Failed)
	is.True(strings.Contains(s.Error, "bad key"))

	c.reload()
	p = c.send("7", "bash echo hi\nsay seven")
	is.Equal(c.result(p).Text, "seven")

	c.newSession()
	p = c.send("8", "say eight")
	is.Equal(c.result(p).Text, "eight")
	is.True(!c.has(down)) // the link stays through all this

	stored, ok := c.link.Stored(p)
	is.True(ok)
	is.Equal(stored.Text, "eight")
	reply, err := c.link.(link.Replier).Reply(t.Context(), p)
	is.NoErr(err)
	is.Equal(reply, "eight") // from the new session's file
}

func TestChild_AtWork_RefusesAPrompt(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	c.types("hang", enter) // a human's turn
	c.until(t, "busy", busy)
	err := c.link.Send(t.Context(), lifecycle.Submission{Prompt: promptID("1"), Text: "say no"})
	is.True(errors.Is(err, lifecycle.ErrAgentBusy))
	c.types(escape)
	c.until(t, "at rest", rest)
	is.Equal(c.result(c.send("2", "say yes")).Text, "yes")
	is.Equal(c.model.Calls(), 2) // the refused one is not made up for
}

func TestChild_ANewSessionInMidTurn_AbortsThePrompt(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	p := c.send("1", "slow 30s never to the end")
	c.until(t, "started", started(p))
	c.newSession()
	is.Equal(c.result(p).Kind, lifecycle.Aborted)
	is.Equal(c.result(c.send("2", "say fresh")).Text, "fresh")
}

func TestChild_CompactsByItself_AndTheAnswerStands(t *testing.T) {
	is := is.New(t)
	p := newPi(t)
	settings := filepath.Join(p.Env["PI_CODING_AGENT_DIR"], "settings.json")
	edit(t, settings, func(s string) string { // always over its threshold
		return strings.Replace(s, "{", `{"compaction":{"enabled":true,"reserveTokens":1000000,"keepRecentTokens":1},`, 1)
	})
	c := launchPi(t, p)
	for i, want := range []string{"one", "two", "three"} {
		s := c.result(c.send(string(rune('1'+i)), "say "+want))
		is.Equal(s.Kind, lifecycle.Finished)
		is.Equal(s.Text, want)
	}
	session, err := os.ReadFile(filepath.Join(c.link.Dir(), sessionFile))
	is.NoErr(err)
	is.True(strings.Contains(string(session), `"type":"compaction"`)) // it did happen
}

// asker is somebody's extension that asks a question at the start of a run.
const asker = `export default function (pi) {
	pi.on("before_agent_start", async (e, ctx) => { if (e.prompt.includes("please ask")) await ctx.ui.confirm("Sure?", "really"); });
}`

func TestChild_ADialogLeftOpen_IsTold(t *testing.T) {
	is := is.New(t)
	c := launch(t, "-e", file(t, "asker.ts", asker))
	p := c.send("1", "please ask\nsay asked")
	c.until(t, "dialog", func(e link.Event) bool { return e.Dialog })
	c.types(enter)
	e := c.until(t, "settled", settled(p))
	is.True(!e.Dialog)
	is.Equal(e.Current.Text, "asked")
}

func TestChild_ShepherdDone(t *testing.T) {
	p := newPi(t)
	withTools(t, p)
	c := launchPi(t, p)
	for i, tt := range []struct {
		name, text string
		want       lifecycle.Signal
		code       int // -1: none
	}{
		{"a text of its own", `tool shepherd_done {"text":"the result"}` + "\nsay bye", lifecycle.Signal{Kind: lifecycle.Finished, Text: "the result"}, -1},
		{"an error", `tool shepherd_done {"error":"no such file","returnCode":3}` + "\nsay I could not", lifecycle.Signal{Kind: lifecycle.Failed, Text: "I could not", Error: "no such file"}, 3},
		{"success with a code", `tool shepherd_done {"returnCode":0}` + "\nsay well", lifecycle.Signal{Kind: lifecycle.Finished, Text: "well"}, 0},
		{"nothing, in several ways", `tool shepherd_done {"text":"null","error":""}` + "\nsay well", lifecycle.Signal{Kind: lifecycle.Finished, Text: "well"}, -1},
		{"not called", "say well", lifecycle.Signal{Kind: lifecycle.Finished, Text: "well"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			is := is.New(t)
			s := c.result(c.send("d"+string(rune('0'+i)), tt.text))
			is.Equal(s.Kind, tt.want.Kind)
			is.Equal(s.Text, tt.want.Text)
			is.Equal(s.Error, tt.want.Error)
			is.Equal(s.Code != nil, tt.code >= 0)
			if s.Code != nil {
				is.Equal(*s.Code, tt.code)
			}
		})
	}
}
