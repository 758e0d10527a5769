package herdr_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// 50 prompts that are watched cost a reading every 15 s and one open subscription, and no
// processes.
func TestCost_Of50QuietPrompts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it is quiet for 30 s")
	}
	r := start(t, herdrtest.Options{}, true)
	var prompts []lifecycle.PromptID
	for range 50 {
		id, _ := r.agent()
		prompts = append(prompts, r.prompt(id, "hang"))
	}
	// What the launches have stirred up comes to rest.
	last := -1
	r.eventually("quiet", func() bool {
		n := total(r.server.Requests())
		quiet := n == last
		last = n
		time.Sleep(200 * time.Millisecond)
		return quiet
	})
	before := children()
	r.server.ResetCounts()
	time.Sleep(30 * time.Second) // the time that is measured
	requests, streams, spawned := r.server.Requests(), r.server.Streams(), children()-before
	t.Logf("50 watched prompts, quiet for 30 s: %d requests %v, %d open subscriptions, %d processes", total(requests), requests, streams, spawned)
	if total(requests) > 3 || streams != 1 || spawned != 0 {
		t.Error("more than 3 requests, 1 subscription and no process")
	}
	for _, p := range prompts {
		if _, settled := r.registry.Result(p); settled {
			t.Errorf("%s has settled", p)
		}
	}
}

func total(requests map[string]int) (n int) {
	for _, c := range requests {
		n += c
	}
	return n
}

// children counts this process's child processes, where that can be told.
func children() (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// From the moment at which the agent settles to the moment at which an observer knows it.
func BenchmarkSettled(b *testing.B) {
	for _, bench := range []struct {
		name   string
		linked bool
	}{{"through the link", true}, {"through the status, tick 5ms", false}} {
		b.Run(bench.name, func(b *testing.B) {
			settle := make(chan time.Time, 1)
			s := herdrtest.Start(b, herdrtest.Options{Script: func(t *herdrtest.Turn) {
				t.Think(30 * time.Millisecond) // until its beginning has been seen
				t.Say("x")
				settle <- time.Now()
			}})
			o := herdr.Options{Socket: s.Socket, Dir: b.TempDir()}
			if bench.linked {
				o.Links = s.Links()
			}
			h := herdr.New(o)
			defer h.Detach()
			target, err := h.Launch(b.Context(), lifecycle.Spec{Name: "scout"})
			if err != nil {
				b.Fatal(err)
			}
			var took time.Duration
			for i := range b.N {
				p := lifecycle.PromptID("shepherd-prompt-00000000-" + strconv.Itoa(i))
				if err := h.Submit(b.Context(), target, lifecycle.Submission{Prompt: p, Text: "x"}); err != nil {
					b.Fatal(err)
				}
				for begun := false; ; {
					o, changed := h.Observe(target)
					begun = begun || o.State == lifecycle.Working
					if begun && o.State == lifecycle.Idle {
						break
					}
					<-changed
				}
				took += time.Since(<-settle)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs/settled")
			b.ReportMetric(0, "ns/op") // the agent's own time
		})
	}
}

func BenchmarkLaunchAndClose(b *testing.B) {
	s := herdrtest.Start(b, herdrtest.Options{})
	h := herdr.New(herdr.Options{Socket: s.Socket, Links: s.Links(), Dir: b.TempDir()})
	defer h.Detach()
	for range b.N {
		t, err := h.Launch(b.Context(), lifecycle.Spec{Name: "scout"})
		if err == nil {
			err = h.Close(b.Context(), t)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
