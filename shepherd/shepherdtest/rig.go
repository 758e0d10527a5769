// Package shepherdtest wires a Shepherd to in-memory everything, for tests of hosts: agents
// that the test drives, a disk that can be made to fail, a notifier that remembers. Inside a
// testing/synctest bubble no real time passes.
package shepherdtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
	"github.com/pi-shepherd/go-shepherd/watch/watchtest"
)

// Rig is a Shepherd and the hands that drive what is around it. Everything may be used from
// many goroutines, but Start, Prompt and Watch fail the test, so they are for its own.
type Rig struct {
	*shepherd.Shepherd
	T *testing.T

	Herdr  *lifecycletest.Herdr  // its agents do what the test says
	Faults *lifecycletest.Faults // set Choose to make calls of the Herdr fail
	Verify *lifecycletest.Verify // fails the test when a promise is broken
	Disk   *notestest.Disk       // set Fault to make the disk fail
	Told   *watchtest.Recorder   // what the parent was told
}

// New makes a rig. What c leaves out is in-memory; a port that it gives is used as it is,
// and the handle for it is then idle. The Shepherd is closed when the test ends.
func New(t *testing.T, c shepherd.Config) *Rig {
	t.Helper()
	return NewOn(t, notestest.NewDisk(), c)
}

// NewOn is [New] on a disk that is there already: a second process, or a later one.
func NewOn(t *testing.T, disk *notestest.Disk, c shepherd.Config) *Rig {
	t.Helper()
	r := &Rig{T: t, Herdr: &lifecycletest.Herdr{}, Disk: disk, Told: &watchtest.Recorder{}}
	r.Faults = &lifecycletest.Faults{Herdr: r.Herdr}
	r.Verify = &lifecycletest.Verify{Herdr: r.Faults, T: t}
	if c.Herdr == nil {
		c.Herdr = r.Verify
	}
	if c.FS == nil {
		c.FS = disk.View()
	}
	if c.Parent == nil {
		c.Parent = shepherd.Parent("the parent of " + t.Name())
	}
	if c.Notifier == nil {
		c.Notifier = r.Told
	}
	var err error
	if r.Shepherd, err = shepherd.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := r.Shepherd.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// Start starts an agent and returns the hand that drives it as well.
func (r *Rig) Start(name string) (shepherd.AgentID, *lifecycletest.Agent) {
	r.T.Helper()
	id, err := r.Shepherd.Start(r.T.Context(), shepherd.Spec{Name: name})
	if err != nil {
		r.T.Fatal(err)
	}
	return id, r.Herdr.Agent(id)
}

// Prompt prompts an agent.
func (r *Rig) Prompt(agent shepherd.AgentID, text string) shepherd.Prompt {
	r.T.Helper()
	p, err := r.Shepherd.Prompt(r.T.Context(), agent, text)
	if err != nil {
		r.T.Fatal(err)
	}
	return p
}

// Watch watches prompts.
func (r *Rig) Watch(prompts ...shepherd.PromptID) shepherd.Registration {
	r.T.Helper()
	reg, err := r.Shepherd.Watch(r.T.Context(), prompts...)
	if err != nil {
		r.T.Fatal(err)
	}
	return reg
}

// WaitOne waits for one prompt.
func (r *Rig) WaitOne(prompt shepherd.PromptID) shepherd.Result {
	r.T.Helper()
	got, err := r.Shepherd.Wait(r.T.Context(), prompt)
	if err != nil {
		r.T.Fatal(err)
	}
	return got[0]
}

// Note is the content of a prompt's note, "" if there is none.
func (r *Rig) Note(p shepherd.Prompt) string { return r.Disk.Read(p.NoteRelPath) }

// NoteStatus is the status in a note's front matter.
func (r *Rig) NoteStatus(p shepherd.Prompt) string { return FrontMatter(r.Note(p), "status") }

// FrontMatter is the value of a plain field in a note's front matter, "" if it has none.
func FrontMatter(note, field string) string {
	for line := range strings.Lines(note) {
		if value, ok := strings.CutPrefix(line, field+": "); ok {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}
