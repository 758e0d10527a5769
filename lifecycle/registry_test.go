package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/lifecycle/lifecycletest"
)

type statuses = []lifecycle.Status

func TestPromptSettlesOnceWithItsNoteFinishedFirst(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, n := r.prompt(agent, lifecycle.ClaimOptions{})
		n.before = func(context.Context) error {
			_, published := r.Result(p)
			r.True(!published) // whoever learns of a result can read its note
			return nil
		}
		a.Finish("found it")
		got := r.result(p)
		r.Equal(got.Status, lifecycle.StatusDone)
		r.Equal(got.Text, "found it")
		r.Equal(got.PromptID, p)
		r.Equal(got.AgentID, agent)
		r.Equal(got.Agent, "scout")
		r.Equal(got.NotePath, n.Path())
		r.Equal(n.statuses(), statuses{lifecycle.StatusDone})
		r.Equal(r.result(p).Text, got.Text) // a later wait gets the same
		err := r.claimable(agent)
		r.NoErr(err) // the slot is free
	})
}

func TestC13SecondAndThirdPromptToOneAgentHaveTheirOwnResults(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		for _, want := range []string{"one", "two"} {
			p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
			a.Finish(want)
			r.Equal(r.result(p).Text, want)
		}
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		a.Fail("three")
		r.Equal(r.result(p).Error, "three")
	})
}

func TestC34BusyAgentIsRefusedAndNothingIsRegistered(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		err := r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrAgentBusy))
		r.True(strings.Contains(err.Error(), string(p))) // says with what
		a.Finish("")
		r.result(p)

		a.Human()
		err = r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrAgentBusy)) // a human's turn
		a.Block()
		err = r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrAgentBlocked))
		a.Exit("exit status 1")
		err = r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrAgentGone))
		r.Equal(len(a.Prompts()), 1)
	})
}

func TestBusyOnlyAtSubmitCancelsTheReservedNote(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		c, err := r.Registry.Claim(r.Context(), agent, lifecycle.ClaimOptions{})
		r.NoErr(err)
		n := &note{}
		c.Note(n)
		a.Human()
		err = c.Submit(r.Context(), "x")
		r.True(errors.Is(err, lifecycle.ErrAgentBusy))
		r.Equal(n.statuses(), statuses{lifecycle.StatusCancelled})
		r.Equal(r.result(c.ID()).Status, lifecycle.StatusCancelled)
	})
}

func TestRefusedSubmissionSettlesAsFailed(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		r.mem.OnSubmit = func(*lifecycletest.Agent, lifecycle.Submission) error { return errors.New("no such model") }
		agent, _ := r.start("scout")
		c, err := r.Registry.Claim(r.Context(), agent, lifecycle.ClaimOptions{})
		r.NoErr(err)
		n := &note{}
		c.Note(n)
		err = c.Submit(r.Context(), "x")
		r.True(strings.Contains(err.Error(), "no such model"))
		r.Equal(n.statuses(), statuses{lifecycle.StatusFailed})
	})
}

func TestUnknownOutcomeIsObservedOnAndNeverSentTwice(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		r.faults.Choose = func(op lifecycletest.Op, n int) lifecycletest.Fault {
			if op == lifecycletest.Submit {
				return lifecycletest.Fault{Err: lifecycle.ErrOutcomeUnknown, After: n == 1}
			}
			return lifecycletest.Fault{}
		}
		arrived, a := r.start("arrived")
		p, _ := r.prompt(arrived, lifecycle.ClaimOptions{})
		time.Sleep(8 * time.Second)
		a.Finish("after all")
		r.Equal(r.result(p).Text, "after all")

		lost, b := r.start("lost")
		p, _ = r.prompt(lost, lifecycle.ClaimOptions{})
		began := time.Now()
		got := r.result(p)
		r.Equal(got.Status, lifecycle.StatusTimeout)
		r.True(strings.Contains(got.Error, "no sign of a start"))
		r.Equal(time.Since(began), 30*time.Second)
		r.Equal(len(b.Prompts()), 0) // Verify fails the test if it was sent again
	})
}

