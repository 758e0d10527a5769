package watchtest_test

import (
	"testing"

	"github.com/pi-shepherd/go-shepherd/watch"
	"github.com/pi-shepherd/go-shepherd/watch/watchtest"
)

func TestRecorder(t *testing.T) {
	watchtest.TestNotifier(t, func(*testing.T) (watch.Notifier, func() []watch.NotificationID) {
		r := &watchtest.Recorder{}
		return r, func() []watch.NotificationID {
			var ids []watch.NotificationID
			for _, n := range r.Taken() {
				ids = append(ids, n.ID)
			}
			return ids
		}
	})
}
