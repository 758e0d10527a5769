package headless

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestEndings(t *testing.T) {
	tests := map[string]struct {
		lines []string
		want  lifecycle.Signal
	}{
		"nothing said":                   {[]string{"tool x"}, lifecycle.Signal{Kind: lifecycle.Finished}},
		"provider failure (C20)":         {[]string{"say looking", "fail 401: bad key"}, lifecycle.Signal{Kind: lifecycle.Failed, Error: "401: bad key"}},
		"a passing error (C14)":          {[]string{"retry 500: overloaded", "think 20ms", "say done"}, lifecycle.Signal{Kind: lifecycle.Finished, Text: "done"}},
		"errors until retries run out":   {[]string{"retry 500: a", "retry 500: b", "fail 500: c"}, lifecycle.Signal{Kind: lifecycle.Failed, Error: "500: c"}},
		"interrupted (C44)":              {[]string{"say so far", "abort", "say never"}, lifecycle.Signal{Kind: lifecycle.Aborted, Text: "so far"}},
		"a dialog is cancelled":          {[]string{"ask really?"}, lifecycle.Signal{Kind: lifecycle.Finished, Text: "confirmed: false"}},
		"garbage between the records":    {[]string{"garbage", "say done", "garbage"}, lifecycle.Signal{Kind: lifecycle.Finished, Text: "done"}},
		"a line of 30 MB (C55)":          {[]string{"huge 30000000", "say done"}, lifecycle.Signal{Kind: lifecycle.Finished, Text: "done"}},
		"U+2028 and U+2029 are no lines": {[]string{"say a\u2028b\u2029c"}, lifecycle.Signal{Kind: lifecycle.Finished, Text: "a\u2028b\u2029c"}},
	}
	h := herd(t, scripted())
	target := launch(t, h)
	n := 0
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			n++
			id := lifecycle.PromptID("shepherd-prompt-" + strings.Repeat("x", 10) + string(rune('a'+n)))
			submit(t, h, target, id, tt.lines...)
			got := settled(t, h, target, id)
			got.At, got.Prompt = time.Time{}, ""
			is.Equal(got, tt.want)
			o, _ := h.Observe(target)
			is.Equal(o.State, lifecycle.Idle)
			is.Equal(o.Turns, uint64(n))
		})
	}
}

func TestTheLastPromptsResult_IsNotTheNextOnes(t *testing.T) { // C04, C13
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	submit(t, h, target, prompt1, "say one")
	is.Equal(settled(t, h, target, prompt1).Text, "one")

	submit(t, h, target, prompt2, "think 50ms", "fail two")
	o, _ := h.Observe(target)
	is.True(o.Signal.Prompt != prompt1)
	reply, err := h.Reply(t.Context(), target, prompt1)
	is.NoErr(err)
	is.Equal(reply, "")
	s := settled(t, h, target, prompt2)
	is.Equal(s.Text, "")
	is.Equal(s.Error, "two")
}

func TestAHugeLine_CostsNoMemory(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	submit(t, h, target, prompt1, "huge 30000000", "say done")
	settled(t, h, target, prompt1)
	runtime.ReadMemStats(&after)
	is.True(after.TotalAlloc-before.TotalAlloc < 2<<20) // bytes, for two lines of 30 MB
}

func TestManyPromptsAtOnce_OneIsTaken(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	var mu sync.Mutex
	var taken []lifecycle.PromptID
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			id := lifecycle.PromptID(strings.Repeat("x", 12)[i%12:] + strings.Repeat("y", i))
			err := h.Submit(t.Context(), target, lifecycle.Submission{Prompt: id, Text: "think 300ms\nsay " + string(id)})
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, id)
			case !errors.Is(err, lifecycle.ErrAgentBusy):
				t.Error(err)
			}
		})
	}
	all.Wait()
	is.Equal(len(taken), 1)
	is.Equal(settled(t, h, target, taken[0]).Text, string(taken[0]))
}

func TestSubmit_ToAnAgentThatDoesNotRead_EndsWithItsContext(t *testing.T) { // C46
	is := is.New(t)
	h := herd(t, scripted(headlesstest.Deaf))
	target := launch(t, h)
	other := launch(t, herd(t, scripted()))
	big := "say done\n" + strings.Repeat("x", 1<<20) // more than a pipe holds

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := h.Submit(ctx, target, lifecycle.Submission{Prompt: prompt1, Text: big})
	is.True(errors.Is(err, lifecycle.ErrOutcomeUnknown)) // a part of it is on its way
	is.True(errors.Is(err, context.DeadlineExceeded))

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = h.Submit(ctx, target, lifecycle.Submission{Prompt: prompt2, Text: big})
	is.True(err != nil && !errors.Is(err, lifecycle.ErrOutcomeUnknown)) // nothing of it is
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.True(other != "") // another agent was launched meanwhile
}

func TestABigPrompt_WhileTheAgentTalks_BlocksNeither(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted())
	target := launch(t, h)
	for i := range 3 {
		id := lifecycle.PromptID("shepherd-prompt-big-" + strings.Repeat("z", i+1))
		submit(t, h, target, id, "deafen 3000000", "say done", strings.Repeat("x", 2<<20))
		is.Equal(settled(t, h, target, id).Text, "done")
	}
}

func TestATextMadeOfDirections_ArrivesWhole(t *testing.T) {
	is := is.New(t)
	h := herd(t, scripted())
	long := strings.Repeat("0123456789 🐑 ", 20000)
	target := launch(t, h)
	submit(t, h, target, prompt1, "say "+long)
	is.Equal(settled(t, h, target, prompt1).Text, long) // 300 kB of answer, nothing cut (R20)
}
