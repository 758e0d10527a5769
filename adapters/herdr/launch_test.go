package herdr_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr/herdrtest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func (r *rig) launch(s lifecycle.Spec) (lifecycle.Target, error) {
	if s.Name == "" {
		s.Name = "scout"
	}
	return r.herdr.Launch(r.Context(), s)
}

func (r *rig) mustLaunch(s lifecycle.Spec) lifecycle.Target {
	r.Helper()
	t, err := r.launch(s)
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// C26: a shell that still reads its own files refuses; the start's time is used.
func TestLaunch_IntoABusyShell_TriesAgain(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	r.server.Fail("agent.start", 2, herdrtest.Refuse("agent_pane_busy"))
	_, err := r.launch(lifecycle.Spec{})
	is.NoErr(err)
	is.Equal(r.server.Requests()["agent.start"], 3)
	is.Equal(r.server.Requests()["workspace.create"], 1) // the same pane, tried again
}

func TestLaunch_IntoAShellThatReadsItsFilesFor3s(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it takes 3 s")
	}
	is := is.New(t)
	r := start(t, herdrtest.Options{ShellAfter: 3 * time.Second}, true)
	begun := time.Now()
	_, err := r.launch(lifecycle.Spec{})
	is.NoErr(err)
	is.True(time.Since(begun) >= 3*time.Second)
}

// What the shell ran before was taken for the agent, whose program had then ended.
func TestLaunch_AProgramOfTheShellsOwn_IsNotTheAgent(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{RunAfter: 1200 * time.Millisecond}, linked)
		_, err := r.launch(lifecycle.Spec{})
		is.NoErr(err)
	}
}

func TestLaunch_IntoAShellThatStaysBusy_IsACleanError(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{ShellAfter: time.Hour}, true, func(o *herdr.Options) { o.StartTimeout = 500 * time.Millisecond })
	_, err := r.launch(lifecycle.Spec{})
	is.True(errors.Is(err, herdr.ErrStart))
	is.True(strings.Contains(err.Error(), "busy"))
	r.nothingIsLeft()
}

func TestLaunch_RefusedForAnotherReason_FailsAtOnce(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	r.server.Fail("agent.start", -1, herdrtest.Refuse("agent_pane_unavailable"))
	_, err := r.launch(lifecycle.Spec{})
	var e *herdr.Error
	is.True(errors.As(err, &e))
	is.Equal(e.Code, "agent_pane_unavailable")
	is.Equal(r.server.Requests()["agent.start"], 1)
	r.nothingIsLeft()
}

func TestLaunch_OfAProgramThatIsNotThere_SaysWhatThePaneSays(t *testing.T) {
	for _, linked := range []bool{true, false} {
		is := is.New(t)
		r := start(t, herdrtest.Options{Missing: []string{"pi"}}, linked)
		_, err := r.launch(lifecycle.Spec{})
		is.True(errors.Is(err, herdr.ErrStart))
		is.True(strings.Contains(err.Error(), "pi: not found"))
		r.nothingIsLeft()
	}
}

// C38: newer is never refused, older is told apart before anything is made.
func TestLaunch_OnAnotherVersion(t *testing.T) {
	for name, tt := range map[string]struct {
		protocol int
		tooOld   bool
	}{"oldest": {17, false}, "known": {20, false}, "newer": {22, false}, "older": {16, true}, "without a number": {-1, true}} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := start(t, herdrtest.Options{Protocol: tt.protocol, Version: "0.6.1"}, true)
			_, err := r.launch(lifecycle.Spec{})
			var old *herdr.TooOldError
			is.Equal(errors.As(err, &old), tt.tooOld)
			if tt.tooOld {
				is.True(strings.Contains(err.Error(), "0.6.1") && strings.Contains(err.Error(), "17"))
				is.Equal(len(r.server.Requests()), 1) // the ping
				r.nothingIsLeft()
			} else {
				is.NoErr(err)
			}
		})
	}
}

func TestLaunch_WithoutAServer(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	r.server.Stop()
	_, err := r.launch(lifecycle.Spec{})
	is.True(errors.Is(err, herdr.ErrNotRunning))
	is.Equal(len(r.server.Links().Dirs()), 0)
}