func TestDeadlineLooksOnceMore(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, n := r.prompt(agent, lifecycle.ClaimOptions{Timeout: time.Minute})
		began := time.Now()
		got := r.result(p)
		r.Equal(got.Status, lifecycle.StatusTimeout)
		r.Equal(got.ReturnCode, 124)
		r.Equal(time.Since(began), time.Minute)
		r.Equal(n.statuses(), statuses{lifecycle.StatusTimeout})
		a.Finish("too late")

		// A look at the deadline finds that the agent has finished: it wins.
		r.faults.Choose = func(op lifecycletest.Op, _ int) lifecycletest.Fault {
			if op == lifecycletest.Look && time.Since(began) > 90*time.Second {
				a.Finish("just in time")
			}
			return lifecycletest.Fault{}
		}
		p, _ = r.prompt(agent, lifecycle.ClaimOptions{Timeout: time.Minute})
		r.Equal(r.result(p).Text, "just in time")
	})
}

func TestLateEndingIsAddedToTheNoteAndNobodyIsTold(t *testing.T) {
	for _, touch := range []string{"claim", "close"} {
		bubble(t, lifecycle.Options{}, func(r *rig) {
			agent, a := r.start("scout")
			p, n := r.prompt(agent, lifecycle.ClaimOptions{Timeout: time.Minute})
			r.result(p)
			told := 0
			r.NoErr(r.AfterDone(p, func() { told++ }))
			a.Finish("late")
			switch touch {
			case "claim":
				err := r.claimable(agent)
				r.NoErr(err)
			case "close":
				r.NoErr(r.CloseAgent(r.Context(), agent))
			}
			r.Equal(n.statuses(), statuses{lifecycle.StatusTimeout, lifecycle.StatusDone})
			r.True(n.ends[1].Late)
			r.Equal(n.ends[1].Text, "late")
			r.Equal(r.result(p).Status, lifecycle.StatusTimeout) // the first ending is final
			r.Equal(told, 1)
			r.NoErr(r.CloseAgent(r.Context(), agent))
			r.Equal(len(n.statuses()), 2) // once
		})
	}
}

func TestC37LateDoneAfterBlockedIsNoSecondResult(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		a.Block()
		r.Equal(r.result(p).Status, lifecycle.StatusBlocked)
		err := r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrAgentBlocked))
		a.Work()
		a.Finish("answered")
		r.Equal(r.result(p).Status, lifecycle.StatusBlocked)
		p2, _ := r.prompt(agent, lifecycle.ClaimOptions{}) // promptable again
		synctest.Wait()
		_, settled := r.Result(p2)
		r.True(!settled) // the late done was only a baseline
	})
}

func TestC29CancelledWaitCancelsNothing(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		_, err := r.Registry.Wait(ctx, p)
		r.True(errors.Is(err, context.DeadlineExceeded))
		s, err := r.Registry.Status(agent)
		r.NoErr(err)
		r.Equal(s.State, lifecycle.Working)
		r.Equal(s.PromptID, p)
		a.Finish("undisturbed")
		r.Equal(r.result(p).Text, "undisturbed")
	})
}

func TestWaitAnswersEachIDInItsPlace(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		one, a := r.start("one")
		two, b := r.start("two")
		p, _ := r.prompt(one, lifecycle.ClaimOptions{})
		q, _ := r.prompt(two, lifecycle.ClaimOptions{})
		go func() {
			time.Sleep(time.Second)
			b.Fail("no")
			time.Sleep(time.Second)
			a.Finish("yes")
		}()
		bad := lifecycle.PromptID(one)
		got, err := r.Registry.Wait(r.Context(), p, bad, q, p)
		r.NoErr(err)
		r.Equal(len(got), 4)
		r.Equal(got[0].Text, "yes")
		r.Equal(got[1].PromptID, bad) // the bad id, in its place
		r.Equal(got[1].Status, lifecycle.StatusFailed)
		r.True(strings.Contains(got[1].Error, "another kind"))
		r.Equal(got[2].Error, "no")
		r.Equal(got[3].Text, "yes")
		again, _ := r.Result(p)
		r.True(again.Waited)

		_, err = r.Registry.Wait(r.Context())
		r.True(errors.Is(err, lifecycle.ErrInvalid))
	})
}

