package pi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/childenv"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func openLink(t *testing.T) (*childLink, *levels) {
	t.Helper()
	told := newLevels()
	l, err := Links().Open(t.Context(), lifecycle.Spec{Name: "scout"}, told.add)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.(*childLink), told
}

// fake is the child's end, driven by hand.
type fake struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func dialLink(t *testing.T, l *childLink) *fake {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(l.dir, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &fake{conn, t, bufio.NewReader(conn)}
}

// connect dials and says hello. Like a child it comes again if it is hung up on: the link may
// not have let go of its last connection yet.
func connect(t *testing.T, l *childLink, more string) *fake {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f := dialLink(t, l)
		f.say(`{"type":"hello","protocol":1,"token":"` + l.token + `","pid":4711,"level":{` + more + `}}`)
		line, err := f.in.ReadString('\n')
		if err != nil {
			continue
		}
		if !strings.Contains(line, `"welcome"`) {
			t.Fatalf("got %s for a welcome", line)
		}
		return f
	}
	t.Fatal("never let in")
	return nil
}

func (f *fake) say(line string) {
	f.t.Helper()
	if _, err := io.WriteString(f, line+"\n"); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) hear() (m map[string]any) {
	f.t.Helper()
	line, err := f.in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// isHungUpOn reports whether the host has closed the connection.
func (f *fake) isHungUpOn() bool {
	_ = f.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := f.in.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestOpen_MakesAPrivatePlaceThatLivesUntilClose(t *testing.T) {
	is := is.New(t)
	one, _ := openLink(t)
	two, _ := openLink(t)
	is.True(one.Dir() != two.Dir())
	is.True(one.token != two.token)
	is.True(len(filepath.Base(one.Dir())) >= len(dirPrefix)+26) // 128 random bits

	info, err := os.Stat(one.Dir())
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), fs.FileMode(0o700))
	files, err := os.ReadDir(one.Dir())
	is.NoErr(err)
	is.Equal(len(files), 4)
	for _, f := range files {
		info, err := f.Info()
		is.NoErr(err)
		is.Equal(info.Mode().Perm(), fs.FileMode(0o600))
	}
	is.NoErr(one.Close())
	_, err = os.Stat(one.Dir())
	is.True(errors.Is(err, fs.ErrNotExist))
	is.NoErr(one.Close())
	err = one.Send(t.Context(), lifecycle.Submission{})
	is.True(errors.Is(err, lifecycle.ErrClosed))
}

