package watch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/watch"
	"github.com/pi-shepherd/go-shepherd/watch/watchtest"
)

const long = time.Hour // longer than any window, retry and hang

func TestC01SettledBeforeTheWatchIsCompletedAndNeverNotified(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		r.settle(a)
		reg := r.watch(a, b)
		r.Equal(reg.PromptIDs, ids{a, b})
		r.Equal(reg.Pending, ids{b})
		r.Equal(len(reg.Completed), 1)
		r.Equal(reg.Completed[0].Text, "text of A")
		r.Equal(reg.Completed[0].WatcherID, reg.WatcherID)
		r.Equal(reg.Completed[0].Pending, 1)
		time.Sleep(long)
		r.Equal(r.told.Offers(), 0)
		r.settle(b)
		time.Sleep(long)
		r.Equal(r.toldOf(), []ids{{b}})

		all := r.watch(a, b)
		r.Equal(len(all.Completed), 2)
		r.Equal(len(all.Pending), 0)
		r.True(all.WatcherID != "")
		r.True(errors.Is(r.Unwatch(all.WatcherID), watch.ErrUnknownWatcher)) // nothing is kept
	})
}

func TestCompletionCarriesEverythingAndNoPane(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		reg := r.watch(b, a)
		r.prompts.settle(a, lifecycle.StatusFailed)
		time.Sleep(long)
		n := r.told.Taken()[0]
		r.Equal(n.ID, watch.NotificationID(reg.WatcherID+"/1"))
		r.Equal(n.ReturnCode(), 1)
		want, _ := r.prompts.Result(a)
		got := n.Completions[0]
		r.Equal(got, watch.Completion{WatcherID: reg.WatcherID, Result: want, Pending: 1})
		r.Equal(got.OK(), false)
	})
}

func TestCompletionsCloseTogetherAreOneNotificationInInputOrder(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		r.watch(a, b, c, d)
		began := time.Now()
		r.settle(c)
		time.Sleep(10 * time.Millisecond)
		r.settle(a)
		time.Sleep(10 * time.Millisecond)
		r.settle(d)
		time.Sleep(long)
		r.settle(b)
		time.Sleep(long)
		r.Equal(r.toldOf(), []ids{{a, c, d}, {b}})
		r.Equal(r.told.Times()[0].Sub(began), 25*time.Millisecond) // from the first one
		r.Equal(r.told.Taken()[0].Pending, 1)
		r.Equal(r.told.Taken()[1].Pending, 0)
		r.Equal(len(r.Watchers()), 0) // one-shot
	})
}

func TestCompletionsFarApartAreReportedAsTheyArrive(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		reg := r.watch(a, b, c)
		for _, id := range (ids{b, c, a}) {
			r.settle(id)
			time.Sleep(time.Second)
		}
		r.Equal(r.toldOf(), []ids{{b}, {c}, {a}})
		for i, n := range r.told.Taken() {
			r.Equal(n.ID, watch.NotificationID(fmt.Sprintf("%s/%d", reg.WatcherID, i+1)))
		}
	})
}

func TestC07WatchersOfOnePromptAreIndependent(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		one, two := r.watch(a), r.watch(a)
		r.settle(a)
		three := r.watch(a)
		time.Sleep(long)
		got := r.told.Completions()
		r.Equal(len(got), 2)
		slices.SortFunc(got, func(x, y watch.Completion) int {
			if x.WatcherID == one.WatcherID {
				return -1
			}
			return 1
		})
		r.Equal(got[0].WatcherID, one.WatcherID)
		r.Equal(got[1].WatcherID, two.WatcherID)
		r.Equal(len(three.Completed), 1)
		for _, c := range append(got, three.Completed...) {
			c.WatcherID = one.WatcherID
			r.Equal(c, got[0]) // identical fields
		}
	})
}

func TestC58OddIDLists(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		_, err := r.Service.Watch()
		r.True(errors.Is(err, watch.ErrInvalid))
		for _, bad := range []lifecycle.PromptID{"unknown", "", "shepherd-agent-x", "w8:pY"} {
			_, err := r.Service.Watch(a, bad)
			r.True(errors.Is(err, lifecycle.ErrUnknownPrompt))
			r.Equal(len(r.Watchers()), 0) // nothing is registered
		}
		reg := r.watch(b, b, a, b)
		r.Equal(reg.PromptIDs, ids{b, a}) // folded, first position kept
		r.settle(a, b)
		time.Sleep(long)
		r.Equal(r.toldOf(), []ids{{b, a}})

		var many ids
		for i := range 500 {
			id := lifecycle.PromptID(fmt.Sprint(i))
			r.prompts.mu.Lock()
			r.prompts.results[id] = nil
			r.prompts.mu.Unlock()
			many = append(many, id)
		}
		r.Equal(r.watch(many...).Pending, many)
		for _, id := range slices.Backward(many) {
			r.settle(id)
		}
		time.Sleep(long)
		r.Equal(r.toldOf()[1], many)
	})
}