func TestWaitTimeoutSettlesForEverybodyUnlessItKeeps(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		one, a := r.start("one")
		two, _ := r.start("two")
		p, n := r.prompt(one, lifecycle.ClaimOptions{})
		q, _ := r.prompt(two, lifecycle.ClaimOptions{})
		began := time.Now()
		got, err := r.WaitFor(r.Context(), lifecycle.WaitOptions{Timeout: time.Minute, Keep: true}, p, q)
		r.NoErr(err)
		for _, g := range got {
			r.Equal(g.Status, lifecycle.StatusTimeout)
			r.True(g.Running)
		}
		_, settled := r.Result(p)
		r.True(!settled) // it goes on
		a.Finish("kept")
		got, err = r.WaitFor(r.Context(), lifecycle.WaitOptions{Timeout: time.Minute}, p, q)
		r.NoErr(err)
		r.Equal(got[0].Text, "kept")
		r.Equal(got[1].Status, lifecycle.StatusTimeout)
		r.True(!got[1].Running)
		r.Equal(time.Since(began), 2*time.Minute) // both timers ran side by side, not one after the other
		final, settled := r.Result(q)
		r.True(settled) // for everybody
		r.Equal(final.Status, lifecycle.StatusTimeout)
		r.Equal(n.statuses(), statuses{lifecycle.StatusDone})
	})
}

func TestWaitsDefaultIsTwentyMinutes(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, _ := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		began := time.Now()
		r.Equal(r.result(p).Status, lifecycle.StatusTimeout)
		r.Equal(time.Since(began), 20*time.Minute)
	})
}

func TestCloseAgentCancelsFinishesTheNoteAndIsIdempotent(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, n := r.prompt(agent, lifecycle.ClaimOptions{})
		r.NoErr(r.CloseAgent(r.Context(), agent))
		r.Equal(n.statuses(), statuses{lifecycle.StatusCancelled}) // before it returned
		got := r.result(p)
		r.Equal(got.Status, lifecycle.StatusCancelled)
		r.Equal(got.ReturnCode, 130)
		r.NoErr(r.CloseAgent(r.Context(), agent))
		r.Equal(a.Closed(), 1)
		err := r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrAgentClosed))
		err = r.CloseAgent(r.Context(), "shepherd-agent-somebody-elses")
		r.True(errors.Is(err, lifecycle.ErrUnknownAgent)) // what we did not start
		s, err := r.Registry.Status(agent)
		r.NoErr(err)
		r.True(s.Closed)
	})
}

func TestC25ClosingWhatIsGoneChangesNoResultAndOtherErrorsArePassedOn(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		a.Exit("pane w1:p2 was closed")
		got := r.result(p)
		r.Equal(got.Status, lifecycle.StatusFailed)
		r.True(strings.Contains(got.Error, "w1:p2"))
		broken := errors.New("server says no")
		r.faults.Choose = func(op lifecycletest.Op, n int) lifecycletest.Fault {
			if op == lifecycletest.Close && n == 1 {
				return lifecycletest.Fault{Err: broken}
			}
			return lifecycletest.Fault{}
		}
		r.True(errors.Is(r.CloseAgent(r.Context(), agent), broken))
		r.NoErr(r.CloseAgent(r.Context(), agent)) // it can be tried again
		again := r.result(p)
		again.Waited = got.Waited
		r.Equal(again, got)
	})
}

