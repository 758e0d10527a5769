package herdrtest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
)

// subscribe opens a subscription and returns its lines.
func subscribe(t *testing.T, s *herdrtest.Server, types ...string) (net.Conn, <-chan string) {
	t.Helper()
	c, err := net.Dial("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var subs []string
	for _, typ := range types {
		kind, pane, _ := strings.Cut(typ, " ")
		subs = append(subs, fmt.Sprintf(`{"type":%q,"pane_id":%q}`, kind, pane))
	}
	fmt.Fprintf(c, `{"id":"s1","method":"events.subscribe","params":{"subscriptions":[%s]}}`+"\n", strings.Join(subs, ","))
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(c)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	if ack := <-lines; !strings.Contains(ack, "subscription_started") {
		t.Fatal(ack)
	}
	return c, lines
}

// next returns the event of a line, and the line.
func next(t *testing.T, lines <-chan string) (event, line string) {
	t.Helper()
	select {
	case line, open := <-lines:
		if !open {
			return "end of file", ""
		}
		var e struct{ Event string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		return e.Event, line
	case <-time.After(time.Minute):
		t.Fatal("no line came")
		return "", ""
	}
}

var ends = []string{"pane.closed", "pane.exited", "pane.moved", "tab.closed", "workspace.closed"}

// As recorded: there are four ways for a pane to end, and each is told once, in its own words.
func TestTheEndOfAPane_IsToldInItsOwnWords(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(s *herdrtest.Server)
		told []string
	}{
		"its shell exits":     {func(s *herdrtest.Server) { s.Human("w1:p2", "exit") }, []string{"pane_exited"}},
		"its tab is closed":   {func(s *herdrtest.Server) { s.Do("tab.close", map[string]any{"tab_id": "w1:t2"}) }, []string{"tab_closed"}},
		"the last of its tab": {func(s *herdrtest.Server) { s.ClosePane("w1:p2") }, []string{"pane_closed"}},
		"its workspace":       {func(s *herdrtest.Server) { s.Do("workspace.close", map[string]any{"workspace_id": "w1"}) }, []string{"workspace_closed"}},
		"it is only moved":    {func(s *herdrtest.Server) { s.MovePane("w1:p2") }, []string{"pane_moved", "tab_closed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := herdrtest.Start(t, herdrtest.Options{})
			s.Do("tab.create", map[string]any{"workspace_id": "w1"})
			_, lines := subscribe(t, s, ends...)
			tt.end(s)
			s.Emit("workspace_closed", map[string]any{"workspace_id": "the end"}) // the last entry
			var told []string
			for {
				event, line := next(t, lines)
				if strings.Contains(line, "the end") {
					break
				}
				told = append(told, event)
			}
			slices.Sort(told)
			is.New(t).Equal(told, tt.told)
		})
	}
}

func TestASubscription_ReplaysTheRing_OneLineATick_AndForgetsTheRest(t *testing.T) {
	is := is.New(t)
	s := herdrtest.Start(t, herdrtest.Options{Tick: time.Millisecond})
	for i := range 600 {
		s.Emit("pane_closed", map[string]any{"pane_id": fmt.Sprint(i)})
	}
	_, lines := subscribe(t, s, "pane.closed")
	_, line := next(t, lines)
	is.True(strings.Contains(line, `"88"`)) // 600 - 512
	for i := 89; i < 600; i++ {
		_, line = next(t, lines)
		is.True(strings.Contains(line, fmt.Sprintf("%q", fmt.Sprint(i))))
	}
}

func TestAStatusEntry_BeginsNow_HasDots_AndFallsSilentWithItsPane(t *testing.T) {
	is := is.New(t)
	s := herdrtest.Start(t, herdrtest.Options{})
	s.Do("tab.create", map[string]any{"workspace_id": "w1"})
	status := map[string]any{"pane_id": "w1:p2", "agent_status": "working"}
	s.Emit("pane_agent_status_changed", status) // before
	_, lines := subscribe(t, s, "pane.agent_status_changed w1:p2", "pane.closed")
	s.Emit("pane_agent_status_changed", map[string]any{"pane_id": "w1:p2", "agent_status": "idle"})
	event, line := next(t, lines)
	is.Equal(event, "pane.agent_status_changed")
	is.True(strings.Contains(line, "idle") && !strings.Contains(line, `"type"`))
	s.ClosePane("w1:p2")
	event, _ = next(t, lines)
	is.Equal(event, "pane_closed")
}

func TestASubscription_EndsAtTheFirstByte(t *testing.T) {
	is := is.New(t)
	s := herdrtest.Start(t, herdrtest.Options{})
	c, lines := subscribe(t, s, "pane.closed")
	is.Equal(s.Streams(), 1)
	_, err := c.Write([]byte("\n"))
	is.NoErr(err)
	event, _ := next(t, lines)
	is.Equal(event, "end of file")
}

func TestAnOversizedOrBrokenLine_IsHungUpOnWithoutAWord(t *testing.T) {
	s := herdrtest.Start(t, herdrtest.Options{})
	for name, line := range map[string]string{
		"above 1 MiB": `{"id":"1","method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`,
		"blank":       "", "not UTF-8": "\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("unix", s.Socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			_, _ = fmt.Fprintf(c, "%s\n", line) // it may hang up before the end
			got, _ := bufio.NewReader(c).ReadString('\n')
			is.New(t).Equal(got, "")
		})
	}
}
