//go:build unix

package e2e

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestAParentIsToldOnceAndThenTurnsToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine) {
		is := is.New(t)
		file := m.session("main")
		p := m.rpc(t, "--session", file)
		p.turn("start scout auth", "prompt 1 slow 300ms it is in retry.go", "watch 1", "say waiting")
		before := m.model.count()
		p.until("the parent is told", func() bool { return len(m.model.parent("shepherd_watcher completion")) > 0 })
		p.idle()
		is.Equal(m.model.count(), before+1) // exactly one further call
		last := m.model.parent("shepherd_watcher completion: scout: auth done")
		is.Equal(len(last), 1)
		told := last[0].Messages[len(last[0].Messages)-1]
		is.Equal(told.Role, "user")
		is.True(strings.Contains(told.text(), `"text":"it is in retry.go"`))

		stored := notices(t, file)
		is.Equal(len(stored), 1)
		is.True(stored[0].Display)
		is.Equal(len(stored[0].Details.IDs), 1)
		is.Equal(len(stored[0].Details.Items), 1)
		item := stored[0].Details.Items[0]
		for _, name := range []string{"watcherId", "promptId", "agentId", "agent", "label", "status", "ok", "returnCode", "notePath", "pending", "seconds"} {
			if _, ok := item[name]; !ok {
				t.Errorf("the details lack %s", name)
			}
		}
		is.Equal(item["text"], nil) // it is in the content, once
	})
}
