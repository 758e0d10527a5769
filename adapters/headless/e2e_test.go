package headless_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/headless"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

// The whole journey with real processes and a real disk: facade, headless agents, notes.

// world is one parent in one project.
type world struct {
	*testing.T
	*is.I
	sh       *shepherd.Shepherd
	fs       notes.FS
	project  string
	notified chan shepherd.Notification
}

// scripted and pi are the two kinds of agents; both do what the prompt says.
func scripted(*testing.T) headless.Options { return headless.Options{Command: headlesstest.Command()} }

func pi(t *testing.T) headless.Options {
	pi := pitest.New(t)
	return headless.Options{Command: append(pi.Program, headless.DefaultCommand()[1:]...), Env: pi.Env}
}

// bothKinds runs a test with scripted agents and with real pi.
func bothKinds(t *testing.T, test func(t *testing.T, o headless.Options)) {
	t.Run("scripted", func(t *testing.T) { test(t, scripted(t)) })
	t.Run("pi", func(t *testing.T) { test(t, pi(t)) })
}

func newWorld(t *testing.T, o headless.Options, project string) *world {
	t.Helper()
	w := &world{T: t, I: is.New(t), fs: aferofs.OS(project), project: project, notified: make(chan shepherd.Notification, 100)}
	herd := headless.New(o)
	sh, err := shepherd.New(shepherd.Config{
		Herdr: herd, FS: w.fs, Parent: shepherd.Parent("nightly-review"),
		Notifier: shepherd.NotifierFunc(func(_ context.Context, n shepherd.Notification) error {
			w.notified <- n
			return nil
		}),
	})
	w.NoErr(err)
	w.sh = sh
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		w.NoErr(sh.Close(ctx))
		w.NoErr(herd.CloseAll(ctx))
	})
	return w
}

// in is the world as a subtest sees it.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.T, sub.I = t, is.New(t)
	return &sub
}

func (w *world) start(name string) shepherd.AgentID {
	w.Helper()
	agent, err := w.sh.Start(w.Context(), shepherd.Spec{Name: name, Dir: w.project})
	w.NoErr(err)
	return agent
}

func (w *world) prompt(agent shepherd.AgentID, lines ...string) shepherd.Prompt {
	w.Helper()
	p, err := w.sh.Prompt(w.Context(), agent, strings.Join(lines, "\n"))
	w.NoErr(err)
	return p
}

func (w *world) wait(p shepherd.Prompt) shepherd.Result {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	results, err := w.sh.Wait(ctx, p.ID)
	w.NoErr(err)
	return results[0]
}

// note reads the prompt's note from the disk.
func (w *world) note(p shepherd.Prompt) notes.NoteView {
	w.Helper()
	n, err := notes.ReadNote(w.Context(), w.fs, filepath.Base(p.SessionPath), filepath.Base(p.NotePath))
	w.NoErr(err)
	return n
}

// ends checks a result and that the note agrees with it.
func (w *world) ends(p shepherd.Prompt, r shepherd.Result, status shepherd.Status, note notes.Status, text, err string) {
	w.Helper()
	w.Equal(r.Status, status)
	w.Equal(r.Text, text)
	if !strings.Contains(r.Error, err) || (r.Error == "") != (err == "") {
		w.Errorf("the error is %q, want %q in it", r.Error, err)
	}
	w.NoErr(r.NoteErr)
	n := w.note(p)
	w.Equal(n.Status, note)
	w.Equal(n.Text, text)
	if !strings.Contains(n.Raw, err) {
		w.Errorf("the note does not say %q: %s", err, n.Raw)
	}
	w.True(n.ReturnCode != nil && *n.ReturnCode == r.ReturnCode)
	w.True(strings.HasPrefix(n.Pane, "pid:"))
}

func TestE2E_SameParentSameProject_FiveInvocations_OneDirectoryFiveNotesOneIndex(t *testing.T) {
	bothKinds(t, func(t *testing.T, o headless.Options) {
		project := t.TempDir()
		var prompts []shepherd.Prompt
		for _, texts := range [][]string{{"one", "two", "three"}, {"four", "five"}} { // the host is started twice
			w := newWorld(t, o, project)
			agents := []shepherd.AgentID{w.start("scout"), w.start("planner")}
			for i, text := range texts {
				p := w.prompt(agents[i%2], "say "+text)
				prompts = append(prompts, p)
				reg, err := w.sh.Watch(w.Context(), p.ID)
				w.NoErr(err)
				r := w.wait(p)
				w.ends(p, r, shepherd.StatusDone, notes.Completed, text, "")
				if len(reg.Pending) == 1 { // else it was told in reg.Completed
					told := (<-w.notified).Completions
					w.Equal(len(told), 1)
					w.Equal(told[0].PromptID, p.ID)
					w.Equal(told[0].Text, text)
				}
			}
			w.NoErr(w.sh.Close(t.Context()))
		}

		is := is.New(t)
		sessions, err := notes.List(t.Context(), aferofs.OS(project))
		is.NoErr(err)
		is.Equal(len(sessions), 1)          // one directory
		is.Equal(len(sessions[0].Notes), 5) // five notes
		is.True(strings.HasPrefix(sessions[0].Dir, "0001-"))
		index, err := os.ReadFile(filepath.Join(sessions[0].Path, "shepherd.md"))
		is.NoErr(err)
		for i, note := range sessions[0].Notes {
			is.Equal(note.Path, prompts[i].NotePath)
			is.Equal(note.PromptID, string(prompts[i].ID))
			is.True(strings.Contains(string(index), "(./"+note.File+")")) // one index that links them all
		}
	})
}