func TestUnwatchOffersNothingFurther(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		before := r.watch(a)
		r.NoErr(r.Unwatch(before.WatcherID))
		inWindow := r.watch(b)
		r.settle(a, b)
		time.Sleep(10 * time.Millisecond)
		r.NoErr(r.Unwatch(inWindow.WatcherID))
		time.Sleep(long)
		r.Equal(r.told.Offers(), 0)
		r.Equal(len(r.Undelivered()), 0) // nobody wants to be told any more
		r.True(errors.Is(r.Unwatch(inWindow.WatcherID), watch.ErrUnknownWatcher))
		r.True(errors.Is(r.Unwatch("shepherd-watch-never"), watch.ErrUnknownWatcher))
	})
}

func TestUnwatchCancelsACallInFlight(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		cancelled := make(chan struct{})
		r.told.Before = func(ctx context.Context, _ int, _ watch.Notification) error {
			<-ctx.Done()
			close(cancelled)
			return ctx.Err()
		}
		reg := r.watch(a)
		r.settle(a)
		time.Sleep(time.Second)
		r.NoErr(r.Unwatch(reg.WatcherID))
		<-cancelled
		time.Sleep(long)
		r.Equal(r.told.Offers(), 1)
	})
}

func TestC41ErrorsAreOfferedAgainUnderTheSameID(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		var offered []watch.Notification
		r.told.Before = func(_ context.Context, offer int, n watch.Notification) error {
			offered = append(offered, n)
			if offer <= 3 {
				return fmt.Errorf("refusal %d", offer)
			}
			return nil
		}
		r.watch(a, b)
		began := time.Now()
		r.settle(a)
		time.Sleep(2 * time.Second)
		r.settle(b) // waits for its turn: deliveries of one watcher are serial
		time.Sleep(long)
		r.Equal(r.toldOf(), []ids{{a}, {b}})
		r.Equal(r.told.Times()[0].Sub(began), 25*time.Millisecond+5250*time.Millisecond) // after 0.25, 1 and 4 s
		for _, n := range offered[:4] {
			r.Equal(n.ID, offered[0].ID)
			r.Equal(n.Completions, offered[0].Completions) // the same content
		}
		r.Equal(len(r.Undelivered()), 0)
	})
}

func TestC41WhatIsNeverTakenIsListed(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		refusal := errors.New("no")
		r.told.Before = func(context.Context, int, watch.Notification) error { return refusal }
		r.watch(a)
		r.settle(a)
		time.Sleep(long)
		r.Equal(r.told.Offers(), 6) // one and five further
		u := r.Undelivered()
		r.Equal(len(u), 1)
		r.Equal(u[0].Offers, 6)
		r.True(!u[0].Unknown)
		r.True(errors.Is(u[0].Err, refusal))
		r.Equal(u[0].Notification.Completions[0].PromptID, a)
		_, stored := r.prompts.Result(a)
		r.True(stored)
	})
}

func TestC41PanicIsAnErrorAndOthersAreToldMeanwhile(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		r.told.Before = func(_ context.Context, offer int, n watch.Notification) error {
			if offer == 1 {
				panic("notifier bug")
			}
			return nil
		}
		r.watch(a)
		r.settle(a)
		time.Sleep(100 * time.Millisecond)
		r.watch(b)
		r.settle(b)
		time.Sleep(long)
		r.Equal(len(r.told.Taken()), 2)
	})
}

func TestC41HangIsCutAndNotRepeatedUnlessIdempotent(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		t.Run(fmt.Sprint("idempotent ", idempotent), func(t *testing.T) {
			bubbleWith(t, watch.Options{}, func(r *watchtest.Recorder) watch.Notifier {
				return declared{r, idempotent}
			}, func(r *rig) {
				free := make(chan struct{})
				r.told.Before = func(_ context.Context, offer int, n watch.Notification) error {
					if offer == 1 {
						<-free // deaf to its ctx
						return errors.New("too late to count")
					}
					return nil
				}
				r.watch(a)
				other := time.Now()
				r.settle(a)
				time.Sleep(time.Second)
				r.watch(b)
				r.settle(b)
				time.Sleep(time.Second)
				r.Equal(r.toldOf(), []ids{{b}}) // one stuck delivery blocks no other watcher
				r.True(r.told.Times()[0].Sub(other) < 2*time.Second)
				time.Sleep(long)
				if idempotent {
					r.Equal(r.toldOf(), []ids{{b}, {a}})
					r.Equal(len(r.Undelivered()), 0)
				} else {
					r.Equal(r.toldOf(), []ids{{b}})
					u := r.Undelivered()
					r.Equal(len(u), 1)
					r.True(u[0].Unknown)
					r.Equal(u[0].Offers, 1)
				}
				close(free)
			})
		})
	}
}

type declared struct {
	*watchtest.Recorder
	idempotent bool
}

func (d declared) Idempotent() bool { return d.idempotent }

func TestSessionOverIsFinal(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		r.told.Before = func(context.Context, int, watch.Notification) error {
			return fmt.Errorf("session 7: %w", watch.ErrSessionOver)
		}
		r.watch(a)
		r.settle(a)
		time.Sleep(long)
		r.Equal(r.told.Offers(), 1)
		r.Equal(len(r.Undelivered()), 1)
	})
}