func TestOpen_InADirectoryWithALongName_SaysSoAndLeavesNothing(t *testing.T) {
	is := is.New(t)
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	is.NoErr(os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	_, err := Links().Open(t.Context(), lifecycle.Spec{Name: "scout"}, newLevels().add)
	is.True(err != nil)
	is.True(strings.Contains(err.Error(), "set TMPDIR to a shorter directory"))
	left, err := os.ReadDir(long)
	is.NoErr(err)
	is.Equal(len(left), 0)
}

func TestLaunch_RaisesTheDepth(t *testing.T) {
	l, _ := openLink(t)
	for above, want := range map[string]string{"": "1", "0": "1", "1": "2", "nonsense": "2"} {
		t.Run("from "+above, func(t *testing.T) {
			is := is.New(t)
			t.Setenv(childenv.DepthVar, above)
			if above == "" {
				os.Unsetenv(childenv.DepthVar)
			}
			env, args := l.Launch()
			is.Equal(env[childenv.DepthVar], want)
			is.Equal(env["SHEPHERD_LINK"], l.Dir())
			is.True(!strings.Contains(strings.Join(args, " "), l.token)) // others may read arguments
		})
	}
}

func TestHello_BringsTheWholeLevel(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	f := connect(t, l, `"busy":true,"dialog":true,"turns":7,"signal":{"prompt":"p1","kind":"finished","text":"hi","code":3,"at":1000}`)
	e := told.until(t, "up", up)
	is.Equal(e.PID, 4711)
	is.True(e.Busy)
	is.True(e.Dialog)
	is.Equal(e.Turns, uint64(7))
	is.Equal(e.Current.Kind, lifecycle.Finished)
	is.Equal(e.Current.Text, "hi")
	is.Equal(*e.Current.Code, 3)
	is.Equal(e.Current.At, time.UnixMilli(1000))

	f.say(`{"type":"unblocked","level":{"busy":true,"turns":7}}`) // the signal is as it was
	e = told.until(t, "unblocked", func(e link.Event) bool { return !e.Dialog })
	is.Equal(e.Current.Text, "hi")

	f.Close()
	e = told.until(t, "down", down)
	is.Equal(e.PID, 4711) // kept
	is.Equal(e.Current.Text, "hi")
	connect(t, l, `"turns":8`)
	is.Equal(told.until(t, "up again", up).Turns, uint64(8))
}

func TestLink_LetsNobodyElseIn(t *testing.T) {
	for name, hello := range map[string]string{
		"wrong token":      `{"type":"hello","protocol":1,"token":"guess","pid":1}`,
		"no token":         `{"type":"hello","protocol":1,"pid":1}`,
		"another protocol": `{"type":"hello","protocol":2,"token":"TOKEN","pid":1}`,
		"not a hello":      `{"type":"settled","protocol":1,"token":"TOKEN"}`,
		"not JSON":         `GET / HTTP/1.1`,
		"an empty line":    ``,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			l, told := openLink(t)
			f := dialLink(t, l)
			f.say(strings.ReplaceAll(hello, "TOKEN", l.token))
			is.True(f.isHungUpOn())
			_, n, _ := told.newest()
			is.Equal(n, 0)
			connect(t, l, "") // the child's place is still free
		})
	}
}

func TestLink_HasRoomForOneChild(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	first := connect(t, l, `"turns":1`)
	second := dialLink(t, l)
	second.say(`{"type":"hello","protocol":1,"token":"` + l.token + `","pid":5,"level":{"turns":9}}`)
	is.True(second.isHungUpOn())

	first.say(`{"type":"working","level":{"turns":2}}`)
	e := told.until(t, "at work", func(e link.Event) bool { return e.Turns == 2 })
	is.Equal(e.PID, 4711)
	is.True(!told.has(func(e link.Event) bool { return e.PID == 5 }))
}

func TestLink_ALineTooLong_EndsTheConnectionAndNothingElse(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	f := connect(t, l, "")
	told.until(t, "up", up)
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = 'x'
	}
	var err error
	for n := 0; n <= maxLine && err == nil; n += len(block) {
		_, err = f.Write(block)
	}
	told.until(t, "down", down)
	connect(t, l, "")
	told.until(t, "up again", up)
	is.True(f.isHungUpOn())
}

func TestSend(t *testing.T) {
	const text = "!ls\n/quit\t@x \"q\" \\ \r\n[paste #1 +3 lines] \u2028 🐑 [sheep:no]\n"
	p := promptID("abc")
	tests := map[string]struct {
		child func(f *fake)
		want  error  // nil: taken
		says  string // part of the message
	}{
		"taken": {func(f *fake) {
			f.say(`{"type":"answer","prompt":"` + string(p) + `","level":{}}`)
		}, nil, ""},
		"busy": {func(f *fake) {
			f.say(`{"type":"answer","prompt":"` + string(p) + `","refused":"busy: a turn is running","level":{}}`)
		}, lifecycle.ErrAgentBusy, "a turn is running"},
		"refused": {func(f *fake) {
			f.say(`{"type":"answer","prompt":"` + string(p) + `","refused":"no model","level":{}}`)
		}, errRefused, "no model"},
		"lost before the answer": {func(f *fake) { f.Close() }, lifecycle.ErrOutcomeUnknown, "lost"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			l, told := openLink(t)
			f := connect(t, l, "")
			told.until(t, "up", up)
			got := make(chan map[string]any, 1)
			go func() {
				var m map[string]any
				line, _ := f.in.ReadBytes('\n')
				_ = json.Unmarshal(line, &m)
				got <- m
				tt.child(f)
			}()
			err := l.Send(t.Context(), lifecycle.Submission{Prompt: p, Text: text})
			m := <-got
			is.Equal(m["text"], "[sheep:000000000abc]\n"+text)
			is.Equal(m["marker"], "[sheep:000000000abc]")
			if tt.want == nil {
				is.NoErr(err)
				return
			}
			is.True(errors.Is(err, tt.want))
			is.True(strings.Contains(err.Error(), tt.says))
			is.True(strings.Contains(err.Error(), string(p)))
		})
	}
}

