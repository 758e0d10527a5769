package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Note is the durable record of one prompt, as lifecycle sees it. Its methods may block. How
// long a result is held back by them is bounded (Rules.NoteLimit); a call that takes longer
// is not cut off.
type Note interface {
	// Path is where it is, for people.
	Path() string
	// Finish records an ending: the one that is about to be published, a detachment
	// (StatusDetached), or later one that came too late (Result.Late).
	Finish(ctx context.Context, r Result) error
	// Text reads back the text that Finish was given.
	Text() (string, error)
}

// ClaimOptions are what may vary from prompt to prompt; the zero value is good.
type ClaimOptions struct {
	Timeout time.Duration // the prompt's deadline, from its submission; default Options.PromptTimeout
}

// Claim is an agent's slot, taken for one prompt that has not been submitted. It must end
// with Submit or Release. A Claim is used by one goroutine.
type Claim struct {
	r    *Registry
	p    *prompt
	over bool
}

// Claim takes the agent's one slot. It looks at the agent first (ruling R8), which may block
// until ctx ends or Rules.LookLimit is over; when it returns an error nothing has happened.
// Errors match [ErrUnknownAgent], [ErrAgentBusy], [ErrAgentBlocked], [ErrAgentClosed],
// [ErrAgentGone], [ErrInvalid], [ErrClosed], or say why the agent could not be looked at.
func (r *Registry) Claim(ctx context.Context, id AgentID, o ClaimOptions) (*Claim, error) {
	limit, err := duration("the prompt's timeout", o.Timeout, r.options.PromptTimeout)
	if err != nil {
		return nil, err
	}
	p, err := r.takeSlot(id, limit)
	if err != nil {
		return nil, err
	}
	if err := r.promptable(ctx, p); err != nil {
		r.forget(p)
		return nil, err
	}
	r.noteLateEnding(p.agent)
	return &Claim{r: r, p: p}, nil
}

func (r *Registry) takeSlot(id AgentID, limit time.Duration) (*prompt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := r.find(id)
	switch {
	case err != nil:
		return nil, err
	case a.closing:
		return nil, fmt.Errorf("%w: %s", ErrAgentClosed, id)
	case a.slot != nil:
		return nil, fmt.Errorf("%w: %s has the unresolved prompt %s", ErrAgentBusy, id, a.slot.id)
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	a.slot = newPrompt(newPromptID(r.scope), a, limit)
	return a.slot, nil
}

// promptable looks at the agent and refuses one that cannot take a prompt now.
func (r *Registry) promptable(ctx context.Context, p *prompt) error {
	ctx, cancel := bind(ctx, p.ending)
	defer cancel()
	o, err := r.look(ctx, p.agent)
	id := p.agent.id
	switch {
	case p.proposal.Load() != nil:
		return p.refusal()
	case err != nil:
		return fmt.Errorf("lifecycle: look at %s before prompting it: %w", id, err)
	case o.State == Gone:
		return fmt.Errorf("%w: %s: %s", ErrAgentGone, id, o.Detail)
	case o.State == Working:
		return fmt.Errorf("%w: %s is at work", ErrAgentBusy, id)
	case o.State == Blocked:
		return fmt.Errorf("%w: %s waits for an answer in its own place", ErrAgentBlocked, id)
	}
	return nil
}

// refusal is the error for a claim that was ended from outside.
func (p *prompt) refusal() error {
	switch end := p.proposal.Load(); end.Status {
	case StatusDetached:
		return ErrClosed
	case StatusCancelled:
		return fmt.Errorf("%w: %s", ErrAgentClosed, p.agent.id)
	default:
		return fmt.Errorf("lifecycle: %s ended before it was submitted: %s", p.id, end.Error)
	}
}

// forget undoes a claim of which nothing is known outside.
func (r *Registry) forget(p *prompt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.agent.slot = nil
	close(p.done)
	r.wg.Done()
}

// ID is the prompt's id.
func (c *Claim) ID() PromptID { return c.p.id }

// Target is the place of the claimed agent.
func (c *Claim) Target() Target { return c.p.agent.target }

// Spec is what the claimed agent was started with.
func (c *Claim) Spec() Spec { return c.p.agent.spec }

// Context returns ctx, ended also when the claim is ended from outside (the agent or the
// registry closed). The work between Claim and Submit should be done under it. cancel must
// be called.
func (c *Claim) Context(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return bind(ctx, c.p.ending)
}

// Note hands over the prompt's note. From here on the prompt is known by its id, and
// whatever becomes of it is recorded in the note.
func (c *Claim) Note(n Note) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.p.note = n
	c.r.prompts[c.p.id] = c.p
}

