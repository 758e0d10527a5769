package shepherd

import (
	"context"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/notes"
)

// This file is the one place where a prompt and a note meet.

// plan is the note of a claimed prompt. It is started at once: nothing lies between its
// reservation and its submission.
func plan(c *lifecycle.Claim, o Order) notes.Plan {
	spec := c.Spec()
	return notes.Plan{
		Agent: spec.Name, Label: spec.Label, Task: o.Text,
		AgentID: string(spec.ID), PromptID: string(c.ID()), Pane: string(c.Target()), Start: true,
	}
}

// record is a note as lifecycle sees it.
type record struct{ note *notes.Note }

func (r record) Path() string          { return r.note.Path() }
func (r record) Text() (string, error) { return r.note.Text() }

func (r record) Finish(ctx context.Context, res lifecycle.Result) error {
	o := notes.Outcome{
		Status: noteStatus[res.Status], Text: res.Text, Error: res.Error,
		ReturnCode: res.ReturnCode, At: res.At, Inferred: res.Inferred,
	}
	if res.Late {
		return r.note.Late(ctx, o)
	}
	return r.note.Finalize(ctx, o)
}

var noteStatus = map[lifecycle.Status]notes.Status{
	lifecycle.StatusDone:        notes.Completed,
	lifecycle.StatusIdle:        notes.Completed,
	lifecycle.StatusFailed:      notes.Failed,
	lifecycle.StatusBlocked:     notes.Blocked,
	lifecycle.StatusTimeout:     notes.TimedOut,
	lifecycle.StatusCancelled:   notes.Cancelled,
	lifecycle.StatusDetached:    notes.Detached,
	lifecycle.StatusInterrupted: notes.Interrupted,
}
