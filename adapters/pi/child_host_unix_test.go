//go:build unix

package pi

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestChild_IsShownInHerdr(t *testing.T) {
	is := is.New(t)
	socket := filepath.Join(t.TempDir(), "herdr")
	ln, err := net.Listen("unix", socket)
	is.NoErr(err)
	defer ln.Close()
	requests := make(chan string, 10)
	go func() { // as Herdr does: one line, one answer, the end
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, `{"id":"x","result":{"type":"ok"}}`+"\n")
			conn.Close()
			requests <- line
		}
	}()

	p := newPi(t)
	p.Env["HERDR_ENV"], p.Env["HERDR_SOCKET_PATH"], p.Env["HERDR_PANE_ID"] = "1", socket, "w1:p2"
	c := launchPi(t, p)
	pr := c.send("1", "hang")
	c.until(t, "started", started(pr))
	working := <-requests
	is.True(strings.Contains(working, `"method":"pane.report_agent"`))
	is.True(strings.Contains(working, `"pane_id":"w1:p2","source":"shepherd:child","agent":"pi","state":"working"`))
	c.types(escape)
	is.True(strings.Contains(<-requests, `"state":"idle"`))
}

func TestChild_AHostThatWasAway_LearnsWhatItMissed(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	p := c.send("1", "slow 500ms said while nobody listened")
	c.until(t, "started", started(p))
	is.NoErr(c.link.(link.Detacher).Detach())
	var stored lifecycle.Signal
	for range 200 { // the file is all that a host can see now
		var ok bool
		if stored, ok = c.link.Stored(p); ok {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	is.Equal(stored.Text, "said while nobody listened")

	again := newLevels()
	l, err := Links().Reopen(t.Context(), c.link.Dir(), again.add)
	is.NoErr(err)
	c.link, c.levels = l, again
	begun := time.Now()
	e := c.until(t, "back", up)
	t.Logf("back after %v", time.Since(begun))
	is.Equal(e.Current, stored)
	is.Equal(e.PID, c.cmd.Process.Pid)
	is.Equal(e.Turns, uint64(1))
	is.Equal(c.result(c.send("2", "say hello again")).Text, "hello again")
}

func TestChild_AHostThatReturnsInMidTurn_HearsTheEnd(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	p := c.send("1", "hang")
	c.until(t, "started", started(p))
	is.NoErr(c.link.(link.Detacher).Detach())

	again := newLevels()
	l, err := Links().Reopen(t.Context(), c.link.Dir(), again.add)
	is.NoErr(err)
	c.link, c.levels = l, again
	e := c.until(t, "back", up)
	is.True(e.Busy)
	is.True(started(p)(e))
	c.types(escape)
	is.Equal(c.result(p).Kind, lifecycle.Aborted)
}

func TestChild_Killed_IsKnownAtOnce(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	p := c.send("1", "hang")
	c.until(t, "started", started(p))
	begun := time.Now()
	c.kill()
	e := c.until(t, "down", down)
	t.Logf("known after %v", time.Since(begun))
	is.True(started(p)(e))
	_, ok := c.link.Stored(p)
	is.True(!ok)
}

func TestChild_Quit_EndsThePrompt(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	p := c.send("1", "hang")
	c.until(t, "started", started(p))
	c.types(ctrlC, ctrlC)
	c.until(t, "down", down)
	s, ok := c.link.Stored(p)
	is.True(ok)
	is.Equal(s.Kind, lifecycle.Aborted)
}
