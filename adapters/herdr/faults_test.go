package herdr_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func reconcile(d time.Duration) func(*herdr.Options) {
	return func(o *herdr.Options) { o.Reconcile = d }
}

// C08: the one event that matters is lost among 600 others.
func TestALostEvent_IsMadeUpForByReading(t *testing.T) {
	r := start(t, herdrtest.Options{}, false, reconcile(300*time.Millisecond))
	id, pane := r.agent()
	p := r.prompt(id, "think 50ms\nsay done")
	r.until(lifecycle.Target(pane), "working", working)
	r.server.Noise(300)
	r.server.Lose("pane_agent_status_changed", 1)
	r.server.Noise(300)
	r.settles(p, lifecycle.StatusIdle)
}

// Each subscription begins with what is left of the past, about panes of the same names.
func TestReplayedEvents_EndNothing(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	for range 128 {
		for _, kind := range []string{"pane_closed", "pane_exited", "pane_agent_detected", "tab_closed"} {
			r.server.Emit(kind, map[string]any{"pane_id": "w2:p1", "tab_id": "w2:t1", "workspace_id": "w2", "released": true})
		}
	}
	id, pane := r.agent()
	is.Equal(pane, "w2:p1")
	for i := range 5 {
		res := r.settles(r.prompt(id, fmt.Sprintf("think 100ms\nsay %d", i)), lifecycle.StatusDone)
		is.Equal(res.Text, fmt.Sprint(i))
	}
}

// C19: done and idle are one ending, and a look at the pane is none.
func TestDoneThatBecomesIdle_SettlesOnce(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	id, pane := r.agent()
	r.settles(r.prompt(id, "think 50ms"), lifecycle.StatusIdle)
	before, _ := r.herdr.Observe(lifecycle.Target(pane))
	r.server.Look(pane) // done becomes idle
	p := r.prompt(id, "hang")
	r.until(lifecycle.Target(pane), "working", working)
	time.Sleep(3 * rules.RestHold) // the late event is there by now
	o, _ := r.herdr.Observe(lifecycle.Target(pane))
	is.Equal(o.State, lifecycle.Working)
	is.Equal(o.Turns, before.Turns+1)
	_, settled := r.registry.Result(p)
	is.True(!settled)
}

// C31 (a): the text stays in the editor. It is looked at, Enter is pressed once, and the text
// is never sent again.
func TestAPromptThatStaysUnsent_GetsOneEnter(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false, func(o *herdr.Options) { o.NudgeAfter = 100 * time.Millisecond })
	id, _ := r.agent()
	r.server.LoseEnter(1)
	r.settles(r.prompt(id, "think 50ms\nsay it"), lifecycle.StatusIdle)
	is.Equal(r.received(), []string{"think 50ms\nsay it"})
	is.Equal(r.server.Requests()["agent.prompt"], 1)
	is.Equal(r.server.Requests()["pane.send_keys"], 1)
}

func TestAPromptWithoutAnySignOfAStart_TimesOut_AndIsNotSentAgain(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{Blind: true}, false, func(o *herdr.Options) { o.NudgeAfter = 100 * time.Millisecond })
	id, _ := r.agent()
	res := r.settles(r.prompt(id, "say it"), lifecycle.StatusTimeout)
	is.True(strings.Contains(res.Error, "no sign of a start"))
	is.Equal(r.server.Requests()["agent.prompt"], 1)
	is.Equal(len(r.received()), 1)
}

// C31 (b): a stall is reported, and the turn runs all the same.
func TestAReportedStall_IsNoEnd(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	id, pane := r.agent()
	r.server.Fail("agent.prompt", 1, herdrtest.Refuse("agent_prompt_stalled"))
	p := r.prompt(id, "say it") // no error: observed on
	r.server.Human(pane, "think 100ms")
	r.settles(p, lifecycle.StatusIdle)
	is.Equal(r.server.Requests()["agent.prompt"], 1)
}

func TestAPromptWhoseAnswerIsLost_IsObservedAndNotSentAgain(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	id, _ := r.agent()
	r.server.Fail("agent.prompt", 1, herdrtest.DoneButDrop)
	r.settles(r.prompt(id, "think 50ms\nsay it"), lifecycle.StatusIdle)
	is.Equal(len(r.received()), 1)
	is.Equal(r.server.Requests()["agent.prompt"], 1)
}