func TestCloseDuringEachStepLeavesNothingStuck(t *testing.T) {
	for _, test := range []struct {
		step string
		op   lifecycletest.Op
	}{{"the look of a claim", lifecycletest.Look}, {"the submission", lifecycletest.Submit}} {
		t.Run(test.step, func(t *testing.T) {
			bubble(t, lifecycle.Options{}, func(r *rig) {
				agent, _ := r.start("scout")
				r.faults.Choose = func(op lifecycletest.Op, _ int) lifecycletest.Fault {
					return lifecycletest.Fault{Hang: op == test.op}
				}
				n := &note{}
				errs := make(chan error)
				go func() {
					c, err := r.Registry.Claim(r.Context(), agent, lifecycle.ClaimOptions{})
					if err == nil {
						c.Note(n)
						err = c.Submit(r.Context(), "x")
					}
					errs <- err
				}()
				synctest.Wait()
				began := time.Now()
				r.NoErr(r.CloseAgent(r.Context(), agent))
				r.True(errors.Is(<-errs, lifecycle.ErrAgentClosed))
				r.Equal(time.Since(began), time.Duration(0)) // nobody waited for a limit
				if test.op == lifecycletest.Submit {
					r.Equal(n.statuses(), statuses{lifecycle.StatusCancelled})
				}
			})
		})
	}
	t.Run("the reservation", func(t *testing.T) {
		bubble(t, lifecycle.Options{}, func(r *rig) {
			agent, _ := r.start("scout")
			c, err := r.Registry.Claim(r.Context(), agent, lifecycle.ClaimOptions{})
			r.NoErr(err)
			ctx, cancel := c.Context(r.Context())
			defer cancel()
			closed := make(chan error)
			go func() { closed <- r.CloseAgent(r.Context(), agent) }()
			<-ctx.Done() // the one who reserves hears of it
			n := &note{}
			c.Note(n) // it was too late to stop it
			r.True(errors.Is(c.Submit(r.Context(), "x"), lifecycle.ErrAgentClosed))
			r.NoErr(<-closed)
			r.Equal(n.statuses(), statuses{lifecycle.StatusCancelled})
		})
	})
	t.Run("the settling, with a disk that hangs", func(t *testing.T) {
		bubble(t, lifecycle.Options{}, func(r *rig) {
			agent, a := r.start("scout")
			p, n := r.prompt(agent, lifecycle.ClaimOptions{})
			free := make(chan struct{})
			n.before = func(context.Context) error { <-free; return nil } // deaf to its ctx
			began := time.Now()
			a.Finish("text")
			synctest.Wait()
			r.NoErr(r.CloseAgent(r.Context(), agent))
			r.Equal(time.Since(began), 10*time.Second) // NoteLimit, and no more
			got := r.result(p)
			r.Equal(got.Status, lifecycle.StatusDone) // decided before the close
			r.True(got.NoteErr != nil)
			close(free)
		})
	})
	t.Run("the launch", func(t *testing.T) {
		for name, herdr := range map[string]func(*lifecycletest.Herdr) lifecycle.Herdr{
			"that heeds its ctx": func(h *lifecycletest.Herdr) lifecycle.Herdr {
				return &lifecycletest.Faults{Herdr: h, Choose: func(lifecycletest.Op, int) lifecycletest.Fault { return lifecycletest.Fault{Hang: true} }}
			},
			"that succeeds all the same": func(h *lifecycletest.Herdr) lifecycle.Herdr { return lateLaunch{h} },
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					is, mem := is.New(t), &lifecycletest.Herdr{}
					reg, err := lifecycle.New(herdr(mem), lifecycle.Options{})
					is.NoErr(err)
					errs := make(chan error)
					go func() {
						_, err := reg.Start(context.Background(), lifecycle.Spec{Name: "scout"})
						errs <- err
					}()
					synctest.Wait()
					closed := make(chan error)
					go func() { closed <- reg.Close(context.Background()) }()
					is.True(errors.Is(<-errs, lifecycle.ErrClosed))
					is.NoErr(<-closed)
					is.Equal(len(reg.Agents()), 0)
					for _, a := range mem.Agents() {
						is.Equal(a.Closed(), 1) // nothing of it is left
					}
				})
			})
		}
	})
}

// lateLaunch launches although its ctx has ended.
type lateLaunch struct{ *lifecycletest.Herdr }

func (l lateLaunch) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	<-ctx.Done()
	return l.Herdr.Launch(context.Background(), s)
}

