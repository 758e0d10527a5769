package pi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// ledgerOf is what the session's ledger holds on disk.
func (w *hosting) ledgerOf(t *testing.T) (ids []watch.NotificationID) {
	t.Helper()
	var f ledgerFile
	for _, name := range w.disk.Names(ledgerDir) {
		if strings.HasSuffix(name, ".json") {
			if err := json.Unmarshal([]byte(w.disk.Read(name)), &f); err != nil {
				t.Fatal(err)
			}
			for _, n := range f.Notices {
				ids = append(ids, n.ID)
			}
		}
	}
	return ids
}

func TestHost_ANoticeStaysInTheLedgerUntilItsReceipt(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	p.good("shepherd_watch", object{"id": prompt})
	p.Equal(len(w.ledgerOf(t)), 0)
	agent.Finish(strings.Repeat("long ", 100))
	eventually(t, "a notice", func() bool { return len(p.notices()) == 1 })
	p.Equal(len(w.ledgerOf(t)), 1)
	for _, name := range w.disk.Names(ledgerDir) {
		p.True(!strings.Contains(w.disk.Read(name), "long long")) // the note has the text
	}
	p.receive("session-1")
	eventually(t, "the receipt", func() bool { return len(w.ledgerOf(t)) == 0 })
}

func TestHost_ANoticeSurvivesTheDeathOfBoth(t *testing.T) {
	for _, seen := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored in the session %v", seen), func(t *testing.T) {
			w := newHosting()
			p := w.pi(t)
			p.enter(bridgeSession{})
			agent, prompt := p.working("auth")
			p.good("shepherd_watch", object{"id": prompt})
			agent.Finish("it is in retry.go")
			eventually(t, "a notice", func() bool { return len(p.notices()) == 1 })
			told := p.notices()[0]
			w.view.Kill() // the host dies, and so does pi

			again := w.pi(t)
			var ids []watch.NotificationID
			if seen {
				ids = append(ids, told.ID)
			}
			entered := again.enter(bridgeSession{Seen: ids})
			if seen {
				again.Equal(len(entered.Again), 0)
			} else {
				again.Equal(len(entered.Again), 1)
				again.Equal(entered.Again[0], told) // its text too
				again.NoErr(again.client.Notify(t.Context(), "receipts", bridgeReceipts{Session: "session-1", IDs: []watch.NotificationID{told.ID}}))
			}
			eventually(t, "the ledger is empty", func() bool { return len(w.ledgerOf(t)) == 0 })
			again.Equal(len(again.notices()), 0)
		})
	}
}

// TestHost_TimersFireIntoASessionThatIsGone is case C22: what settles after the end of its session
// is not told, then or later.
func TestHost_TimersFireIntoASessionThatIsGone(t *testing.T) {
	for _, reason := range []string{"new", "resume", "fork"} {
		t.Run(reason, func(t *testing.T) {
			p := newHosting().pi(t)
			p.enter(bridgeSession{})
			agent, prompt := p.working("auth")
			p.good("shepherd_watch", object{"id": prompt})
			p.leave("session-1", reason)
			p.enter(bridgeSession{ID: "session-2"})
			agent.Finish("late")
			entered := p.enter(bridgeSession{ID: "session-1"})
			p.Equal(len(entered.Again), 0)
			p.Equal(len(p.notices()), 0)
			waited := p.good("shepherd_wait", object{"id": prompt}) // but it can be read
			p.True(strings.Contains(waited.Text, `"text":"late"`))
		})
	}
}

func TestHost_WhatSettledBeforeTheEndIsShownOnce(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	p.good("shepherd_watch", object{"id": prompt})
	agent.Finish("just in time")
	eventually(t, "the prompt has settled", func() bool {
		st := p.good("shepherd_status", object{})
		return !strings.Contains(st.Text, "promptId")
	})
	p.mu.Lock()
	p.refuse = true // pi is in its shutdown
	p.mu.Unlock()
	p.leave("session-1", "new")
	p.enter(bridgeSession{ID: "session-2"})
	entered := p.enter(bridgeSession{})
	p.Equal(len(entered.Again), 1)
	p.Equal(entered.Again[0].Items[0].Text, "just in time")
}