func TestAPromptThatIsNeverAnsweredNorCarriedOut_TimesOut(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false, func(o *herdr.Options) { o.CallTimeout = 200 * time.Millisecond })
	id, _ := r.agent()
	r.server.Fail("agent.prompt", 1, herdrtest.Hang)
	res := r.settles(r.prompt(id, "say it"), lifecycle.StatusTimeout)
	is.True(strings.Contains(res.Error, "no sign of a start"))
	is.Equal(r.server.Requests()["agent.prompt"], 1)
	is.Equal(len(r.received()), 0)
}

func TestAPromptToAnAgentThatIsNotQuiteReady_Waits(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	id, _ := r.agent()
	r.server.Fail("agent.prompt", 2, herdrtest.Refuse("agent_not_ready"))
	r.settles(r.prompt(id, "think 50ms"), lifecycle.StatusIdle)
	is.Equal(len(r.received()), 1)
}

// Where a prompt is typed, nothing in it is a command, and nothing ends the paste early.
func TestATypedPrompt_IsMadeHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"!rm -rf x":                         "!rm -rf x",
		"/quit":                             "/quit",
		"a\r\nb\rc":                         "a\nb\nc",
		"x\x1b[201~\x1b]0;t\ay\x1b\x07z\tw": "xyz\tw",
	} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, false)
		id, _ := r.agent()
		r.settles(r.prompt(id, in+"\nthink 50ms"), lifecycle.StatusIdle)
		is.Equal(r.received(), []string{want + "\nthink 50ms"})
	}
}

func TestA900KiBPrompt(t *testing.T) {
	text := "say got it\n" + strings.Repeat("<long & 'quoted'>\n", 900<<10/18)
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked)
		id, _ := r.agent()
		want := lifecycle.StatusDone
		if !linked {
			want, text = lifecycle.StatusIdle, text+"think 50ms"
		}
		r.settles(r.prompt(id, text), want)
		is.Equal(r.received(), []string{text})
	}
}

func TestAPromptThatHerdrCannotTake_IsRefusedAndSettled(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	id, _ := r.agent()
	c := r.claim(id)
	err := c.Submit(t.Context(), strings.Repeat("\"", 1<<20))
	is.True(errors.Is(err, herdr.ErrTooLong))
	r.settles(c.ID(), lifecycle.StatusFailed)
	is.Equal(r.server.Requests()["agent.prompt"], 0)
	r.settles(r.prompt(id, "think 50ms"), lifecycle.StatusIdle) // and the agent is free
}

func TestTheServerStopsInMidPrompt(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked)
		id, pane := r.agent()
		p := r.prompt(id, "hang")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.Stop()
		res := r.settles(p, lifecycle.StatusFailed)
		is.True(strings.Contains(res.Error, "not running"))
		is.NoErr(r.registry.CloseAgent(t.Context(), id))
		is.Equal(len(r.server.Links().Dirs()), 0)
	}
}

func TestTheServerRestarts_AndThePaneOfThatNameIsNotOurs(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked, reconcile(200*time.Millisecond))
		id, pane := r.agent()
		p := r.prompt(id, "hang")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.Restart()
		r.settles(p, lifecycle.StatusFailed)
		is.NoErr(r.registry.CloseAgent(t.Context(), id))
		is.Equal(len(r.server.Panes()), 2) // it was not closed
		is.Equal(r.server.Requests()["pane.close"], 0)
		// The next agent lives on the new server.
		id, _ = r.agent()
		res := r.result(r.prompt(id, "think 50ms\nsay new"))
		is.True(res.OK())
	}
}

func TestTheServerIsHandedOver_UnderARunningProgram(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked, reconcile(200*time.Millisecond))
		id, pane := r.agent()
		p := r.prompt(id, "think 500ms\nsay through it all")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.Handoff()
		is.True(r.result(p).OK())
		is.True(r.result(r.prompt(id, "think 50ms\nsay after")).OK())
		is.NoErr(r.registry.CloseAgent(t.Context(), id))
		r.nothingIsLeft() // it was ours still
	}
}

