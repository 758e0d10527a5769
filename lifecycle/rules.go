package lifecycle

import (
	"fmt"
	"time"
)

// Rules are the durations by which prompts are settled. A zero field has its default, a
// negative one is refused.
type Rules struct {
	LinkBack    time.Duration // R2: how long a lost link may stay away before state counts; 3 s
	RestHold    time.Duration // R3: how long an agent without a link must be at rest; 1 s
	BlockedHold time.Duration // R5: how long blocked must last; 1.5 s
	GoneHold    time.Duration // R6: how long a last signal is waited for once the agent is gone; 1 s
	NoStart     time.Duration // R7: how long nothing at all may happen after a submission; 30 s

	SubmitLimit time.Duration // the longest a submission may take before its outcome is unknown; 30 s
	LookLimit   time.Duration // the longest one look at the source may take; 10 s
	LookRetry   time.Duration // the pause after a look that failed; 1 s
	ReplyLimit  time.Duration // the longest the last message is asked for; 10 s
	NoteLimit   time.Duration // the longest a note may hold its result back; 10 s
}

func (r Rules) withDefaults() (Rules, error) {
	for _, f := range []struct {
		name  string
		field *time.Duration
		unset time.Duration
	}{
		{"LinkBack", &r.LinkBack, 3 * time.Second},
		{"RestHold", &r.RestHold, time.Second},
		{"BlockedHold", &r.BlockedHold, 1500 * time.Millisecond},
		{"GoneHold", &r.GoneHold, time.Second},
		{"NoStart", &r.NoStart, 30 * time.Second},
		{"SubmitLimit", &r.SubmitLimit, 30 * time.Second},
		{"LookLimit", &r.LookLimit, 10 * time.Second},
		{"LookRetry", &r.LookRetry, time.Second},
		{"ReplyLimit", &r.ReplyLimit, 10 * time.Second},
		{"NoteLimit", &r.NoteLimit, 10 * time.Second},
	} {
		var err error
		if *f.field, err = duration("Rules."+f.name, *f.field, f.unset); err != nil {
			return r, err
		}
	}
	return r, nil
}

// settling bounds how long a decided prompt may take until it is published: one last look,
// the reply and the note.
func (r Rules) settling() time.Duration { return r.LookLimit + r.ReplyLimit + r.NoteLimit }

func duration(name string, d, unset time.Duration) (time.Duration, error) {
	switch {
	case d < 0:
		return 0, fmt.Errorf("%w: %s is negative: %v", ErrInvalid, name, d)
	case d == 0:
		return unset, nil
	}
	return d, nil
}