func TestC59HostWithoutLaterTurnsIsToldToWait(t *testing.T) {
	bubbleWith(t, watch.Options{}, func(r *watchtest.Recorder) watch.Notifier {
		return unreachable{r}
	}, func(r *rig) {
		_, err := r.Service.Watch(a)
		r.True(errors.Is(err, watch.ErrUnreachable))
		r.True(strings.Contains(err.Error(), "shepherd_wait"))
		r.True(strings.Contains(err.Error(), "print mode"))
		r.Equal(len(r.Watchers()), 0)
	})
	s, err := watch.New(newPrompts(a), nil, watch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Watch(a); !errors.Is(err, watch.ErrUnreachable) {
		t.Errorf("without a notifier: %v", err)
	}
}

type unreachable struct{ *watchtest.Recorder }

func (unreachable) Unreachable() string { return "print mode has no later turns" }

func TestC22NothingIsDeliveredOnceClosingBegan(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		r.watch(a, b)
		r.watch(c)
		r.told.Before = func(ctx context.Context, _ int, n watch.Notification) error {
			if n.Completions[0].PromptID == c {
				return errors.New("no") // is being retried when Close comes
			}
			panic("touched after the shutdown began")
		}
		r.settle(c)
		time.Sleep(500 * time.Millisecond)
		r.settle(a)
		time.Sleep(10 * time.Millisecond) // in the window
		r.close(time.Second)
		r.settle(b)
		time.Sleep(long)
		u := r.Undelivered()
		r.Equal(len(u), 2) // what was gathered, and what was being retried
		told := map[lifecycle.PromptID]int{}
		for _, u := range u {
			for _, c := range u.Notification.Completions {
				told[c.PromptID] = u.Offers
			}
		}
		r.Equal(told, map[lifecycle.PromptID]int{a: 0, c: 2})
		_, err := r.Service.Watch(d)
		r.True(errors.Is(err, watch.ErrClosed))
	})
}

func TestCloseCutsAHangingCallAndListsIt(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		free := make(chan struct{})
		r.told.Before = func(ctx context.Context, _ int, _ watch.Notification) error { <-free; return nil }
		r.watch(a)
		r.settle(a)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := r.Service.Close(ctx)
		r.True(errors.Is(err, context.DeadlineExceeded)) // says that the notifier does not return
		r.Equal(len(r.Undelivered()), 1)
		r.True(r.Undelivered()[0].Unknown)
		close(free)
	})
}

func TestUndeliveredAreBounded(t *testing.T) {
	bubble(t, watch.Options{KeepUndelivered: 2, Retries: []time.Duration{}}, func(r *rig) {
		r.told.Before = func(context.Context, int, watch.Notification) error { return errors.New("no") }
		for _, id := range (ids{a, b, c}) {
			r.watch(id)
			r.settle(id)
			time.Sleep(time.Second)
		}
		u := r.Undelivered()
		r.Equal(len(u), 2)
		r.Equal(u[0].Notification.Completions[0].PromptID, b) // the newest
	})
}

func TestC53WatchersReleaseEverythingWhenTheySettle(t *testing.T) {
	bubble(t, watch.Options{}, func(r *rig) {
		for i := range 1000 {
			id := lifecycle.PromptID(fmt.Sprint(i))
			r.prompts.mu.Lock()
			r.prompts.results[id] = nil
			r.prompts.mu.Unlock()
			r.watch(id)
			r.settle(id)
		}
		time.Sleep(time.Second)
		r.Equal(len(r.told.Taken()), 1000)
		r.Equal(len(r.Watchers()), 0)
	}) // the bubble fails if a goroutine is left; see also the registry's test of wake-ups
}

func TestWatchAgainstSettlingReportsExactlyOnce(t *testing.T) {
	// A watch before, during and after the settling: in each round one report, in Completed
	// or as a notification.
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	notified, completed := 0, 0
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			p, told := newPrompts(a), &watchtest.Recorder{}
			s, err := watch.New(p, told, watch.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var before, during, after watch.Registration
			before, _ = s.Watch(a)
			var wg sync.WaitGroup
			wg.Go(func() { p.settle(a, lifecycle.StatusDone) })
			wg.Go(func() { during, _ = s.Watch(a) })
			wg.Wait()
			after, _ = s.Watch(a)
			time.Sleep(time.Second)
			reports := map[watch.ID]int{}
			for _, reg := range []watch.Registration{before, during, after} {
				reports[reg.WatcherID] += len(reg.Completed)
			}
			for _, c := range told.Completions() {
				reports[c.WatcherID]++
			}
			for _, n := range reports {
				if n != 1 {
					t.Fatalf("round %d: reports %v", round, reports)
				}
			}
			if len(during.Completed) == 1 {
				completed++
			} else {
				notified++
			}
		})
	}
	t.Logf("%d rounds: the watch that raced was answered in Completed %d times, notified %d times", rounds, completed, notified)
}