func TestRegistryCloseDetaches(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, n := r.prompt(agent, lifecycle.ClaimOptions{})
		other, b := r.start("other")
		q, _ := r.prompt(other, lifecycle.ClaimOptions{})
		b.Finish("settled before")
		r.result(q)
		waited := make(chan error)
		go func() { _, err := r.Registry.Wait(context.Background(), q, p); waited <- err }()
		synctest.Wait()
		r.close()
		r.True(errors.Is(<-waited, lifecycle.ErrClosed))
		r.Equal(n.statuses(), statuses{lifecycle.StatusDetached})
		r.Equal(a.Closed(), 0) // its agent is left alone
		_, settled := r.Result(p)
		r.True(!settled) // not declared to be anything
		got, settled := r.Result(q)
		r.True(settled) // results stay readable
		r.Equal(got.Text, "settled before")
		_, err := r.Registry.Start(context.Background(), lifecycle.Spec{Name: "late"})
		r.True(errors.Is(err, lifecycle.ErrClosed))
		err = r.claimable(agent)
		r.True(errors.Is(err, lifecycle.ErrClosed))
	})
}

func TestRegistryCloseIsBoundedByItsContext(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		_, n := r.prompt(agent, lifecycle.ClaimOptions{})
		free := make(chan struct{})
		n.before = func(context.Context) error { <-free; return nil }
		a.Finish("text")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		r.True(errors.Is(r.Registry.Close(ctx), context.DeadlineExceeded))
		close(free)
	})
}

func TestNoteThatCannotBeWrittenIsAttachedAndHoldsNothingUp(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, n := r.prompt(agent, lifecycle.ClaimOptions{})
		full := errors.New("no space left on device")
		n.before = func(context.Context) error { return full }
		a.Finish("text")
		got := r.result(p)
		r.Equal(got.Text, "text")
		r.True(errors.Is(got.NoteErr, full))
	})
}

func TestInferredEndingAsksForTheLastMessage(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		r.mem.NoLink = true
		agent, a := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		a.SetReply("what the screen shows")
		a.Rest()
		got := r.result(p)
		r.Equal(got.Status, lifecycle.StatusIdle)
		r.True(got.Inferred)
		r.Equal(got.Text, "what the screen shows")
	})
}

func TestOldTextsAreReadFromTheirNotes(t *testing.T) {
	bubble(t, lifecycle.Options{KeepTexts: 2}, func(r *rig) {
		agent, a := r.start("scout")
		var ids []lifecycle.PromptID
		for _, text := range []string{"one", "two", "three"} {
			p, n := r.prompt(agent, lifecycle.ClaimOptions{})
			a.Finish(text)
			r.result(p)
			ids = append(ids, p)
			if text == "one" {
				n.mu.Lock()
				n.ends[0].Text = "one, from the note" // so that it can be told where it comes from
				n.mu.Unlock()
			}
		}
		r.Equal(r.result(ids[0]).Text, "one, from the note")
		r.Equal(r.result(ids[1]).Text, "two")
		r.Equal(r.result(ids[2]).Text, "three")
	})
}

func TestAgentsAtOnceAreLimited(t *testing.T) {
	bubble(t, lifecycle.Options{MaxAgents: 2}, func(r *rig) {
		one, _ := r.start("one")
		_, two := r.start("two")
		_, err := r.Registry.Start(r.Context(), lifecycle.Spec{Name: "three"})
		r.True(errors.Is(err, lifecycle.ErrTooManyAgents))
		r.True(strings.Contains(err.Error(), "at most 2"))
		r.NoErr(r.CloseAgent(r.Context(), one))
		r.start("three") // a closed one makes room
		two.Exit("exit status 1")
		r.start("four") // and so does one that has ended
	})
}

