package lifecycletest_test

import (
	"strings"
	"testing"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

func TestInMemoryHerdr(t *testing.T) {
	for _, test := range []struct {
		name   string
		noLink bool
	}{{"linked", false}, {"without a link", true}} {
		t.Run(test.name, func(t *testing.T) {
			lifecycletest.TestHerdr(t, func(t *testing.T) lifecycletest.Harness { return harness(test.noLink) })
		})
	}
}

// harness makes agents that obey the first word of their prompt.
func harness(noLink bool) lifecycletest.Harness {
	h := &lifecycletest.Herdr{NoLink: noLink}
	h.OnSubmit = func(a *lifecycletest.Agent, s lifecycle.Submission) error {
		if err := a.Begin(s); err != nil {
			return err
		}
		line, _, _ := strings.Cut(s.Text, "\n")
		do, arg, _ := strings.Cut(line, " ")
		switch {
		case do == "exit":
			a.Exit("exit status 3")
		case do == "hang":
		case noLink:
			a.Rest()
		case do == "fail":
			a.Fail(arg)
		default:
			a.Finish(arg)
		}
		return nil
	}
	word := func(do string) func(string) string { return func(arg string) string { return do + " " + arg } }
	return lifecycletest.Harness{
		Herdr: h, Signals: !noLink,
		Say: word("say"), Fail: word("fail"),
		Hang: func() string { return "hang" }, Exit: func() string { return "exit" },
		Received: func(t lifecycle.Target) string {
			for _, a := range h.Agents() {
				if a.Target == t {
					got := a.Prompts()
					return got[len(got)-1].Text
				}
			}
			return ""
		},
	}
}
