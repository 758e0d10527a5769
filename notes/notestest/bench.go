package notestest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// BenchmarkNoteLife measures one note's whole life, reserve with start and finalise, in a
// session that has 10 to 5,000 notes already; and its floor, which is nothing but the
// durable writes of the same sizes. open is called for each benchmark and gives a
// constructor of values over one new, empty tree.
func BenchmarkNoteLife(b *testing.B, open func(b *testing.B) func() notes.FS) {
	for _, n := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("notes=%d", n), func(b *testing.B) { noteLife(b, &Counter{FS: open(b)()}, n) })
		b.Run(fmt.Sprintf("floor=%d", n), func(b *testing.B) { floor(b, &Counter{FS: open(b)()}, n) })
	}
}

// finalText is a final output of a usual size.
var finalText = strings.Repeat("The retry policy is decided in auth/retry.go, line 40.\n", 18)

func noteLife(b *testing.B, fsys *Counter, n int) {
	ctx := context.Background()
	s := filled(b, fsys, n)
	name := s.RelPath() + "/session.json"
	record := must(fsys.ReadFile(name))(b)
	fsys.Take()
	total := Counts{}
	for i := 0; b.Loop(); i++ {
		live(b, s, i)
		if i%(n/10+1) == n/10 { // as many notes as in the beginning
			b.StopTimer()
			add(&total, fsys.Take())
			check(b, fsys.Update(name, func([]byte) ([]byte, error) { return record, nil }))
			_, err := s.Unfinished(ctx) // reads it again
			check(b, err)
			fsys.Take()
			b.StartTimer()
		}
	}
	add(&total, fsys.Take())
	report(b, total)
}

func live(b testing.TB, s *notes.Session, i int) {
	ctx := context.Background()
	note, err := s.Reserve(ctx, plan(fmt.Sprintf("bench%d", i)))
	check(b, err)
	check(b, note.Finalize(ctx, notes.Outcome{Status: notes.Completed, Text: finalText}))
}

func plan(agent string) notes.Plan {
	return notes.Plan{
		Agent: agent, Label: "login", Task: "Where is the retry policy decided?", Pane: "w8:pY", Start: true,
		AgentID:  "shepherd-agent-0123abcd-01234567-89ab-4cde-8f01-23456789abcd",
		PromptID: "shepherd-prompt-0123abcd-01234567-89ab-4cde-8f01-23456789abcd",
	}
}

// filled is a session with n finished notes.
func filled(b testing.TB, fsys notes.FS, n int) *notes.Session {
	ctx := context.Background()
	s, err := notes.Open(ctx, notes.Config{FS: fsys, Parent: notes.Identity("bench")})
	check(b, err)
	plans := make([]notes.Plan, n)
	for i := range plans {
		plans[i] = plan(fmt.Sprintf("agent%d", i%10))
	}
	list, err := s.ReserveAll(ctx, plans)
	check(b, err)
	finalizeAll(b, list)
	return s
}