func TestSend_AnswersThatNobodyWaitsFor_AreInNobodysWay(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	f := connect(t, l, "")
	for range 3 {
		f.say(`{"type":"answer","prompt":"older","refused":"busy: no","level":{}}`)
	}
	f.say(`{"type":"working","level":{"turns":1}}`)
	told.until(t, "past them", func(e link.Event) bool { return e.Turns == 1 })
	go func() {
		_, _ = f.in.ReadBytes('\n')
		f.say(`{"type":"answer","prompt":"p1","level":{"turns":1}}`)
	}()
	is.NoErr(l.Send(t.Context(), lifecycle.Submission{Prompt: "p1", Text: "x"}))
}

func TestSend_WhileTheLinkIsDown_HasSurelyNotArrived(t *testing.T) {
	is := is.New(t)
	l, _ := openLink(t)
	err := l.Send(t.Context(), lifecycle.Submission{Prompt: "p", Text: "x"})
	is.True(err != nil)
	is.True(!errors.Is(err, lifecycle.ErrOutcomeUnknown))
}

func TestSend_WithoutAnAnswer_EndsWithItsContext(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	f := connect(t, l, "")
	told.until(t, "up", up)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = f.in.ReadBytes('\n') // written
		cancel()
	}()
	err := l.Send(ctx, lifecycle.Submission{Prompt: "p1", Text: "x"})
	is.True(errors.Is(err, lifecycle.ErrOutcomeUnknown))
	is.True(errors.Is(err, context.Canceled))

	go func() { // the link is as good as before
		_, _ = f.in.ReadBytes('\n')
		f.say(`{"type":"answer","prompt":"p1","level":{}}`)
		f.say(`{"type":"answer","prompt":"p2","level":{}}`)
	}()
	is.NoErr(l.Send(t.Context(), lifecycle.Submission{Prompt: "p2", Text: "x"}))
}

func TestSend_ToAChildThatDoesNotRead_EndsWithItsContextAndHasNotArrived(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	f := connect(t, l, "")
	told.until(t, "up", up)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = f.in.Peek(1) // the beginning has come; it reads no more
		cancel()
	}()
	err := l.Send(ctx, lifecycle.Submission{Prompt: "p1", Text: strings.Repeat("x", 8<<20)})
	is.True(errors.Is(err, context.Canceled))
	is.True(!errors.Is(err, lifecycle.ErrOutcomeUnknown))

	line, err := f.in.ReadBytes('\n') // what did get through is no line
	is.True(err != nil)
	is.True(len(line) < 8<<20)
	f.Close()
	told.until(t, "down", down)
	connect(t, l, "")
}

func TestSend_TwoAtOnce_TheSecondFindsItBusy(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	f := connect(t, l, "")
	told.until(t, "up", up)
	first := make(chan error, 1)
	go func() { first <- l.Send(t.Context(), lifecycle.Submission{Prompt: "p1", Text: "x"}) }()
	is.Equal(f.hear()["prompt"], "p1")
	err := l.Send(t.Context(), lifecycle.Submission{Prompt: "p2", Text: "x"})
	is.True(errors.Is(err, lifecycle.ErrAgentBusy))
	f.say(`{"type":"answer","prompt":"p1","level":{}}`)
	is.NoErr(<-first)
}
