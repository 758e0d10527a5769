package lifecycle

import (
	"testing"
	"time"

	"github.com/matryer/is"
)

// event is a change of the level at a time after the submission.
type event struct {
	at     time.Duration
	change func(*Observation)
}

// at is an event of several changes.
func at(d time.Duration, changes ...func(*Observation)) event {
	return event{d, func(o *Observation) {
		for _, c := range changes {
			c(o)
		}
	}}
}

func state(s State) func(*Observation) { return func(o *Observation) { o.State = s } }
func link(l Link) func(*Observation)   { return func(o *Observation) { o.Link = l } }
func turn(o *Observation)              { o.Turns++ }
func detail(d string) func(*Observation) {
	return func(o *Observation) { o.Detail = d }
}
func signal(p PromptID, k SignalKind, text string) func(*Observation) {
	return func(o *Observation) {
		o.Signal = Signal{Prompt: p, Kind: k, Text: text, At: epoch}
		if k == Failed {
			o.Signal.Text, o.Signal.Error = "", text
		}
	}
}

var (
	epoch  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mine   = PromptID("P")
	before = PromptID("the one before")
	linked = Observation{State: Idle, Turns: 7, Link: LinkUp}
	plain  = Observation{State: Idle, Turns: 7, Link: NoLink}
)

