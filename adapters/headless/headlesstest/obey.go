package headlesstest

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Obey is a script that does what the lines of the prompt say, one after the other; other
// lines mean nothing to it. Without a say it answers with nothing.
//
//	say WORDS         say something; the last one is the answer
//	think 200ms       take time
//	tool OUTPUT       use a tool
//	retry WORDS       an attempt fails and is tried again
//	fail WORDS        the model call fails for good
//	abort             the turn is interrupted
//	ask QUESTION      open a dialog, and say how it was answered
//	hang              never end
//	exit 3            end the process
//	kill              end the process the hard way
//	leave             end the process right after this turn
//	spawn             start a process in its own session, and say its id
//	child             start a process in the agent's group, and say its id
//	garbage           write lines that are no records
//	huge 30000000     use a tool that gives so many bytes
//	deafen 30000000   write so many bytes that mean nothing
//	note WORDS        append a line to the assigned note
//	save PATH         write the prompt, as it arrived, to a file
func Obey(t *Turn) {
	for line := range strings.Lines(t.Text) {
		verb, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if act, ok := acts[verb]; ok {
			act(t, rest)
		}
	}
}

var acts = map[string]func(t *Turn, rest string){
	"say":   (*Turn).Say,
	"think": func(t *Turn, rest string) { t.Think(must(time.ParseDuration(rest))) },
	"tool":  func(t *Turn, rest string) { t.Tool("bash", rest) },
	"retry": (*Turn).Retry,
	"fail":  (*Turn).Fail,
	"abort": func(t *Turn, _ string) { t.Abort() },
	"ask":   func(t *Turn, rest string) { t.Say("confirmed: " + strconv.FormatBool(t.Ask(rest))) },
	"hang":  func(t *Turn, _ string) { t.Hang() },
	"exit":  func(t *Turn, rest string) { t.Exit(must(strconv.Atoi(rest)), "told to exit") },
	"kill": func(*Turn, string) {
		p := must(os.FindProcess(os.Getpid()))
		_ = p.Kill()
		select {}
	},
	"leave": func(t *Turn, _ string) { t.Leave() },
	"spawn": func(t *Turn, _ string) { t.Say(strconv.Itoa(must(t.Spawn(true)))) },
	"child": func(t *Turn, _ string) { t.Say(strconv.Itoa(must(t.Spawn(false)))) },
	"garbage": func(t *Turn, _ string) {
		t.Raw([]byte("Warning: experimental feature\n\x00\xff\nnull\n[1,2\n{\"type\":\"message_end\",\"mess\n}{\n{\"type\":\"novel\",\"x\":1}{\"type\":\"glued\"}\r\n\n"))
	},
	"huge": func(t *Turn, rest string) { t.Tool("bash", strings.Repeat("x", must(strconv.Atoi(rest)))) },
	"deafen": func(t *Turn, rest string) {
		for left := must(strconv.Atoi(rest)); left > 0; left -= 1000 {
			t.Raw([]byte(`{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","delta":"` + strings.Repeat("x", 900) + "\"}}\n"))
		}
	},
	"save": func(t *Turn, rest string) { must(0, os.WriteFile(rest, []byte(t.Text), 0o600)) },
	"note": func(t *Turn, rest string) {
		if err := t.Note(rest + "\n"); err != nil {
			t.Fail(err.Error())
		}
	},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("headlesstest: " + err.Error())
	}
	return v
}