func TestLaunch_ChecksBeforeItMakesAnything(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		spec lifecycle.Spec
		is   error
	}{
		"a directory that is missing":       {lifecycle.Spec{Dir: "/no/such/dir"}, fs.ErrNotExist},
		"a directory that is a file":        {lifecycle.Spec{Dir: file}, nil},
		"an argument with a newline":        {lifecycle.Spec{Args: []string{"a\nb"}}, lifecycle.ErrInvalid},
		"a variable without a name":         {lifecycle.Spec{Env: map[string]string{"": "x"}}, nil},
		"a variable with a name like a=b":   {lifecycle.Spec{Env: map[string]string{"a=b": "x"}}, nil},
		"a variable with a NUL in its text": {lifecycle.Spec{Env: map[string]string{"a": "\x00"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := start(t, herdrtest.Options{}, true)
			_, err := r.launch(tt.spec)
			is.True(err != nil)
			is.True(tt.is == nil || errors.Is(err, tt.is))
			is.Equal(len(r.server.Requests()), 0)
			r.nothingIsLeft()
		})
	}
}

// Whichever request of a launch goes wrong, and however: nothing of it is left.
func TestLaunch_ThatFailsAnywhere_LeavesNothing(t *testing.T) {
	faults := map[string]herdrtest.Fault{"refused": herdrtest.Refuse("internal_error"), "hung up on": herdrtest.Drop, "done, and hung up on": herdrtest.DoneButDrop}
	for _, method := range []string{"ping", "workspace.create", "agent.start", "pane.process_info", "agent.get"} {
		for name, fault := range faults {
			for _, linked := range []bool{true, false} {
				t.Run(method+" "+name, func(t *testing.T) {
					r := start(t, herdrtest.Options{ReadyAfter: 400 * time.Millisecond}, linked)
					r.server.Fail(method, 1, fault)
					target, err := r.launch(lifecycle.Spec{})
					if err == nil { // it could do without, or has found out
						if err := r.herdr.Close(t.Context(), target); err != nil {
							t.Error(err)
						}
					}
					r.nothingIsLeft()
				})
			}
		}
	}
}

func TestLaunch_ThatIsCancelled_LeavesNothing(t *testing.T) {
	for _, after := range []string{"workspace.create", "agent.start"} {
		is := is.New(t)
		r := start(t, herdrtest.Options{FoundAfter: time.Hour}, true)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		go func() {
			for r.server.Requests()[after] == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel(enough)
		}()
		_, err := r.herdr.Launch(ctx, lifecycle.Spec{Name: "scout"})
		is.True(errors.Is(err, enough))
		r.nothingIsLeft()
	}
}

func TestCloseAll_DuringALaunch_LeavesNothing(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{FoundAfter: time.Hour}, true)
	launched := make(chan error)
	go func() {
		_, err := r.launch(lifecycle.Spec{})
		launched <- err
	}()
	r.eventually("the agent is being started", func() bool { return r.server.Requests()["agent.start"] > 0 })
	is.NoErr(r.herdr.CloseAll(t.Context()))
	is.True(errors.Is(<-launched, lifecycle.ErrClosed))
	r.nothingIsLeft()
	_, err := r.launch(lifecycle.Spec{})
	is.True(errors.Is(err, lifecycle.ErrClosed))
}

// An answer that is lost does not make a second pane.
func TestLaunch_WhosePaneWasMadeWithoutAWord_FindsIt(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	r.server.Fail("workspace.create", 1, herdrtest.DoneButDrop)
	target := r.mustLaunch(lifecycle.Spec{})
	is.Equal(len(r.server.Panes()), 2)
	is.NoErr(r.herdr.Close(t.Context(), target))
	r.nothingIsLeft()
}