func TestHost_AQuitKeepsWhatHasSettledAndSaysNothingMore(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	one, first := p.working("one")
	_, second := p.working("two")
	p.good("shepherd_watch", object{"id": []string{first, second}})
	one.Finish("done")
	eventually(t, "the prompt has settled", func() bool {
		return strings.Count(p.good("shepherd_status", object{}).Text, "promptId") == 1
	})
	p.leave("session-1", "quit")
	p.hangUp()
	<-p.ended

	again := w.pi(t)
	entered := again.enter(bridgeSession{})
	again.Equal(len(entered.Again), 1)
	again.Equal(string(entered.Again[0].Items[0].PromptID), first)
	again.Equal(len(entered.Again[0].Items), 1)
	shown := map[string]string{}
	again.ask("show", bridgeShow{Session: "session-1", What: "notes"}, &shown)
	again.True(strings.Contains(shown["text"], "scout-01.md  completed"))
	again.True(strings.Contains(shown["text"], "scout-02.md  interrupted")) // its agent was the host's
}

func TestHost_AHostThatDiedIsReplaced(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	quick, done := p.working("quick")
	_, lost := p.working("lost")
	p.good("shepherd_watch", object{"id": lost})
	p.good("shepherd_watch", object{"id": []string{lost, done}})
	quick.Finish("in the note")
	eventually(t, "a notice", func() bool { return len(p.notices()) == 1 })
	told := p.notices()[0]
	p.Equal(told.Order, 2)
	open := p.hasWatches(2)
	w.view.Kill()

	next := w.pi(t)
	entered := next.enter(bridgeSession{Restart: true, Seen: []watch.NotificationID{told.ID}, Watches: open})
	next.Equal(len(entered.Again), 2)
	for i, n := range entered.Again { // in the order of their watches, under their ids
		next.Equal(n.WatchID, open[i].ID)
		next.Equal(n.Order, i+1)
		next.Equal(n.ID, watch.NotificationID(fmt.Sprintf("%s/%d", open[i].ID, i+1)))
		next.Equal(len(n.Items), 1)
		next.Equal(string(n.Items[0].PromptID), lost)
		next.Equal(string(n.Items[0].Status), "interrupted")
		next.Equal(n.Items[0].ReturnCode, 129)
	}
	r := next.tool("shepherd_status", object{})
	next.True(strings.Contains(r.Text, "no agents were started."))
}

// The note was finished, and then the host died before it could tell.
func TestHost_AResultThatOnlyTheNoteHasIsTold(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	p.good("shepherd_watch", object{"id": prompt})
	open := p.hasWatches(1)
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	agent.Finish("in the note")
	eventually(t, "it settles", func() bool { return !strings.Contains(p.good("shepherd_status", object{}).Text, "promptId") })
	w.view.Kill()
	for _, name := range w.disk.Names(ledgerDir) { // not even the ledger
		if strings.HasSuffix(name, ".json") {
			w.disk.Write(name, `{"version":1,"notices":[]}`)
		}
	}
	next := w.pi(t)
	entered := next.enter(bridgeSession{Restart: true, Watches: open})
	next.Equal(len(entered.Again), 1)
	next.Equal(string(entered.Again[0].Items[0].Status), "done")
	next.Equal(entered.Again[0].Items[0].Text, "in the note")
}

// TestHost_TheParentCannotBeWokenAnyMore is case C59.
func TestHost_TheParentCannotBeWokenAnyMore(t *testing.T) {
	for _, mode := range []string{"print", "json"} {
		t.Run(mode, func(t *testing.T) {
			p := newHosting().pi(t)
			p.enter(bridgeSession{Mode: mode})
			agent, prompt := p.working("auth")
			r := p.tool("shepherd_watch", object{"id": prompt})
			p.True(r.IsError)
			p.True(strings.Contains(r.Text, mode+" mode"))
			p.True(strings.Contains(r.Text, "shepherd_wait"))
			agent.Finish("done")
			p.True(strings.Contains(p.good("shepherd_wait", object{"id": prompt}).Text, `"status":"done"`))
			p.Equal(len(p.notices()), 0)
		})
	}
}

func TestHost_APiWithoutASessionFileIsEphemeralAndOutlivesItsHost(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	first := p.enter(bridgeSession{Mode: "rpc"})
	p.True(first.Ephemeral != "")
	_, prompt := p.working("auth")
	p.good("shepherd_watch", object{"id": prompt})
	open := p.hasWatches(1)
	w.view.Kill()
	next := w.pi(t)
	entered := next.enter(bridgeSession{Mode: "rpc", Restart: true, Ephemeral: first.Ephemeral, Watches: open})
	next.Equal(entered.Ephemeral, first.Ephemeral)
	next.Equal(len(entered.Again), 1)
	shown := map[string]string{}
	next.ask("show", bridgeShow{Session: "session-1", What: "notes"}, &shown)
	next.True(strings.Contains(shown["text"], "interrupted"))
	sessions := 0
	for _, name := range w.disk.Names(".shepherd") {
		if strings.HasSuffix(name, "/session.json") {
			sessions++
		}
	}
	next.Equal(sessions, 1)

	stranger := w.pi(t)
	stranger.True(stranger.enter(bridgeSession{Mode: "rpc"}).Ephemeral != first.Ephemeral)
}