func finalizeAll(b testing.TB, list []*notes.Note) {
	var wg sync.WaitGroup
	for _, note := range list {
		wg.Go(func() {
			err := note.Finalize(context.Background(), notes.Outcome{Status: notes.Completed, Text: finalText})
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// floor does the durable writes of a note's life and nothing else.
func floor(b *testing.B, fsys *Counter, n int) {
	s := filled(b, fsys, n)
	live(b, s, 0)
	record := must(fsys.ReadFile(s.RelPath() + "/session.json"))(b)
	done := must(fsys.ReadFile(s.RelPath() + "/bench0-01.md"))(b)
	begun := done[:min(len(done), 700)]
	fsys.Take()
	flip := byte(0)
	write := func(name string, data []byte) {
		check(b, fsys.Update(name, func([]byte) ([]byte, error) {
			flip++
			out := append([]byte(nil), data...)
			out[len(out)-1] = flip // never the same
			return out, nil
		}))
	}
	for i := 0; b.Loop(); i++ {
		note := fmt.Sprintf("%s/floor-%d.md", s.RelPath(), i)
		check(b, fsys.Create(note, begun))
		write(s.RelPath()+"/floor.json", record)
		write(note, done)
		write(s.RelPath()+"/floor.json", record)
	}
	report(b, fsys.Take())
}

func add(total *Counts, c Counts) {
	total.Synced += c.Synced
	total.Bytes += c.Bytes
	total.Derived += c.Derived
	total.Commits += c.Commits
	total.Reads += c.Reads
}

// report gives what was counted for each operation; a durable write is two syncs.
func report(b *testing.B, c Counts) {
	n := float64(b.N)
	b.ReportMetric(float64(2*c.Synced)/n, "fsyncs/op")
	b.ReportMetric(float64(c.Bytes)/n, "synced-B/op")
	b.ReportMetric(float64(c.Derived)/n, "derived-B/op")
}

// BenchmarkFinalizeTogether measures many finalisations at once and reports how many
// transactions they share.
func BenchmarkFinalizeTogether(b *testing.B, open func(b *testing.B) func() notes.FS) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("notes=%d", n), func(b *testing.B) {
			ctx := context.Background()
			commits := 0
			for b.Loop() {
				b.StopTimer()
				fsys := &Counter{FS: open(b)()}
				s, err := notes.Open(ctx, notes.Config{FS: fsys, Parent: notes.Identity("bench")})
				check(b, err)
				plans := make([]notes.Plan, n)
				for i := range plans {
					plans[i] = plan(fmt.Sprintf("agent%d", i))
				}
				list, err := s.ReserveAll(ctx, plans)
				check(b, err)
				fsys.Take()
				b.StartTimer()
				finalizeAll(b, list)
				b.StopTimer()
				commits += fsys.Take().Commits
				b.StartTimer()
			}
			b.ReportMetric(float64(commits)/float64(b.N), "commits/op")
			b.ReportMetric(float64(commits)/float64(b.N*n), "commits/note")
		})
	}
}

// BenchmarkLookup measures how long a parent takes to find its session among many.
func BenchmarkLookup(b *testing.B, open func(b *testing.B) func() notes.FS) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			ctx := context.Background()
			fsys := open(b)()
			forge(b, fsys, n)
			for b.Loop() {
				s, err := notes.Open(ctx, notes.Config{FS: fsys, Parent: notes.Identity("bench")})
				check(b, err)
				if s.Name() != "bench" {
					b.Fatalf("found %s", s.RelPath())
				}
			}
		})
	}
}

// forge makes n sessions: one by Open, the others by copying it under other names, which is
// much faster.
func forge(b *testing.B, fsys notes.FS, n int) {
	ctx := context.Background()
	s, err := notes.Open(ctx, notes.Config{FS: fsys, Parent: notes.Identity("bench"), SessionName: "bench"})
	check(b, err)
	live(b, s, 0) // a session that is in use
	record := string(must(fsys.ReadFile(s.RelPath() + "/session.json"))(b))
	hash := strings.SplitN(strings.SplitN(record, "sha256:", 2)[1], `"`, 2)[0]
	for i := 2; i <= n; i++ {
		dir := fmt.Sprintf(".shepherd/sessions/%04d-bench", i)
		other := fmt.Sprintf("%064x", i)
		check(b, fsys.Mkdir(dir))
		copied := strings.NewReplacer(hash, other, `"number": 1`, fmt.Sprintf(`"number": %d`, i)).Replace(record)
		quick(b, fsys, dir+"/session.json", copied)
		quick(b, fsys, ".shepherd/sessions/.bindings/"+other, fmt.Sprintf("%04d-bench\n", i))
	}
}

// quick writes a file without waiting for the disk, where that is possible.
func quick(b *testing.B, fsys notes.FS, name, content string) {
	if d, ok := fsys.(notes.Deriver); ok {
		check(b, d.Derive(name, []byte(content)))
		return
	}
	check(b, fsys.Create(name, []byte(content)))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}