func TestLimitHoldsForStartsAtOnce(t *testing.T) {
	bubble(t, lifecycle.Options{MaxAgents: 3}, func(r *rig) {
		r.faults.Choose = func(op lifecycletest.Op, _ int) lifecycletest.Fault {
			return lifecycletest.Fault{Delay: time.Second}
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		ok := 0
		for range 10 {
			wg.Go(func() {
				if _, err := r.Registry.Start(r.Context(), lifecycle.Spec{Name: "x"}); err == nil {
					mu.Lock()
					ok++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		r.Equal(ok, 3)
	})
}

func TestLabelIsTakenUntilItsAgentEnds(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		spec := lifecycle.Spec{Name: "scout", Label: "auth"}
		id, err := r.Registry.Start(r.Context(), spec)
		r.NoErr(err)
		_, err = r.Registry.Start(r.Context(), spec)
		r.True(errors.Is(err, lifecycle.ErrLabelTaken))
		r.NoErr(r.CloseAgent(r.Context(), id))
		_, err = r.Registry.Start(r.Context(), spec)
		r.NoErr(err)
	})
}

func TestFailedStartLeavesNothing(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		r.mem.OnLaunch = func(lifecycle.Spec) error { return errors.New("no such program: pj") }
		_, err := r.Registry.Start(r.Context(), lifecycle.Spec{Name: "scout", Label: "auth"})
		r.True(strings.Contains(err.Error(), "scout: auth"))
		r.True(strings.Contains(err.Error(), "no such program: pj"))
		r.Equal(len(r.Registry.Agents()), 0)
	})
}

func TestStatusSaysWhereAnAgentStands(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		started := time.Now()
		time.Sleep(time.Minute)
		s, err := r.Registry.Status(agent)
		r.NoErr(err)
		r.Equal(s.State, lifecycle.Idle)
		r.True(s.Since.Equal(started))
		r.Equal(s.PromptID, lifecycle.PromptID(""))
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		submitted := time.Now()
		time.Sleep(time.Minute)
		s, err = r.Registry.Status(agent)
		r.NoErr(err)
		r.Equal(s.State, lifecycle.Working)
		r.Equal(s.PromptID, p)
		r.True(s.Submitted.Equal(submitted))
		r.True(s.Seen.Equal(submitted)) // nothing was heard of it since
		a.Finish("")
		r.result(p)
		all := r.Registry.Agents()
		r.Equal(len(all), 1)
		r.Equal(all[0].State, lifecycle.Idle)
	})
}

type talking struct{ *lifecycletest.Herdr }

func (talking) Recent(_ context.Context, t lifecycle.Target) (string, error) {
	return "said in " + string(t), nil
}

func TestRecentOutputIsOptional(t *testing.T) {
	for _, test := range []struct {
		herdr lifecycle.Herdr
		text  string
		err   error
	}{
		{&lifecycletest.Herdr{}, "", errors.ErrUnsupported},
		{talking{&lifecycletest.Herdr{}}, "said in mem:1", nil},
	} {
		is := is.New(t)
		reg, err := lifecycle.New(test.herdr, lifecycle.Options{})
		is.NoErr(err)
		id, err := reg.Start(t.Context(), lifecycle.Spec{Name: "scout"})
		is.NoErr(err)
		text, err := reg.Recent(t.Context(), id)
		is.True(errors.Is(err, test.err))
		is.Equal(text, test.text)
		_, err = reg.Recent(t.Context(), "mem:1")
		is.True(errors.Is(err, lifecycle.ErrUnknownAgent))
	}
}

