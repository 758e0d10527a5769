package lifecycle

import (
	"context"
	"fmt"
)

// settle turns a decided end into a published one: text, note, slot, publication, in this
// order. Whoever owns the prompt calls it, once.
func (r *Registry) settle(p *prompt, end Result) {
	defer r.wg.Done()
	res := r.complete(p, end)
	if res.Inferred && res.Text == "" {
		res.Text = r.reply(p)
	}
	if p.note != nil {
		res.NoteErr = r.finish(p, res)
	}
	r.publish(p, res)
}

// abandon settles a prompt that nobody observes: it was not submitted. An end that was
// proposed meanwhile goes first.
func (r *Registry) abandon(p *prompt, end Result) {
	p.propose(proposal{Result: end})
	end = p.proposal.Load().Result
	if end.Status == StatusDetached {
		end = Result{Status: StatusCancelled, Error: "the parent ended before the prompt was submitted"}
	}
	r.settle(p, end)
}

// complete adds to an end what is known of its prompt.
func (r *Registry) complete(p *prompt, res Result) Result {
	a := p.agent
	res.PromptID, res.AgentID, res.Agent, res.Label = p.id, a.id, a.spec.Name, a.spec.Label
	if p.note != nil {
		res.NotePath = p.note.Path()
	}
	if res.ReturnCode == 0 {
		res.ReturnCode = res.Status.ReturnCode()
	}
	if res.At.IsZero() {
		res.At = r.options.Clock.Now()
	}
	return res
}

func (r *Registry) reply(p *prompt) string {
	ctx, cancel := context.WithTimeout(context.Background(), r.options.Rules.ReplyLimit)
	defer cancel()
	text, err := r.herdr.Reply(ctx, p.agent.target, p.id)
	if err != nil {
		r.options.Logger.Warn("no last message to be had", "prompt", p.id, "agent", p.agent.id, "err", err)
	}
	return text
}

// finish writes the note, and waits for so long as a note may hold its result back. A disk
// that hangs longer and comes back still gets the note.
func (r *Registry) finish(p *prompt, res Result) error {
	err := r.within(r.options.Rules.NoteLimit, "note "+res.NotePath, func() error {
		return p.note.Finish(context.Background(), res)
	})
	if err != nil {
		r.options.Logger.Error("note not finished", "prompt", p.id, "note", res.NotePath, "err", err)
	}
	return err
}

// publish frees the slot and makes the result known, at the same moment. A detached prompt
// has no result: its waiters were told that the registry is closed.
func (r *Registry) publish(p *prompt, res Result) {
	r.mu.Lock()
	if p.agent.slot == p {
		p.agent.slot = nil
	}
	if res.Status == StatusDetached {
		r.mu.Unlock()
		return
	}
	if res.Status == StatusTimeout || res.Status == StatusBlocked {
		p.agent.early = p
	}
	p.result = &res
	after := p.after
	p.after = nil
	r.keepText(p)
	close(p.done)
	r.mu.Unlock()

	r.options.Logger.Debug("prompt settled", "prompt", p.id, "agent", p.agent.id, "status", res.Status)
	for _, f := range after {
		f()
	}
}

// keepText drops the oldest text from memory when there are too many, if its note has it.
func (r *Registry) keepText(p *prompt) {
	if p.note == nil || p.result.NoteErr != nil || p.result.Text == "" {
		return
	}
	r.texts = append(r.texts, p)
	if len(r.texts) > r.options.KeepTexts {
		oldest := r.texts[0]
		oldest.result.Text, oldest.dropped = "", true
		r.texts = r.texts[1:]
	}
}

// noteLateEnding adds to the note of an agent's last prompt how that ended after all, if it
// had been settled before (ruling R12). Nobody is told again.
func (r *Registry) noteLateEnding(a *agent) {
	r.mu.Lock()
	p := a.early
	r.mu.Unlock()
	if p == nil || p.note == nil {
		return
	}
	o, _ := r.herdr.Observe(a.target)
	end := tracker{id: p.id}.signalled(o.Signal, r.options.Clock.Now())
	r.mu.Lock()
	again := a.early != p
	if end != nil && !again {
		a.early = nil
	}
	r.mu.Unlock()
	if end == nil || again {
		return
	}
	end.Late = true
	_ = r.finish(p, r.complete(p, *end)) // logged there; there is nobody to tell
}

// Result is the published result of a prompt. One whose text was dropped from memory reads
// it from its note, which may block on the disk; a text that cannot be read is reported in
// NoteErr.
func (r *Registry) Result(id PromptID) (Result, bool) {
	r.mu.Lock()
	p := r.prompts[id]
	if p == nil || p.result == nil {
		r.mu.Unlock()
		return Result{}, false
	}
	res := *p.result
	res.Waited = p.waited
	dropped := p.dropped
	r.mu.Unlock()
	if dropped {
		var err error
		if res.Text, err = p.note.Text(); err != nil {
			res.NoteErr = fmt.Errorf("lifecycle: the text of %s: %w", id, err)
		}
	}
	return res, true
}

// Done is closed once the result of the prompt can be read. It stays open for a prompt that
// was detached. Errors match [ErrUnknownPrompt].
func (r *Registry) Done(id PromptID) (<-chan struct{}, error) {
	p, err := r.prompt(id)
	if err != nil {
		return nil, err
	}
	return p.done, nil
}

// AfterDone runs f once the result of the prompt can be read: at once, in the caller, if it
// can be read now, else in the goroutine that publishes it. f must not block. Errors match
// [ErrUnknownPrompt], and then f is never run.
func (r *Registry) AfterDone(id PromptID, f func()) error {
	p, err := r.prompt(id)
	if err != nil {
		return err
	}
	r.mu.Lock()
	if p.result == nil {
		p.after = append(p.after, f)
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	f()
	return nil
}

func (r *Registry) prompt(id PromptID) (*prompt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.prompts[id]; p != nil {
		return p, nil
	}
	return nil, unknownPrompt(id)
}