func TestPlacement(t *testing.T) {
	for _, tt := range []struct {
		name      string
		placement herdr.Placement
		inside    bool
		pane      string // where the agent is
	}{
		{"a tab in our own workspace", herdr.InTab, true, "w1:p3"},
		{"from a plain terminal, a tab in a workspace for the agents", herdr.InTab, false, "w3:p1"},
		{"to the right of our own pane", herdr.ToTheRight, true, "w1:p3"},
		{"below our own pane", herdr.Below, true, "w1:p3"},
		{"a workspace of its own", herdr.InWorkspace, true, "w3:p1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			is := is.New(t)
			r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Placement = tt.placement })
			// The human looks at another workspace, and our pane is not the focused one of its own.
			r.server.Do("pane.split", map[string]any{"target_pane_id": "w1:p1", "direction": "right"})
			r.server.Do("workspace.create", map[string]any{"focus": true})
			before := focus(r)
			if tt.inside {
				t.Setenv("HERDR_SOCKET_PATH", r.server.Socket)
				t.Setenv("HERDR_PANE_ID", "w1:p2")
			}
			target := r.mustLaunch(lifecycle.Spec{})
			is.Equal(string(target), tt.pane)
			is.Equal(focus(r), before) // nothing has taken the focus
			is.NoErr(r.herdr.Close(t.Context(), target))
			is.Equal(r.server.Panes(), []string{"w1:p1", "w1:p2", "w2:p1"})
		})
	}
}

func focus(r *rig) string {
	snap := string(r.server.Do("session.snapshot", map[string]any{}))
	_, rest, _ := strings.Cut(snap, `"focused_pane_id":`)
	return rest[:10]
}

func TestPlacement_BesideNothing_IsRefused(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Placement = herdr.Below })
	t.Setenv("HERDR_SOCKET_PATH", "/some/other.sock") // our pane is another server's
	t.Setenv("HERDR_PANE_ID", "w1:p1")
	_, err := r.launch(lifecycle.Spec{})
	is.True(errors.Is(err, lifecycle.ErrInvalid))
	is.Equal(r.server.Requests()["pane.split"], 0)
	r.nothingIsLeft()
}

func TestAgentsOfAPlainTerminal_ShareAWorkspace_WhichEndsWithTheLast(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	one, two := r.mustLaunch(lifecycle.Spec{}), r.mustLaunch(lifecycle.Spec{})
	is.Equal([]lifecycle.Target{one, two}, []lifecycle.Target{"w2:p1", "w2:p2"})
	is.NoErr(r.herdr.Close(t.Context(), one))
	is.NoErr(r.herdr.Close(t.Context(), two))
	r.nothingIsLeft()
	three := r.mustLaunch(lifecycle.Spec{}) // in a new one
	is.Equal(three, lifecycle.Target("w3:p1"))
}

// C50: what is shown or sent has nothing that a terminal or a shell would act on.
func TestLaunch_WithNamesAndDirectoriesThatBite(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	spec := lifecycle.Spec{
		Name:  "-Sc\x1b[31mout\x1b[0m \x1b]0;title\aé\n!",
		Label: "\x1b[1mfix\x07 \x1b]2;x\x1b\\the\nbug\x7f",
		Dir:   filepath.Join(t.TempDir(), "a b'\"$(x);\n`y`"),
	}
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		t.Skipf("no such directory here: %v", err)
	}
	r.mustLaunch(spec)
	snap := string(r.server.Do("session.snapshot", map[string]any{}))
	_, agents, _ := strings.Cut(snap, `"agents":`)
	for _, rubbish := range []string{"31m", "0m", "title", `\u001b`, `\u0007`, "fix\\", "]2;x"} {
		is.True(!strings.Contains(agents, rubbish))
	}
	is.True(strings.Contains(snap, " fix the bug"))
	is.True(strings.Contains(agents, `"name":"scout-`))
	is.True(strings.Contains(snap, `a b'\"$(x);\n`)) // as JSON, and in one piece
}

func TestLaunch_IntoAPaneThatIsElsewhere_IsRefused(t *testing.T) {
	is := is.New(t)
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Links = removing{o.Links, gone} })
	is.NoErr(os.Mkdir(gone, 0o700))
	_, err := r.launch(lifecycle.Spec{Dir: gone}) // goes between the check and the pane
	is.True(errors.Is(err, herdr.ErrStart))
	is.True(strings.Contains(err.Error(), gone))
	is.Equal(r.server.Requests()["agent.start"], 0)
	r.nothingIsLeft()
}