// Release ends a claim that was not submitted: without a note nothing of it is left, with
// one the prompt is settled as cancelled. After Submit it does nothing, so it can be
// deferred.
func (c *Claim) Release() {
	if c.over {
		return
	}
	c.over = true
	if c.p.note == nil {
		c.r.forget(c.p)
		return
	}
	c.r.abandon(c.p, Result{Status: StatusCancelled, Error: "the prompt was never submitted"})
}

// Submit hands the text to the agent and returns once it was accepted, or refused, or ctx or
// Rules.SubmitLimit ended. From here on one goroutine owns the prompt, and the claim is
// over. When nobody can tell whether the text arrived, Submit returns nil and the prompt is
// observed on (ruling R7). When it returns an error the prompt is settled: cancelled if
// the agent was busy or closed meanwhile, else failed. Errors match [ErrInvalid],
// [ErrAgentBusy], [ErrAgentGone], [ErrAgentClosed], [ErrClosed], or are the Herdr's.
func (c *Claim) Submit(ctx context.Context, text string) error {
	if err := CheckText(text); err != nil {
		return err
	}
	if c.over {
		return fmt.Errorf("%w: the claim of %s is over", ErrInvalid, c.p.id)
	}
	c.over = true
	r, p := c.r, c.p
	base, _ := r.herdr.Observe(p.agent.target)
	now := r.options.Clock.Now()
	r.mu.Lock()
	p.submitted = now
	r.prompts[p.id] = p
	r.mu.Unlock()

	err := r.send(ctx, p, text)
	switch {
	case err == nil, errors.Is(err, ErrOutcomeUnknown):
		if err != nil {
			r.options.Logger.Warn("submission with unknown outcome", "prompt", p.id, "agent", p.agent.id, "err", err)
		}
		go r.own(p, track(r.options.Rules, p.id, base, now))
		return nil
	case p.proposal.Load() != nil:
		r.abandon(p, Result{})
		return p.refusal()
	case errors.Is(err, ErrAgentBusy):
		r.abandon(p, Result{Status: StatusCancelled, Error: err.Error()})
	default:
		r.abandon(p, Result{Status: StatusFailed, Error: err.Error()})
	}
	return fmt.Errorf("lifecycle: submit %s to %s: %w", p.id, p.agent.id, err)
}

// send calls the port once. A proposed end cuts it short.
func (r *Registry) send(ctx context.Context, p *prompt, text string) error {
	if p.proposal.Load() != nil {
		return ErrAgentClosed
	}
	ctx, unbind := bind(ctx, p.ending)
	defer unbind()
	ctx, cancel := context.WithTimeout(ctx, r.options.Rules.SubmitLimit)
	defer cancel()
	return r.herdr.Submit(ctx, p.agent.target, Submission{Prompt: p.id, Text: text})
}

// CheckText reports why a text cannot be a prompt: it is blank, is not valid UTF-8, or holds
// a zero byte. The error matches [ErrInvalid].
func CheckText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%w: the message is empty", ErrInvalid)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: the message is not valid UTF-8", ErrInvalid)
	case strings.Contains(text, "\x00"):
		return fmt.Errorf("%w: the message holds a zero byte", ErrInvalid)
	}
	return nil
}