func TestSubscribersThatAreHungUpOn_ComeBack(t *testing.T) {
	r := start(t, herdrtest.Options{}, false, reconcile(time.Hour))
	id, pane := r.agent()
	p := r.prompt(id, "think 300ms\nsay it")
	r.until(lifecycle.Target(pane), "working", working)
	r.server.HangUp()
	time.Sleep(50 * time.Millisecond)
	r.server.HangUp()
	r.settles(p, lifecycle.StatusIdle)
}

// C46: one call that hangs holds up no other agent.
func TestACallThatHangs_HoldsUpNobodyElse(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false, func(o *herdr.Options) { o.CallTimeout = time.Second })
	stuck, pane := r.agent()
	other, _ := r.agent()
	p := r.prompt(stuck, "hang")
	r.until(lifecycle.Target(pane), "working", working)
	r.server.Fail("pane.read", 1, herdrtest.Hang)
	hangs := make(chan error)
	go func() {
		_, err := r.herdr.Recent(t.Context(), lifecycle.Target(pane))
		hangs <- err
	}()
	r.eventually("a call hangs", func() bool { return r.server.Requests()["pane.read"] == 1 })
	r.settles(r.prompt(other, "think 50ms"), lifecycle.StatusIdle)
	is.True(errors.Is(<-hangs, herdr.ErrNoAnswer)) // by its own limit
	_, settled := r.registry.Result(p)
	is.True(!settled)
}

func TestAPaneClosedByHand(t *testing.T) {
	for _, linked := range []bool{true, false} {
		for _, method := range []string{"pane.close", "tab.close", "workspace.close"} {
			is := is.New(t)
			r := start(t, herdrtest.Options{}, linked, reconcile(time.Hour))
			id, pane := r.agent()
			p := r.prompt(id, "hang")
			r.until(lifecycle.Target(pane), "working", working)
			r.server.Do(method, map[string]any{"pane_id": pane, "tab_id": "w2:t1", "workspace_id": "w2"})
			res := r.settles(p, lifecycle.StatusFailed)
			is.True(strings.Contains(res.Error, pane)) // names it (ruling R6)
			is.NoErr(r.registry.CloseAgent(t.Context(), id))
			r.nothingIsLeft()
		}
	}
}

func TestAPaneMovedToAnotherWorkspace_IsFollowed(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked, reconcile(time.Hour))
		id, pane := r.agent()
		p := r.prompt(id, "think 300ms\nsay moved")
		r.until(lifecycle.Target(pane), "working", working)
		is.True(r.server.MovePane(pane) != pane) // and its tab is closed
		is.True(r.result(p).OK())
		is.True(r.result(r.prompt(id, "think 50ms\nsay again")).OK())
		is.NoErr(r.registry.CloseAgent(t.Context(), id))
		r.nothingIsLeft()
	}
}

func TestThePaneOfThatNameWithAnotherProgram_IsNotOurs(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked, reconcile(100*time.Millisecond))
		id, pane := r.agent()
		p := r.prompt(id, "hang")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.Replace(pane, "claude")
		r.settles(p, lifecycle.StatusFailed)
		is.NoErr(r.registry.CloseAgent(t.Context(), id))
		is.Equal(len(r.server.Panes()), 2) // left alone
	}
}

// A killed pi looks finished for a moment.
func TestAKilledAgent_FailsAlthoughHerdrSaysDoneFirst(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked, reconcile(time.Hour))
		id, pane := r.agent()
		p := r.prompt(id, "hang")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.Kill(pane, 300*time.Millisecond) // longer than at rest must hold
		res := r.settles(p, lifecycle.StatusFailed)
		is.True(strings.Contains(res.Error, "program has ended"))
	}
}