func TestHost_TwoPisOnOneSession(t *testing.T) {
	w := newHosting()
	first := w.pi(t)
	first.enter(bridgeSession{})
	agent, prompt := first.working("auth")
	first.good("shepherd_watch", object{"id": prompt})

	second := w.pi(t)
	entered := second.enter(bridgeSession{})
	second.True(strings.Contains(entered.Warning, "another pi"))
	_, other := second.working("tests") // tools work
	r := second.tool("shepherd_watch", object{"id": other})
	second.True(r.IsError)
	second.True(strings.Contains(r.Text, "another pi"))

	agent.Finish("done")
	eventually(t, "the first is told", func() bool { return len(first.notices()) == 1 })
	second.Equal(len(second.notices()), 0)

	first.hangUp()
	<-first.ended
	second.good("shepherd_watch", object{"id": other}) // now it is the only one
}

func TestHost_AToolCallCanBeStopped(t *testing.T) {
	p := newHosting().pi(t)
	p.enter(bridgeSession{})
	_, prompt := p.working("auth")
	answered := make(chan bridgeResult, 1)
	go func() {
		var r bridgeResult
		_ = p.client.CallResult(context.Background(), "tool", bridgeCall{Session: "session-1", Call: "c1", Name: "shepherd_wait", Args: json.RawMessage(`{"id":"` + prompt + `"}`)}, &r)
		answered <- r
	}()
	eventually(t, "the call is under way", func() bool {
		p.NoErr(p.client.Notify(t.Context(), "cancel", bridgeCancel{Call: "c1"}))
		select {
		case r := <-answered:
			return r.IsError && strings.Contains(r.Text, "cancel")
		default:
			return false
		}
	})
}

func TestHost_AnUnreadableLedgerIsKeptAside(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	p.working("auth")
	p.hangUp()
	<-p.ended
	var name string
	for _, n := range w.disk.Names(ledgerDir) {
		if strings.HasSuffix(n, ".json") {
			name = n
		}
	}
	w.disk.Write(name, "{torn")
	next := w.pi(t)
	next.Equal(len(next.enter(bridgeSession{}).Again), 0)
	kept := ""
	for _, n := range w.disk.Names(ledgerDir) {
		if strings.Contains(n, "unreadable") {
			kept = w.disk.Read(n)
		}
	}
	next.Equal(kept, "{torn")
}

func TestHost_ADiskThatFailsLosesNoNotice(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{})
	agent, prompt := p.working("auth")
	p.good("shepherd_watch", object{"id": prompt})
	w.disk.Fault = func(s notestest.Step) error {
		if strings.HasPrefix(s.Name, ledgerDir) {
			return errors.New("no space left on device")
		}
		return nil
	}
	agent.Finish("done")
	eventually(t, "a notice", func() bool { return len(p.notices()) == 1 })
}

func TestHost_TheUserIsAsked(t *testing.T) {
	w := newHosting()
	p := w.pi(t)
	p.enter(bridgeSession{Model: "scripted/one"})
	p.Equal(w.parent.Model(), "scripted/one")
	p.answer = true
	ok, err := w.parent.Confirm(t.Context(), "Trust this project's agents?", "/project/.pi/agents")
	p.NoErr(err)
	p.True(ok)
	p.enter(bridgeSession{Mode: "print"})
	ok, err = w.parent.Confirm(t.Context(), "Trust?", "")
	p.NoErr(err)
	p.True(!ok) // nobody is there
	p.Equal(len(p.asked), 1)
}

// raw is a client that keeps to no protocol.
type raw struct {
	*is.I
	t   *testing.T
	in  *bufio.Reader
	out io.Writer
}

func (r raw) say(line string) {
	_, err := io.WriteString(r.out, line+"\n")
	r.NoErr(err)
}

// hears returns the next line.
func (r raw) hears() string {
	r.t.Helper()
	line, err := r.in.ReadString('\n')
	r.NoErr(err)
	return line
}

func (r raw) closed() bool {
	_, err := r.in.ReadByte()
	return err != nil
}

func openNothing(context.Context, *Parent) (Parts, error) {
	p := Parts{}
	p.Config.Herdr, p.Config.FS = &lifecycletest.Herdr{}, notestest.NewDisk().View()
	return p, nil
}