// removing removes a directory when a link is opened.
type removing struct {
	herdr.Links
	dir string
}

func (l removing) Open(ctx context.Context, s lifecycle.Spec, on func(herdr.LinkEvent)) (herdr.Link, error) {
	_ = os.Remove(l.dir)
	return l.Links.Open(ctx, s, on)
}

// The child must not take itself for its parent, and gets nothing of this process's secrets.
func TestLaunch_EnvironmentOfTheChild(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.Env = map[string]string{"A": "host", "B": "host"} })
	t.Setenv("SHEPHERD_HOST", "/sock")
	t.Setenv("PI_SESSION_ID", "parent")
	t.Setenv("API_KEY", "secret")
	target := r.mustLaunch(lifecycle.Spec{Env: map[string]string{"B": "spec", "SHEPHERD_DEPTH": "-9"}})
	env := r.server.Env(string(target))
	delete(env, "HERDRTEST_LINK")
	is.Equal(env, map[string]string{"A": "host", "B": "spec", "SHEPHERD_HOST": "", "PI_SESSION_ID": "", "SHEPHERD_DEPTH": "1"})
}

func TestLaunch_AtTheDepthLimit_IsRefused(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	t.Setenv("SHEPHERD_DEPTH", "1")
	_, err := r.launch(lifecycle.Spec{})
	is.True(errors.Is(err, herdr.ErrTooDeep))
	is.Equal(len(r.server.Requests()), 0)
}

func TestLaunch_OfAnotherKind_HasNoLink(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	target := r.mustLaunch(lifecycle.Spec{Kind: "claude"})
	o, _ := r.herdr.Observe(target)
	is.Equal(o.Link, lifecycle.NoLink)
	is.Equal(o.State, lifecycle.Idle)
	is.Equal(len(r.server.Links().Dirs()), 0)
	_, err := r.launch(lifecycle.Spec{Kind: "nonsense"})
	var e *herdr.Error
	is.True(errors.As(err, &e))
	is.Equal(e.Code, "unsupported_agent_kind")
}

func TestClose_RemovesWhatLaunchMade(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	target := r.mustLaunch(lifecycle.Spec{})
	is.Equal(len(r.server.Links().Dirs()), 1)
	info, err := os.Stat(r.server.Links().Dirs()[0])
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), fs.FileMode(0o700))
	is.NoErr(r.herdr.Close(t.Context(), target))
	r.nothingIsLeft()
	is.Equal(r.server.Requests()["workspace.close"]+r.server.Requests()["tab.close"], 0) // only ever the pane
	is.True(slices.Contains(r.server.Panes(), "w1:p1"))
}

func TestClose_WhoseAnswerIsLost_LooksAndIsDone(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true)
	target := r.mustLaunch(lifecycle.Spec{})
	r.server.Fail("pane.close", 1, herdrtest.DoneButDrop)
	is.NoErr(r.herdr.Close(t.Context(), target))
	is.Equal(r.server.Requests()["pane.close"], 1) // it is not asked for twice
	r.nothingIsLeft()

	target = r.mustLaunch(lifecycle.Spec{})
	r.server.Fail("pane.close", 1, herdrtest.Drop)
	is.NoErr(r.herdr.Close(t.Context(), target))
	r.nothingIsLeft()
}

func TestClose_OfAServerThatIsStuck_CanBeTriedAgain(t *testing.T) {
	is := is.New(t)
	r := start(t, herdrtest.Options{}, true, func(o *herdr.Options) { o.CallTimeout = 100 * time.Millisecond })
	target := r.mustLaunch(lifecycle.Spec{})
	r.server.Fail("pane.close", -1, herdrtest.Hang)
	is.True(errors.Is(r.herdr.Close(t.Context(), target), herdr.ErrNoAnswer))
	r.server.Mend()
	is.NoErr(r.herdr.Close(t.Context(), target))
	r.nothingIsLeft()
}