func TestBadInputIsRefusedByName(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		for name, spec := range map[string]lifecycle.Spec{
			"name is empty":            {Name: "  "},
			"name holds a character":   {Name: "a\x1b[31m"},
			"label has 65 characters":  {Name: "a", Label: strings.Repeat("ä", 65)},
			"label holds a character":  {Name: "a", Label: "two\nlines"},
			"name is not valid UTF-8":  {Name: "a\xff"},
			"directory is not absolut": {Name: "a", Dir: "work"},
			`variable "A=B"`:           {Name: "a", Env: map[string]string{"A=B": "c"}},
			"holds a zero byte":        {Name: "a", Args: []string{"x\x00"}},
		} {
			_, err := r.Registry.Start(r.Context(), spec)
			r.True(errors.Is(err, lifecycle.ErrInvalid))
			if !strings.Contains(err.Error(), name) {
				r.Errorf("%q does not say %q", err, name)
			}
		}
		r.Equal(len(r.mem.Agents()), 0)

		agent, a := r.start("scout")
		for _, text := range []string{"", " \n\t ", "\xff", "a\x00b"} {
			c, err := r.Registry.Claim(r.Context(), agent, lifecycle.ClaimOptions{})
			r.NoErr(err)
			r.True(errors.Is(c.Submit(r.Context(), text), lifecycle.ErrInvalid))
			c.Release()
		}
		_, err := r.Registry.Claim(r.Context(), agent, lifecycle.ClaimOptions{Timeout: -1})
		r.True(errors.Is(err, lifecycle.ErrInvalid))
		_, err = r.WaitFor(r.Context(), lifecycle.WaitOptions{Timeout: -1}, "x")
		r.True(errors.Is(err, lifecycle.ErrInvalid))
		r.Equal(len(a.Prompts()), 0)

		for id, says := range map[lifecycle.AgentID]string{
			"":                             "empty",
			"w8:pY":                        "malformed",
			lifecycle.AgentID(" " + agent): "malformed",
			"shepherd-prompt-12345678-1b4e28ba-2fa1-41d2-883f-0016d3cca427": "another kind (prompt)",
			"shepherd-agent-12345678-1b4e28ba-2fa1-41d2-883f-0016d3cca427":  "does not belong",
		} {
			_, err := r.Registry.Status(id)
			r.True(errors.Is(err, lifecycle.ErrUnknownAgent))
			if !strings.Contains(err.Error(), says) {
				r.Errorf("%q does not say %q", err, says)
			}
		}
	})
	for _, o := range []lifecycle.Options{{MaxAgents: -1}, {WaitTimeout: -1}, {Rules: lifecycle.Rules{RestHold: -1}}} {
		if _, err := lifecycle.New(&lifecycletest.Herdr{}, o); !errors.Is(err, lifecycle.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := lifecycle.New(nil, lifecycle.Options{}); !errors.Is(err, lifecycle.ErrInvalid) {
		t.Errorf("nil Herdr: %v", err)
	}
}

func TestNothingWakesWhileNothingChanges(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		for range 10 {
			agent, _ := r.start("x")
			r.prompt(agent, lifecycle.ClaimOptions{Timeout: 24 * time.Hour})
		}
		synctest.Wait()
		observed, looks := r.verify.Observed(), r.faults.Calls(lifecycletest.Look)
		time.Sleep(12 * time.Hour)
		r.Equal(r.verify.Observed(), observed)             // nobody woke up to look at a level
		r.Equal(r.faults.Calls(lifecycletest.Look), looks) // and nobody asked the source
	})
}

func TestC53SlowAndFailingLooksSettleOnce(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		r.mem.NoLink = true
		agent, a := r.start("scout")
		p, n := r.prompt(agent, lifecycle.ClaimOptions{})
		r.faults.Choose = func(op lifecycletest.Op, n int) lifecycletest.Fault {
			if op != lifecycletest.Look {
				return lifecycletest.Fault{}
			}
			if n == 3 {
				return lifecycletest.Fault{Err: errors.New("a passing error")}
			}
			return lifecycletest.Fault{Delay: 3 * time.Second}
		}
		a.Rest()
		r.Equal(r.result(p).Status, lifecycle.StatusIdle)
		time.Sleep(time.Hour)
		r.Equal(n.statuses(), statuses{lifecycle.StatusIdle})
	})
}

func TestAfterFunctionsRunOnceEach(t *testing.T) {
	bubble(t, lifecycle.Options{}, func(r *rig) {
		agent, a := r.start("scout")
		p, _ := r.prompt(agent, lifecycle.ClaimOptions{})
		calls := make(chan string, 10)
		r.NoErr(r.AfterDone(p, func() { calls <- "before" }))
		a.Finish("")
		r.result(p)
		r.NoErr(r.AfterDone(p, func() { calls <- "after" }))
		r.Equal(<-calls, "before")
		r.Equal(<-calls, "after")
		r.Equal(len(calls), 0)
		r.True(errors.Is(r.AfterDone("shepherd-prompt-x", func() { t.Error("run") }), lifecycle.ErrUnknownPrompt))
	})
}