// Ruling R2: a lost link is no end. What the child left on disk, or says when it is back,
// settles.
func TestALostLink(t *testing.T) {
	t.Run("comes back in mid-turn", func(t *testing.T) {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, true)
		id, pane := r.agent()
		p := r.prompt(id, "think 300ms\nsay back")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.CutLink(pane)
		r.until(lifecycle.Target(pane), "lost", func(o lifecycle.Observation) bool { return o.Link == lifecycle.LinkLost })
		r.server.MendLink(pane)
		is.Equal(r.settles(p, lifecycle.StatusDone).Text, "back")
	})
	t.Run("stays away, and the signal is on disk", func(t *testing.T) {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, true, reconcile(100*time.Millisecond))
		id, pane := r.agent()
		p := r.prompt(id, "think 300ms\nsay stored")
		r.until(lifecycle.Target(pane), "working", working)
		r.server.CutLink(pane)
		is.Equal(r.settles(p, lifecycle.StatusDone).Text, "stored")
	})
	t.Run("is no way to send", func(t *testing.T) {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, true)
		id, pane := r.agent()
		r.server.CutLink(pane)
		r.until(lifecycle.Target(pane), "lost and seen", func(o lifecycle.Observation) bool {
			return o.Link == lifecycle.LinkLost && o.State == lifecycle.Idle
		})
		c := r.claim(id)
		is.True(c.Submit(t.Context(), "say x") != nil)
		r.settles(c.ID(), lifecycle.StatusFailed)
		is.Equal(r.server.Requests()["agent.prompt"], 0)
	})
}

// Ruling R2: Herdr's status of a linked agent is decoration, whatever it shows.
func TestAHerdrThatSeesNothing_DoesNotMatterWithALink(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{Blind: true}, true)
	id, _ := r.agent()
	is.Equal(r.settles(r.prompt(id, "think 100ms\nsay seen"), lifecycle.StatusDone).Text, "seen")
	is.Equal(r.settles(r.prompt(id, "fail no credit"), lifecycle.StatusFailed).Error, "no credit")
}

func TestADialog_Blocks_AndTheAgentCanBePromptedOnceItIsAnswered(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{}, linked)
		id, pane := r.agent()
		r.settles(r.prompt(id, "ask\nsay answered"), lifecycle.StatusBlocked)
		_, err := r.registry.Claim(t.Context(), id, lifecycle.ClaimOptions{})
		is.True(errors.Is(err, lifecycle.ErrAgentBlocked))
		r.server.Answer(pane, true)
		r.until(lifecycle.Target(pane), "idle", func(o lifecycle.Observation) bool { return o.State == lifecycle.Idle })
		is.True(r.result(r.prompt(id, "think 50ms\nsay next")).OK())
	}
}

func TestAHumanInThePane(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	id, pane := r.agent()
	p := r.prompt(id, "hang")
	r.until(lifecycle.Target(pane), "working", working)
	r.server.Key(pane, "esc")
	r.settles(p, lifecycle.StatusCancelled) // ruling R10

	r.server.Human(pane, "think 200ms\nsay to the human")
	r.until(lifecycle.Target(pane), "working", working)
	_, err := r.registry.Claim(t.Context(), id, lifecycle.ClaimOptions{})
	is.True(errors.Is(err, lifecycle.ErrAgentBusy)) // ruling R8
	r.until(lifecycle.Target(pane), "idle", func(o lifecycle.Observation) bool { return o.State == lifecycle.Idle })
	is.Equal(r.settles(r.prompt(id, "say to us"), lifecycle.StatusDone).Text, "to us")
}

// C55: what a pi keeps in its session file, where Herdr's integration names it.
func TestReply_FromTheSessionFile(t *testing.T) {
	is := is.New(t)
	file := t.TempDir() + "/session.jsonl"
	r := start(t, herdrtest.Options{}, false)
	id, pane := r.agent()
	c := r.claim(id)
	marker := "[sheep:" + string(c.ID())[len(c.ID())-12:] + "]"
	is.NoErr(os.WriteFile(file, []byte(`{"type":"session","id":"s"}
{"type":"message","id":"a","message":{"role":"user","content":[{"type":"text","text":"`+marker+`\nwork"}]}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"from the file"}]}}
`), 0o600))
	r.server.Session(pane, file)
	is.NoErr(c.Submit(t.Context(), "think 50ms\nsay on the screen"))
	is.Equal(r.settles(c.ID(), lifecycle.StatusIdle).Text, "from the file")
}

func TestReply_FromTheScreen(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, false)
	id, pane := r.agent()
	res := r.settles(r.prompt(id, "think 50ms\nsay on the screen"), lifecycle.StatusIdle)
	is.True(strings.Contains(res.Text, "on the screen"))
	is.True(res.Inferred)
	text, err := r.herdr.Recent(t.Context(), lifecycle.Target(pane))
	is.NoErr(err)
	is.True(strings.Contains(text, "on the screen"))
}