// dial starts a host on a socket and returns its path and how to connect.
func socketHost(t *testing.T) (path string, connect func() raw) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run", "host.sock")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ServeSocket(ctx, path, "secret", ServeOptions{Open: openNothing}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return path, func() raw {
		t.Helper()
		var conn net.Conn
		eventually(t, "the host listens", func() (ok bool) {
			var err error
			conn, err = net.Dial("unix", path)
			return err == nil
		})
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return raw{is.New(t), t, bufio.NewReaderSize(conn, 1<<20), conn}
	}
}

const (
	helloSecret = `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"token":"secret"}}`
	askStatus   = `{"jsonrpc":"2.0","id":9,"method":"session","params":{"id":"s","dir":"/project","mode":"tui"}}`
)

func TestHost_BadInputIsAnsweredAndHarmsNothing(t *testing.T) {
	_, connect := socketHost(t)
	r := connect()
	r.say(`{"jsonrpc":"2.0","id":0,"method":"tool","params":{}}`)
	r.True(strings.Contains(r.hears(), "say hello first"))
	r.say(helloSecret)
	r.True(strings.Contains(r.hears(), `"protocol":1`))
	for line, want := range map[string]string{
		`what is this`: `"code":-32700`,
		`null`:         `"code":-32`,
		`[]`:           `"code":-32600`,
		`{"jsonrpc":"2.0","id":2,"method":"dance"}`:                                                      `method not found`,
		`{"jsonrpc":"2.0","id":3,"method":"tool","params":{"name":7}}`:                                   `"code":-32602`,
		`{"jsonrpc":"2.0","id":4,"method":"tool","params":{"name":"shepherd_status","session":"other"}}`: `is not the one that is open`,
		`{"jsonrpc":"2.0","id":5,"method":"session","params":{}}`:                                        `needs an id and a directory`,
		`{"jsonrpc":"2.0","id":6,"method":"hello","params":{"x":"` + strings.Repeat("a", 30<<20) + `"}}`: `a line of 30.0 MiB was skipped; at most 16.0 MiB are read`,
	} {
		r.say(line)
		if got := r.hears(); !strings.Contains(got, want) {
			t.Errorf("%.60s: got %s, want %s in it", line, got, want)
		}
	}
	r.say(askStatus) // all is well
	r.True(strings.Contains(r.hears(), `"again":[]`))
}

func TestHost_AWrongTokenAndASecondClientAreRefused(t *testing.T) {
	_, connect := socketHost(t)
	first := connect()
	first.say(helloSecret)
	first.hears()

	second := connect()
	second.True(strings.Contains(second.hears(), "serves another pi already"))
	second.True(second.closed())

	first.say(askStatus) // unharmed
	first.True(strings.Contains(first.hears(), `"again":[]`))
	_ = first.out.(net.Conn).Close()

	var third raw
	eventually(t, "the place is free", func() bool {
		third = connect() // or still refused, as the second was
		_, _ = io.WriteString(third.out, strings.Replace(helloSecret, "secret", "guess", 1)+"\n")
		answer, _ := third.in.ReadString('\n')
		return strings.Contains(answer, "token is wrong")
	})
	third.say(helloSecret) // and no second guess
	third.True(strings.Contains(third.hears(), "token is wrong"))
	third.True(third.closed())
}

func TestHost_TheSocketAndItsDirectoryArePrivate(t *testing.T) {
	path, connect := socketHost(t)
	r := connect()
	info, err := os.Stat(path)
	r.NoErr(err)
	r.Equal(info.Mode().Perm(), os.FileMode(0o600))
	info, err = os.Stat(filepath.Dir(path))
	r.NoErr(err)
	r.Equal(info.Mode().Perm(), os.FileMode(0o700))

	r.True(errors.Is(ServeSocket(t.Context(), path, "x", ServeOptions{Open: openNothing}), ErrSocketInUse))
	open := t.TempDir()
	r.NoErr(os.Chmod(open, 0o755))
	err = ServeSocket(t.Context(), filepath.Join(open, "s"), "x", ServeOptions{Open: openNothing})
	r.True(err != nil && strings.Contains(err.Error(), "private"))
	r.True(ServeSocket(t.Context(), path+"2", "", ServeOptions{Open: openNothing}) != nil)
}

func TestHost_ADeadHostsSocketIsReplaced(t *testing.T) {
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "run", "host.sock")
	ln, err := listenPrivately(path)
	is.NoErr(err)
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	is.NoErr(ln.Close())
	ln, err = listenPrivately(path)
	is.NoErr(err)
	is.NoErr(ln.Close())
}
