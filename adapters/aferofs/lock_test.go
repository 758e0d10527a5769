//go:build unix

package aferofs_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

// holdLock takes a lock and keeps it until its input ends.
func holdLock(args []string) {
	f := aferofs.OS(args[0])
	unlock, err := f.Lock(context.Background(), args[1])
	must(err)
	say("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	must(unlock())
}

// C16: a lock is as dead as its holder.
func TestLock_FreedByDeath(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	var waits []time.Duration
	for range 5 {
		holder := start(t, "hold", f.Root(), "lock")
		is.Equal(holder.line(), "held")
		got := make(chan time.Time)
		go func() { // waits since before the death
			unlock, err := f.Lock(t.Context(), "lock")
			if err == nil {
				err = unlock()
			}
			if err != nil {
				t.Error(err)
			}
			got <- time.Now()
		}()
		select {
		case <-got:
			t.Fatal("got a lock that another process holds")
		case <-time.After(20 * time.Millisecond):
		}
		killed := time.Now()
		holder.kill()
		waits = append(waits, (<-got).Sub(killed))
		began := time.Now() // and one that comes afterwards
		unlock, err := f.Lock(t.Context(), "lock")
		is.NoErr(err)
		waits = append(waits, time.Since(began))
		is.NoErr(unlock())
	}
	report(t, waits)
}

// C16: two that find the same dead lock do not both win. They count in a file that only the
// lock protects.
func TestLock_DeadLockHasOneHeir(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	is.NoErr(f.Create("count", nil))
	for range 5 {
		holder := start(t, "hold", f.Root(), "lock")
		is.Equal(holder.line(), "held")
		heirs := []*process{start(t, "contend", f.Root(), "5"), start(t, "contend", f.Root(), "5")}
		for _, h := range heirs {
			is.Equal(h.line(), "ready")
			is.NoErr(h.stdin.Close())
		}
		holder.kill()
		for _, h := range heirs {
			h.rest()
		}
	}
	got, err := f.ReadFile("count")
	is.NoErr(err)
	is.Equal(len(got), 5*2*5)
}

// contend waits for the end of its input, then takes the lock so many times for a write that
// loses something if anybody else is inside. It says how long it waited, in microseconds.
func contend(args []string) {
	f := aferofs.OS(args[0])
	n, err := strconv.Atoi(args[1])
	must(err)
	say("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	for range n {
		began := time.Now()
		unlock, err := f.Lock(context.Background(), "lock")
		must(err)
		say(time.Since(began).Microseconds())
		old, err := f.ReadFile("count")
		must(err)
		time.Sleep(time.Millisecond) // a write of some length
		must(f.Update("count", func([]byte) ([]byte, error) { return append(old, '.'), nil }))
		must(unlock())
	}
}

// 16 processes in each other's way: nothing is lost, and everybody gets its turns. How long
// they wait is the benchmark's.
func TestLock_SixteenProcesses(t *testing.T) {
	is := is.New(t)
	const processes, rounds = 16, 20
	f := aferofs.OS(t.TempDir())
	is.NoErr(f.Create("count", nil))
	waits := contention(t, f, processes, rounds)
	got, err := f.ReadFile("count")
	is.NoErr(err)
	is.Equal(len(got), processes*rounds)
	report(t, waits)
}

// contention lets processes contend for one lock and returns their waits, sorted.
func contention(t testing.TB, f *aferofs.FS, processes, rounds int) (waits []time.Duration) {
	var all []*process
	for range processes {
		all = append(all, start(t, "contend", f.Root(), strconv.Itoa(rounds)))
	}
	for _, p := range all {
		p.line()
	}
	for _, p := range all {
		p.stdin.Close()
	}
	for _, p := range all {
		for _, line := range p.rest() {
			µs, err := strconv.Atoi(line)
			if err != nil {
				t.Fatalf("a process said %q", line)
			}
			waits = append(waits, time.Duration(µs)*time.Microsecond)
		}
	}
	slices.Sort(waits)
	return waits
}

// A lock file that is removed by hand while somebody waits for it is not the lock any more.
func TestLock_FileRemovedWhileWaiting(t *testing.T) {
	is := is.New(t)
	f, other := aferofs.OS(t.TempDir()), (*aferofs.FS)(nil)
	other = aferofs.OS(f.Root())
	unlock, err := f.Lock(t.Context(), "lock")
	is.NoErr(err)
	type held struct {
		unlock func() error
		err    error
	}
	got := make(chan held)
	go func() {
		u, err := other.Lock(t.Context(), "lock")
		got <- held{u, err}
	}()
	time.Sleep(20 * time.Millisecond) // most likely it waits by now; either way the end is the same
	is.NoErr(os.Remove(filepath.Join(f.Root(), "lock")))
	is.NoErr(unlock())
	h := <-got
	is.NoErr(h.err)

	// It holds the lock of the file that is there now.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = f.Lock(ctx, "lock")
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.NoErr(h.unlock())
}

// Giving up leaves one waiter behind, not one each time, and none once the lock is free.
func TestLock_GivingUpOftenLeavesOneGoroutine(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	holder := start(t, "hold", f.Root(), "lock")
	is.Equal(holder.line(), "held")
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(100-i)*100*time.Microsecond, cancel) // the first waits for sure
		_, err := f.Lock(ctx, "lock")
		is.True(errors.Is(err, context.Canceled))
	}
	is.Equal(waiters(), 1)
	is.NoErr(holder.stdin.Close())
	is.True(within(time.Minute, func() bool { return waiters() == 0 }))
	unlock, err := f.Lock(t.Context(), "lock")
	is.NoErr(err)
	is.NoErr(unlock())
}

// Asking briefly whether the lock is free leaves nobody behind.
func TestLock_AskingBrieflyLeavesNoGoroutine(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	holder := start(t, "hold", f.Root(), "lock")
	is.Equal(holder.line(), "held")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := f.Lock(ctx, "lock")
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.Equal(waiters(), 0)
}

func waiters() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "aferofs.park.func")
}

func TestLock_ContentMeansNothing(t *testing.T) {
	is := is.New(t)
	f := aferofs.OS(t.TempDir())
	is.NoErr(os.WriteFile(filepath.Join(f.Root(), "lock"), []byte("pid 1, held since 1970"), 0o600))
	unlock, err := f.Lock(t.Context(), "lock")
	is.NoErr(err)
	is.NoErr(unlock())
}