// life plays events to a tracker and answers its wishes: it comes back at the moments it
// asks for, and looks succeed unless blind says otherwise. It returns the ending and when it
// came, or nil if nothing but a new event could bring one.
func life(t *testing.T, base Observation, events []event, blind func(at time.Duration) bool) (*Result, time.Duration) {
	t.Helper()
	rules, err := Rules{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var now time.Duration
	tr, o, fresh := track(rules, mine, base, epoch), base, false
	for range 100 + 4*len(events) {
		for len(events) > 0 && events[0].at <= now {
			events[0].change(&o)
			events = events[1:]
		}
		var s step
		tr, s = tr.next(o, epoch.Add(now), fresh)
		fresh = false
		switch {
		case s.end != nil:
			return s.end, now
		case s.look && (blind == nil || !blind(now)):
			fresh = true
			continue
		case s.look:
			s.wake = epoch.Add(now + rules.LookRetry)
		}
		next := time.Duration(-1)
		if !s.wake.IsZero() {
			next = s.wake.Sub(epoch)
		}
		if len(events) > 0 && (next < 0 || events[0].at < next) {
			next = events[0].at
		}
		if next < 0 {
			return nil, now
		}
		if next < now {
			t.Fatalf("asked to come back at %v, it is %v", next, now)
		}
		now = next
	}
	t.Fatal("the tracker spins")
	return nil, 0
}

const (
	sec  = time.Second
	msec = time.Millisecond
)

// never stands for "pending until a deadline".
const never = Status("")

func TestSettlingDecision(t *testing.T) {
	unseen := Observation{State: Unknown}
	for _, test := range []struct {
		name   string
		base   Observation
		events []event
		status Status
		when   time.Duration
		text   string // of the result, or its error
	}{
		// R2: with a link, its signals alone.
		{"R2 a finished signal settles at once", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(5*sec, state(Idle), signal(mine, Finished, "text"))},
			StatusDone, 5 * sec, "text"},
		{"R2 rest without a signal settles nothing while the link is up", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(5*sec, state(Idle))},
			never, 0, ""},
		{"C11 working was never seen, and the signal settles", linked,
			[]event{at(5*sec, signal(mine, Finished, "text"))}, StatusDone, 5 * sec, "text"},
		{"C11 working never goes away, and the signal settles", linked,
			[]event{at(0, state(Working), turn), at(5*sec, signal(mine, Finished, "text"))}, StatusDone, 5 * sec, "text"},
		{"C04 the signal of the prompt before is nothing to us", linked,
			[]event{at(0, signal(before, Finished, "one"), state(Working), turn), at(3*sec, signal(mine, Finished, "two"))},
			StatusDone, 3 * sec, "two"},
		{"C04 nor is its error", linked,
			[]event{at(0, signal(before, Failed, "one"), state(Working), turn), at(3*sec, signal(mine, Finished, "two"))},
			StatusDone, 3 * sec, "two"},
		{"C20 an error signal is a failure, with its message", linked,
			[]event{at(2*sec, state(Idle), signal(mine, Failed, "401: no key"))}, StatusFailed, 2 * sec, "401: no key"},
		{"C20 an error without a message still has one", linked,
			[]event{at(2*sec, signal(mine, Failed, ""))}, StatusFailed, 2 * sec, "the agent failed without saying why"},
		{"R2 a lost link that comes back settles by its signal", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, link(LinkLost), state(Idle)), at(4*sec, link(LinkUp), signal(mine, Finished, "text"))},
			StatusDone, 4 * sec, "text"},
		{"R2 a lost link and rest is not an end: no work was seen since the loss", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, link(LinkLost), state(Idle))},
			never, 0, ""},
		{"R2 work seen since the loss, then rest: R3 applies, after the link's time to come back", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, link(LinkLost), state(Working)), at(3*sec, state(Idle))},
			StatusIdle, 6 * sec, ""},

		// R3: without a link, by state.
		{"C02 idle from before the prompt is no end", plain,
			[]event{at(8*sec, state(Working), turn), at(9*sec, state(Idle))}, StatusIdle, 10 * sec, ""},
		{"C02 no change at all ends as timed out", plain, nil, StatusTimeout, 30 * sec, "no sign of a start within 30s; the text was not sent again"},
		{"C02 a missing baseline is no change", unseen,
			[]event{at(sec, state(Idle), func(o *Observation) { o.Turns = 7 })}, StatusTimeout, 31 * sec, "no sign of a start within 30s; the text was not sent again"},
		{"C02 a missing baseline, then work, then rest", unseen,
			[]event{at(sec, state(Idle)), at(8*sec, state(Working)), at(9*sec, state(Idle))}, StatusIdle, 10 * sec, ""},
		{"R3 a turn that was counted but not seen is work", plain,
			[]event{at(2*sec, turn)}, StatusIdle, 3 * sec, ""},
		{"C56 rest for a blink is a pause", plain,
			[]event{at(0, state(Working), turn), at(4*sec, state(Idle)), at(4500*msec, state(Working)), at(8*sec, state(Idle))},
			StatusIdle, 9 * sec, ""},
		{"C56 a turn too short to be seen starts the hold again", plain,
			[]event{at(0, state(Working), turn), at(4*sec, state(Idle)), at(4900*msec, turn)}, StatusIdle, 5900 * msec, ""},
		{"C19 a prompt does not settle by the rest of the one before", plain,
			[]event{at(0, state(Idle)), at(3*sec, state(Working), turn), at(5*sec, state(Idle))}, StatusIdle, 6 * sec, ""},

		// R5: blocked.
		{"C37 blocked for a blink", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, state(Blocked)), at(2300*msec, state(Working)), at(5*sec, state(Idle), signal(mine, Finished, "text"))},
			StatusDone, 5 * sec, "text"},
		{"C37 blocked and stays", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, state(Blocked))},
			StatusBlocked, 3500 * msec, "the agent waits for an answer in its own place"},
		{"R5 blocked without a link", plain,
			[]event{at(0, state(Working), turn), at(2*sec, state(Blocked))}, StatusBlocked, 3500 * msec, "the agent waits for an answer in its own place"},
		{"C37 never blocked, working for ever", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, ""))}, never, 0, ""},

		// R6: gone.
		{"C25 gone without a word", linked,
			[]event{at(0, state(Working), turn), at(2*sec, state(Gone), detail("pane w8:pY was closed"))},
			StatusFailed, 3 * sec, "the agent is gone: pane w8:pY was closed"},
		{"C25 gone, and the signal is there", linked,
			[]event{at(0, state(Working), turn), at(2*sec, state(Gone), signal(mine, Finished, "text"))}, StatusDone, 2 * sec, "text"},
		{"C25 gone, and the signal comes within the second", linked,
			[]event{at(0, state(Working), turn), at(2*sec, state(Gone)), at(2900*msec, signal(mine, Finished, "text"))}, StatusDone, 2900 * msec, "text"},
		{"R6 gone was only a hint: it is still there", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, state(Gone)), at(2500*msec, state(Working)), at(9*sec, signal(mine, Finished, "text"))},
			StatusDone, 9 * sec, "text"},

		// R7: no sign of a start.
		{"C31 nothing happens after the submission", linked, nil, StatusTimeout, 30 * sec, "no sign of a start within 30s; the text was not sent again"},
		{"C31 the start comes late, and counts", linked,
			[]event{at(29*sec, signal(mine, Started, "")), at(60*sec, signal(mine, Finished, "text"))}, StatusDone, 60 * sec, "text"},
		{"R7 a human's turn is running: the time begins at its end", linked,
			[]event{at(sec, state(Working), turn), at(50*sec, state(Idle))}, StatusTimeout, 80 * sec, "no sign of a start within 30s; the text was not sent again"},
		{"R7 who cannot see cannot say that nothing began", plain,
			[]event{at(sec, state(Unknown)), at(100*sec, state(Idle))}, StatusTimeout, 130 * sec, "no sign of a start within 30s; the text was not sent again"},

		// R10: aborted.
		{"C44 an aborted turn is cancelled, and what follows is nothing to us", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, state(Idle), signal(mine, Aborted, "")), at(3*sec, state(Working), turn)},
			StatusCancelled, 2 * sec, "interrupted in the agent's own place"},
		{"C44 a human's turn after ours leaves our signal", linked,
			[]event{at(0, state(Working), turn, signal(mine, Started, "")), at(2*sec, state(Working), turn, signal(mine, Finished, "ours"))},
			StatusDone, 2 * sec, "ours"},
	} {
		t.Run(test.name, func(t *testing.T) {
			is := is.New(t)
			end, when := life(t, test.base, test.events, nil)
			if test.status == never {
				is.True(end == nil) // only a deadline can end it
				return
			}
			is.True(end != nil) // it ends
			is.Equal(end.Status, test.status)
			is.Equal(when, test.when)
			if end.Status.OK() {
				is.Equal(end.Text, test.text)
			} else {
				is.Equal(end.Error, test.text)
			}
			is.Equal(end.Inferred, end.Status == StatusIdle) // only state is inferred from
		})
	}
}

