package aferofs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

func TestMemory_ViewsShareOneTree(t *testing.T) {
	is := is.New(t)
	a := aferofs.Memory()
	b := a.View()
	is.NoErr(a.Create("file", []byte("x")))
	got, err := b.ReadFile("file")
	is.NoErr(err)
	is.Equal(string(got), "x")
	_, err = aferofs.Memory().ReadFile("file") // another tree
	is.True(err != nil)
}

func TestMemory_KillFreesLocksAndStopsEverything(t *testing.T) {
	is := is.New(t)
	a := aferofs.Memory()
	b := a.View()
	unlock, err := a.Lock(t.Context(), "lock")
	is.NoErr(err)
	a.Kill()
	a.Kill() // is fine

	after, err := b.Lock(t.Context(), "lock")
	is.NoErr(err)
	is.NoErr(unlock()) // the dead one's unlock frees nothing of ours
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = b.Lock(ctx, "lock")
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.NoErr(after())

	_, read := a.ReadFile("lock")
	_, list := a.ReadDir(".")
	_, stamp := a.Stamp("lock")
	_, lock := a.Lock(t.Context(), "lock")
	for _, err := range []error{
		a.Mkdir("x"), a.MkdirAll("x"), a.Create("x", nil), a.Derive("x", nil), read, list, stamp, lock,
		a.Update("x", func([]byte) ([]byte, error) { return []byte("x"), nil }),
	} {
		is.True(errors.Is(err, aferofs.ErrKilled))
	}
	entries, err := b.ReadDir(".")
	is.NoErr(err)
	is.Equal(len(entries), 1) // the lock's file
}

// Killed in the middle of a write: the old content stays, and what is left is not listed.
func TestMemory_KilledBeforeEveryStepOfAWrite(t *testing.T) {
	for at := 0; ; at++ {
		is := is.New(t)
		a := aferofs.Memory()
		b := a.View()
		is.NoErr(a.Create("file", []byte("old")))
		n, cut := 0, false
		aferofs.Steps(a.FS, func(string) error {
			if n++; n-1 == at {
				a.Kill()
				cut = true
			}
			return nil
		})
		err := a.Update("file", func([]byte) ([]byte, error) { return []byte("new"), nil })
		if !cut {
			is.NoErr(err)
			t.Logf("%d points", at)
			return
		}
		got, readErr := b.ReadFile("file")
		is.NoErr(readErr)
		is.True(string(got) == "old" || string(got) == "new" && at == 6) // not a third thing
		is.True(err != nil || at == 6)                                   // the sync of the directory asks for nothing in memory
		entries, readErr := b.ReadDir(".")
		is.NoErr(readErr)
		is.Equal(len(entries), 1)
		is.NoErr(b.Update("file", func([]byte) ([]byte, error) { return []byte("next"), nil }))
	}
}

// Waiting for a lock is something a bubble can see through: time moves on meanwhile.
func TestMemory_WaitsInsideABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		a := aferofs.Memory()
		b := a.View()
		unlock, err := a.Lock(t.Context(), "lock")
		is.NoErr(err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err = b.Lock(ctx, "lock")
		is.True(errors.Is(err, context.DeadlineExceeded))
		is.Equal(time.Since(began), time.Hour) // exactly, and at no cost

		time.AfterFunc(time.Minute, func() { _ = unlock() })
		after, err := b.Lock(t.Context(), "lock")
		is.NoErr(err)
		is.NoErr(after())

		// First come, first served.
		unlock, err = a.Lock(t.Context(), "lock")
		is.NoErr(err)
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				u, err := b.Lock(t.Context(), "lock")
				if err == nil {
					order = append(order, i)
					err = u()
				}
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		is.NoErr(unlock())
		wg.Wait()
		is.Equal(order, []int{0, 1, 2, 3, 4})

		// A process that is killed while it waits stops waiting.
		unlock, err = a.Lock(t.Context(), "lock")
		is.NoErr(err)
		time.AfterFunc(time.Second, b.Kill)
		_, err = b.Lock(t.Context(), "lock")
		is.True(errors.Is(err, aferofs.ErrKilled))
		is.NoErr(unlock())
	})
}
