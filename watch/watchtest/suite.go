package watchtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// TestNotifier checks the contract of watch.Notifier. open makes a notifier whose
// deliveries can be seen: delivered returns the ids of the notifications that have reached
// the parent, each as often as it has.
func TestNotifier(t *testing.T, open func(t *testing.T) (n watch.Notifier, delivered func() []watch.NotificationID)) {
	t.Run("what is taken over is delivered once", func(t *testing.T) {
		n, delivered := open(t)
		if err := n.Notify(t.Context(), sample(1)); err != nil {
			t.Fatalf("notify: %v", err)
		}
		expect(t, delivered, map[watch.NotificationID]int{sample(1).ID: 1})
	})
	t.Run("under an ended ctx it returns, and what it refuses is not delivered", func(t *testing.T) {
		n, delivered := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.Notify(ctx, sample(1)); err != nil {
			expect(t, delivered, map[watch.NotificationID]int{})
		}
	})
	t.Run("overlapping calls of different watchers", func(t *testing.T) {
		n, delivered := open(t)
		want := map[watch.NotificationID]int{}
		var wg sync.WaitGroup
		for i := range 8 {
			want[sample(i).ID] = 1
			wg.Go(func() {
				if err := n.Notify(t.Context(), sample(i)); err != nil {
					t.Errorf("notify: %v", err)
				}
			})
		}
		wg.Wait()
		expect(t, delivered, want)
	})
	t.Run("an idempotent notifier delivers a repetition once", func(t *testing.T) {
		n, delivered := open(t)
		if i, ok := n.(watch.Idempotent); !ok || !i.Idempotent() {
			t.Skip("this notifier does not declare itself idempotent")
		}
		for range 3 {
			if err := n.Notify(t.Context(), sample(1)); err != nil {
				t.Fatalf("notify: %v", err)
			}
		}
		expect(t, delivered, map[watch.NotificationID]int{sample(1).ID: 1})
	})
}

func sample(i int) watch.Notification {
	w := watch.ID(fmt.Sprintf("shepherd-watch-00000000-00000000-0000-4000-8000-%012d", i))
	return watch.Notification{
		ID: watch.NotificationID(w + "/1"), WatcherID: w,
		Completions: []watch.Completion{{WatcherID: w, Result: lifecycle.Result{PromptID: "shepherd-prompt-1", Agent: "scout", Status: lifecycle.StatusDone, Text: "done"}}},
	}
}

// expect gives deliveries of another process a moment.
func expect(t *testing.T, delivered func() []watch.NotificationID, want map[watch.NotificationID]int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := map[watch.NotificationID]int{}
		for _, id := range delivered() {
			got[id]++
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		if time.Now().After(deadline) || len(got) > len(want) {
			t.Fatalf("delivered %v, want %v", got, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