func TestE2E_AFanOut_IsToldInInputOrder(t *testing.T) {
	bothKinds(t, func(t *testing.T, o headless.Options) {
		w := newWorld(t, o, t.TempDir())
		var orders []shepherd.Order
		for i := range 3 {
			orders = append(orders, shepherd.Order{Agent: w.start(fmt.Sprintf("agent%d", i)), Text: fmt.Sprintf("say answer %d", i)})
		}
		prompts, err := w.sh.PromptAll(t.Context(), orders...)
		w.NoErr(err)
		var ids []shepherd.PromptID
		for _, p := range prompts {
			ids = append(ids, p.ID)
		}
		reg, err := w.sh.Watch(t.Context(), ids...)
		w.NoErr(err)
		told := map[shepherd.PromptID]string{}
		for _, r := range reg.Completed {
			told[r.PromptID] = r.Text
		}
		for len(told) < len(ids) {
			for _, c := range (<-w.notified).Completions {
				_, twice := told[c.PromptID]
				w.True(!twice)
				told[c.PromptID] = c.Text
			}
		}
		for i, id := range ids {
			w.Equal(told[id], fmt.Sprintf("answer %d", i))
		}
		for i, p := range prompts {
			w.Equal(w.note(p).Text, fmt.Sprintf("answer %d", i))
		}
	})
}

func TestE2E_EveryEnding_AndTheNoteAgrees(t *testing.T) {
	w := newWorld(t, pi(t), t.TempDir())
	agent := w.start("scout")

	t.Run("done: the text is what the model server said", func(t *testing.T) {
		w := w.in(t)
		p := w.prompt(agent, "bash echo a tool\nslow 100ms the answer, 🐑 and all")
		w.ends(p, w.wait(p), shepherd.StatusDone, notes.Completed, "the answer, 🐑 and all", "")
	})
	t.Run("401: failed with the provider's message", func(t *testing.T) {
		w := w.in(t)
		p := w.prompt(agent, "status 401 your key has expired")
		w.ends(p, w.wait(p), shepherd.StatusFailed, notes.Failed, "", "your key has expired")
	})
	t.Run("exhausted 500: failed with the provider's message", func(t *testing.T) {
		w := w.in(t)
		p := w.prompt(agent, "status 500 the model is on fire")
		w.ends(p, w.wait(p), shepherd.StatusFailed, notes.Failed, "", "the model is on fire")
	})
	t.Run("a passing 500: done, once", func(t *testing.T) {
		w := w.in(t)
		p := w.prompt(agent, "status 500 the model is on fire\nsay put out")
		w.ends(p, w.wait(p), shepherd.StatusDone, notes.Completed, "put out", "")
	})
	t.Run("a hang: timeout by the prompt's deadline", func(t *testing.T) {
		w := w.in(t)
		agent := w.start("sleeper")
		prompts, err := w.sh.PromptAll(t.Context(), shepherd.Order{Agent: agent, Text: "hang", Timeout: 500 * time.Millisecond})
		w.NoErr(err)
		r := w.wait(prompts[0])
		w.ends(prompts[0], r, shepherd.StatusTimeout, notes.TimedOut, "", r.Error)
		w.True(r.Error != "")
		_, err = w.sh.Prompt(t.Context(), agent, "say hello")
		w.True(errors.Is(err, shepherd.ErrAgentBusy)) // it still hangs
		w.NoErr(w.sh.CloseAgent(t.Context(), agent))
	})
	t.Run("killed: failed, naming the exit", func(t *testing.T) {
		w := w.in(t)
		agent := w.start("victim")
		p := w.prompt(agent, "bash kill -9 $PPID; sleep 60")
		w.ends(p, w.wait(p), shepherd.StatusFailed, notes.Failed, "", "exit status 137")
		w.NoErr(w.sh.CloseAgent(t.Context(), agent))
	})
	t.Run("closed while at work: cancelled", func(t *testing.T) {
		w := w.in(t)
		agent := w.start("worker")
		p := w.prompt(agent, "bash sleep 600")
		w.NoErr(w.sh.CloseAgent(t.Context(), agent))
		r := w.wait(p)
		w.ends(p, r, shepherd.StatusCancelled, notes.Cancelled, "", r.Error)
		w.True(r.Error != "")
	})
}

func TestE2E_WhatTheChildWrites_StaysInItsNote(t *testing.T) {
	w := newWorld(t, scripted(t), t.TempDir())
	p := w.prompt(w.start("scout"), "note - found it in retry.go", "say done, see file")
	w.ends(p, w.wait(p), shepherd.StatusDone, notes.Completed, "done, see file", "")
	w.True(strings.Contains(w.note(p).Body, "- found it in retry.go\n"))
}

func TestE2E_AProgramThatDoesNotExist_LeavesNoAgentAndNoNote(t *testing.T) {
	w := newWorld(t, headless.Options{Command: []string{"no-such-agent"}}, t.TempDir())
	_, err := w.sh.Start(t.Context(), shepherd.Spec{Name: "scout"})
	w.True(err != nil && strings.Contains(err.Error(), `"no-such-agent"`))
	for _, a := range w.sh.Agents() {
		w.Equal(a.State, shepherd.Gone)
	}
	sessions, err := notes.List(t.Context(), w.fs)
	w.NoErr(err)
	for _, s := range sessions {
		w.Equal(len(s.Notes), 0)
	}
}
