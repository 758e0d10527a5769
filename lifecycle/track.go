package lifecycle

import (
	"fmt"
	"time"
)

// tracker is the settling decision for one prompt: a value that observations and time
// advance, and nothing else. It holds rulings R2 to R7 and R10.
type tracker struct {
	rules Rules
	id    PromptID

	turns   uint64 // turns counted before the submission: the baseline
	based   bool   // the baseline was seen; a missing one never counts as "has changed"
	started bool   // the agent said that our turn has begun
	worked  bool   // work was seen where only state can tell (no link, or a lost one)

	active bool      // something is going on, or we cannot see that nothing is
	quiet  time.Time // since when nothing is going on
	lost   time.Time // since when the link is lost; zero while it is not

	held  candidate // the ending that is being held
	since time.Time // since when
	seen  uint64    // turns at that time: one more starts the hold again
}

// candidate is an ending by state, which must hold for a while and be confirmed by a look.
type candidate uint8

const (
	none candidate = iota
	rest
	blocked
	gone
)

// step is what the owner of a prompt has to do next: end it, or look at the source and come
// again with fresh set, or come again at wake or at the next change, whichever is first.
type step struct {
	end  *Result
	look bool
	wake time.Time // zero: only a change can bring news
}

// track begins at a submission. base is what was observed just before it.
func track(rules Rules, id PromptID, base Observation, now time.Time) tracker {
	return tracker{rules: rules, id: id, turns: base.Turns, based: base.State != Unknown, seen: base.Turns, quiet: now}
}

// next decides. fresh says that o comes straight from a look at the source.
func (t tracker) next(o Observation, now time.Time, fresh bool) (tracker, step) {
	if end := t.signalled(o.Signal, now); end != nil {
		return t, step{end: end}
	}
	t = t.learn(o, now)

	c, hold := t.candidate(o, now)
	if c != t.held || o.Turns != t.seen {
		t.held, t.since = c, now
	}
	t.seen = o.Turns
	if c != none {
		return t, t.hold(t.since.Add(hold), now, fresh, func() *Result { return t.ending(c, o, now) })
	}
	s := step{}
	if !t.started && !t.worked && !t.active {
		s = t.hold(t.quiet.Add(t.rules.NoStart), now, fresh, func() *Result { return t.neverBegun(now) })
	}
	if s.end == nil && !s.look && !t.stateCounts(o, now) {
		s.wake = earlier(s.wake, t.lost.Add(t.rules.LinkBack))
	}
	return t, s
}

// signalled is the agent's own word, which needs no hold.
func (t tracker) signalled(s Signal, now time.Time) *Result {
	if s.Prompt != t.id || !s.Final() {
		return nil
	}
	r := &Result{Status: StatusDone, Text: s.Text, Error: s.Error, At: s.At}
	switch s.Kind {
	case Failed:
		r.Status = StatusFailed
		if r.Error == "" {
			r.Error = "the agent failed without saying why"
		}
	case Aborted:
		r.Status, r.Error = StatusCancelled, "interrupted in the agent's own place"
	}
	r.ReturnCode = r.Status.ReturnCode()
	if s.Code != nil {
		r.ReturnCode = *s.Code
	}
	if r.At.IsZero() {
		r.At = now
	}
	return r
}

// learn takes in what o adds to what is known of the prompt's start.
func (t tracker) learn(o Observation, now time.Time) tracker {
	if !t.based && o.State != Unknown {
		t.turns, t.based = o.Turns, true
	}
	switch o.Link {
	case LinkUp:
		t.worked, t.lost = false, time.Time{}
	case LinkLost:
		t.worked = t.worked || o.State == Working // seen since the loss
		if t.lost.IsZero() {
			t.lost = now
		}
	case NoLink:
		t.worked = t.worked || o.State == Working || (t.based && o.Turns > t.turns)
	}
	t.started = t.started || (o.Signal.Prompt == t.id && o.Signal.Kind == Started)

	active := o.State == Working || (o.State == Unknown && o.Link != LinkUp)
	if (t.active && !active) || o.Turns != t.seen {
		t.quiet = now
	}
	t.active = active
	return t
}

func (t tracker) candidate(o Observation, now time.Time) (candidate, time.Duration) {
	switch {
	case o.State == Gone:
		return gone, t.rules.GoneHold
	case !t.stateCounts(o, now):
		return none, 0
	case o.State == Blocked:
		return blocked, t.rules.BlockedHold
	case o.State == Idle && t.worked:
		return rest, t.rules.RestHold
	}
	return none, 0
}

// stateCounts: a link that has just been lost is given time to come back.
func (t tracker) stateCounts(o Observation, now time.Time) bool {
	return o.Link != LinkLost || now.Sub(t.lost) >= t.rules.LinkBack
}

// hold waits until due, then asks for a look, and ends only on what that has confirmed.
func (t tracker) hold(due, now time.Time, fresh bool, end func() *Result) step {
	switch {
	case now.Before(due):
		return step{wake: due}
	case !fresh:
		return step{look: true}
	}
	return step{end: end()}
}

func (t tracker) ending(c candidate, o Observation, now time.Time) *Result {
	switch c {
	case gone:
		why := o.Detail
		if why == "" {
			why = "it ended"
		}
		return &Result{Status: StatusFailed, Error: "the agent is gone: " + why, At: now}
	case blocked:
		return &Result{Status: StatusBlocked, Error: "the agent waits for an answer in its own place", At: now}
	default:
		return &Result{Status: StatusIdle, Inferred: true, At: now}
	}
}

func (t tracker) neverBegun(now time.Time) *Result {
	why := fmt.Sprintf("no sign of a start within %v; the text was not sent again", t.rules.NoStart)
	return &Result{Status: StatusTimeout, Error: why, At: now}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