func TestEndingByStateNeedsALook(t *testing.T) {
	// C53: the reads take their time, and one of them fails: it is asked again.
	is := is.New(t)
	looks := 0
	events := []event{at(0, state(Working), turn), at(2*sec, state(Idle))}
	end, when := life(t, plain, events, func(time.Duration) bool { looks++; return looks < 3 })
	is.Equal(end.Status, StatusIdle)
	is.Equal(when, 5*sec) // the hold of a second, then two looks that failed, a second apart
	is.Equal(looks, 3)
}

func TestSignalCodeWins(t *testing.T) {
	is := is.New(t)
	code := 7
	end, _ := life(t, linked, []event{at(0, func(o *Observation) {
		o.Signal = Signal{Prompt: mine, Kind: Finished, Code: &code}
	})}, nil)
	is.Equal(end.ReturnCode, code)
}

// FuzzSettlingDecision plays any sequence of levels: the tracker never spins, never asks to
// come back in the past, and never takes anything but a signal for a success while the link
// is up.
func FuzzSettlingDecision(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, false)
	f.Add([]byte{0x11, 0x52, 0x93, 0xd4, 0x20}, true)
	f.Fuzz(func(t *testing.T, moves []byte, isLinked bool) {
		base := plain
		if isLinked {
			base = linked
		}
		var events []event
		var now time.Duration
		lost := false
		for _, m := range moves {
			now += time.Duration(m>>5) * 300 * msec
			c := []func(*Observation){state(State(m % 5))}
			if m&0x08 != 0 {
				c = append(c, turn)
			}
			if isLinked && m&0x10 != 0 {
				lost = true
				c = append(c, link(LinkLost))
			}
			events = append(events, at(now, c...))
		}
		end, _ := life(t, base, events, nil)
		if end != nil && end.Status.OK() && isLinked && !lost {
			t.Fatalf("a success without a signal: %+v", end)
		}
	})
}
