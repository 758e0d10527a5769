package herdrtest

import (
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Script is what a scripted agent does with a prompt. When it returns, the turn ends.
type Script func(t *Turn)

// Turn is one turn of a scripted agent, and what its script can do.
type Turn struct {
	Text string // the prompt, without the marker line

	s       *Server
	p       *pane
	a       *agent
	prompt  lifecycle.PromptID // "": a human's, or typed
	aborted chan struct{}
	gone    chan struct{} // closed when the agent ends
	answers chan bool
	once    sync.Once
	said    string
	why     string
}

func (t *Turn) run() {
	defer t.end() // also when the script was left by runtime.Goexit
	t.s.o.Script(t)
}

func (t *Turn) abort() { t.once.Do(func() { close(t.aborted) }) }

// end settles the turn.
func (t *Turn) end() {
	signal := lifecycle.Signal{Prompt: t.prompt, Kind: lifecycle.Finished, Text: t.said, At: time.Now()}
	select {
	case <-t.aborted:
		signal.Kind = lifecycle.Aborted
	default:
		if t.why != "" {
			signal.Kind, signal.Error = lifecycle.Failed, t.why
		}
	}
	t.s.with(t.p, t.a, func() {
		t.a.turn = nil
		t.a.out += "\n" + t.said
		if t.a.child != nil {
			t.a.child.settled(signal)
		}
		t.s.setStatus(t.p, t.a, "idle")
	})
}

// Say says something; the last saying is the answer.
func (t *Turn) Say(words string) { t.said = words }

// Fail ends the turn with the provider's message.
func (t *Turn) Fail(why string) {
	t.why = why
	runtime.Goexit()
}

// Think takes time.
func (t *Turn) Think(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.aborted:
		runtime.Goexit()
	case <-t.gone:
		runtime.Goexit()
	}
}

// Hang never ends.
func (t *Turn) Hang() { t.Think(1 << 40) }

// Exit ends the agent's program in the middle of the turn.
func (t *Turn) Exit() {
	t.s.with(t.p, t.a, func() { t.s.agentEnded(t.p, t.a) })
	runtime.Goexit()
}

// Ask opens a dialog and waits for [Server.Answer].
func (t *Turn) Ask() bool {
	t.dialog(true)
	defer t.dialog(false)
	select {
	case yes := <-t.answers:
		return yes
	case <-t.aborted:
	case <-t.gone:
	}
	runtime.Goexit()
	return false
}

func (t *Turn) dialog(open bool) {
	t.s.with(t.p, t.a, func() {
		if t.a.child != nil {
			t.a.child.update(func(l *level) { l.Dialog = open })
		} else if open {
			t.s.setStatus(t.p, t.a, "blocked")
		} else {
			t.s.setStatus(t.p, t.a, "working")
		}
	})
}

// Obey is a script that does what the lines of the prompt say, one after the other; other
// lines mean nothing to it.
//
//	say WORDS     say something; the last one is the answer
//	think 200ms   take time
//	fail WORDS    the model call fails for good
//	ask           open a dialog
//	hang          never end
//	exit          end the program
func Obey(t *Turn) {
	for line := range strings.Lines(t.Text) {
		verb, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		switch verb {
		case "say":
			t.Say(rest)
		case "think":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fail(err.Error())
			}
			t.Think(d)
		case "fail":
			t.Fail(rest)
		case "ask":
			t.Ask()
		case "hang":
			t.Hang()
		case "exit":
			t.Exit()
		}
	}
}
