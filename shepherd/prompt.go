package shepherd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/notes"
)

// Order is one prompt of a fan-out.
type Order struct {
	Agent   AgentID
	Text    string        // what the agent is told, byte for byte; the note's context follows it
	Timeout time.Duration // the prompt's deadline, from its submission; default Config.PromptTimeout
}

// Prompt is what was submitted.
type Prompt struct {
	ID              PromptID
	Agent           AgentID
	NotePath        string // absolute
	NoteRelPath     string // from the project, slash-separated
	SessionName     string
	SessionPath     string // absolute
	SessionRelative string // from the project, slash-separated
}

// Prompt submits text to an agent and returns once the agent has accepted it; nothing waits
// for the answer. The prompt's note is reserved before anything is submitted and finished
// before the result is published, so whoever learns of the result can read it. ctx bounds
// the submission only: closing the agent is what stops the work.
//
// Errors match [ErrInvalid], [ErrUnknownAgent], [ErrAgentBusy], [ErrAgentBlocked],
// [ErrAgentClosed], [ErrAgentGone], [ErrClosed], or are the Herdr's, or the disk's when the
// note cannot be reserved; then nothing was submitted. A submission that was refused leaves
// a note that says so. Where nobody can tell whether the text arrived there is no error: the
// prompt is observed on and never sent again (ruling R7).
func (s *Shepherd) Prompt(ctx context.Context, agent AgentID, text string) (Prompt, error) {
	prompts, err := s.PromptAll(ctx, Order{Agent: agent, Text: text})
	if len(prompts) == 0 {
		return Prompt{}, err
	}
	return prompts[0], err
}

// PromptAll submits a fan-out: every agent is claimed, then every note is reserved, in one
// transaction, before any text is submitted. If a claim or the reservation fails, nothing is
// submitted and no prompt is returned. Refused submissions are joined into the error; their
// prompts are settled, and all prompts are returned in the order given. Otherwise it is like
// [Shepherd.Prompt].
func (s *Shepherd) PromptAll(ctx context.Context, orders ...Order) ([]Prompt, error) {
	if len(orders) == 0 {
		return nil, fmt.Errorf("%w: no orders", ErrInvalid)
	}
	for _, o := range orders {
		if err := lifecycle.CheckText(o.Text); err != nil {
			return nil, fmt.Errorf("shepherd: prompt %s: %w", o.Agent, err)
		}
	}
	session, err := s.bind(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := s.claim(ctx, orders)
	if err != nil {
		return nil, err
	}
	defer release(claims)
	reserved, err := s.reserve(ctx, session, claims, orders)
	if err != nil {
		return nil, err
	}
	prompts := make([]Prompt, len(orders))
	for i, c := range claims {
		c.Note(record{reserved[i]})
		prompts[i] = Prompt{
			ID: c.ID(), Agent: orders[i].Agent, NotePath: reserved[i].Path(), NoteRelPath: reserved[i].RelPath(),
			SessionName: session.Name(), SessionPath: session.Path(), SessionRelative: session.RelPath(),
		}
	}
	return prompts, submit(ctx, claims, reserved, orders)
}

// claim takes the agents' slots, all or none.
func (s *Shepherd) claim(ctx context.Context, orders []Order) ([]*lifecycle.Claim, error) {
	var claims []*lifecycle.Claim
	for _, o := range orders {
		c, err := s.agents.Claim(ctx, o.Agent, lifecycle.ClaimOptions{Timeout: o.Timeout})
		if err != nil {
			release(claims)
			return nil, err
		}
		claims = append(claims, c)
	}
	return claims, nil
}

func release(claims []*lifecycle.Claim) {
	for _, c := range claims {
		c.Release()
	}
}

// reserve reserves the notes of all claims in one transaction. It gives up when ctx ends,
// an agent is closed, or a note may not take any longer (Rules.NoteLimit); what the disk
// then reserves all the same is ended as cancelled.
func (s *Shepherd) reserve(ctx context.Context, session *notes.Session, claims []*lifecycle.Claim, orders []Order) ([]*notes.Note, error) {
	plans := make([]notes.Plan, len(claims))
	for i, c := range claims {
		plans[i] = plan(c, orders[i])
		var cancel context.CancelFunc
		ctx, cancel = c.Context(ctx)
		defer cancel()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.agents.Rules().NoteLimit, errors.New("the disk does not answer"))
	defer cancel()

	type reservation struct {
		notes []*notes.Note
		err   error
	}
	done, givenUp := make(chan reservation), make(chan struct{})
	s.wg.Go(func() {
		reserved, err := session.ReserveAll(ctx, plans)
		select {
		case done <- reservation{reserved, err}:
		case <-givenUp:
			s.withdraw(reserved)
		}
	})
	var r reservation
	select {
	case r = <-done:
	case <-ctx.Done():
		close(givenUp)
		r.err = context.Cause(ctx)
	}
	if r.err == nil {
		return r.notes, nil
	}
	if ctx.Err() != nil {
		r.err = context.Cause(ctx) // says why: the agent was closed, the disk does not answer
	}
	return nil, fmt.Errorf("shepherd: reserve in %s: %w (nothing was submitted)", session.RelPath(), r.err)
}

// withdraw ends notes whose reservation came too late.
func (s *Shepherd) withdraw(late []*notes.Note) {
	for _, n := range late {
		o := notes.Outcome{Status: notes.Cancelled, ReturnCode: lifecycle.StatusCancelled.ReturnCode(), Error: "the prompt was never submitted: its note came too late"}
		if err := n.Finalize(context.Background(), o); err != nil {
			s.config.Logger.Error("late note not finished", "note", n.RelPath(), "err", err)
		}
	}
}

// submit sends all texts side by side, each with its note's context after it.
func submit(ctx context.Context, claims []*lifecycle.Claim, reserved []*notes.Note, orders []Order) error {
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	for i, c := range claims {
		wg.Go(func() { errs[i] = c.Submit(ctx, orders[i].Text+"\n\n"+reserved[i].Brief()) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
