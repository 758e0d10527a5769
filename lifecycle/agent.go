package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// agent's fields below the blank line are guarded by the registry's lock.
type agent struct {
	id     AgentID
	spec   Spec
	target Target

	launched bool
	closing  bool    // CloseAgent was called: no more prompts
	closed   bool    // and has succeeded
	slot     *prompt // claimed or in flight
	early    *prompt // settled before its agent was: a late ending may follow (ruling R12)
}

// AgentStatus says where an agent stands.
type AgentStatus struct {
	ID     AgentID
	Name   string
	Label  string
	Kind   string
	Dir    string
	State  State
	Closed bool      // by us
	Since  time.Time // when State became what it is
	Seen   time.Time // the last sign of life
	Detail string    // how it went, for Gone

	PromptID  PromptID  // the one in flight, "" without
	Submitted time.Time // when that was submitted
}

// Start launches an agent and blocks until it can take a prompt; ctx bounds that. When it
// fails nothing of the agent is left. Errors match [ErrInvalid], [ErrTooManyAgents],
// [ErrLabelTaken], [ErrClosed], or are the Herdr's.
func (r *Registry) Start(ctx context.Context, s Spec) (AgentID, error) {
	s, err := checkSpec(s)
	if err != nil {
		return "", err
	}
	a, err := r.admit(s)
	if err != nil {
		return "", err
	}
	defer r.wg.Done()

	ctx, cancel := bind(ctx, r.life)
	defer cancel()
	target, err := r.herdr.Launch(ctx, a.spec)
	if err == nil && r.life.Err() != nil { // launched all the same: nothing may be left
		r.discard(target)
		err = ErrClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		delete(r.agents, a.id)
		if r.life.Err() != nil {
			err = errors.Join(ErrClosed, err)
		}
		return "", fmt.Errorf("lifecycle: start %s: %w", display(s), err)
	}
	a.target, a.launched = target, true
	r.order = append(r.order, a)
	r.options.Logger.Debug("agent started", "agent", a.id, "name", s.Name, "target", target)
	return a.id, nil
}

// discard closes an agent that nobody will know of.
func (r *Registry) discard(t Target) {
	ctx, cancel := context.WithTimeout(context.Background(), r.options.Rules.LookLimit)
	defer cancel()
	if err := r.herdr.Close(ctx, t); err != nil {
		r.options.Logger.Error("a late launch could not be closed", "target", t, "err", err)
	}
}

// admit gives a new agent its id and its place under the limit.
func (r *Registry) admit(s Spec) (*agent, error) {
	gone := map[AgentID]bool{}
	for _, a := range r.Agents() {
		gone[a.ID] = a.State == Gone
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	living := 0
	for _, a := range r.agents {
		if a.closed || gone[a.id] {
			continue
		}
		living++
		if s.Label != "" && a.spec.Name == s.Name && a.spec.Label == s.Label {
			return nil, fmt.Errorf("%w: %s is in use by %s", ErrLabelTaken, display(s), a.id)
		}
	}
	if living >= r.options.MaxAgents {
		return nil, fmt.Errorf("%w: %d of at most %d are running; close one first", ErrTooManyAgents, living, r.options.MaxAgents)
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	s.ID = newAgentID(r.scope)
	a := &agent{id: s.ID, spec: s}
	r.agents[a.id] = a
	return a, nil
}

// find is called with the lock held.
func (r *Registry) find(id AgentID) (*agent, error) {
	if a := r.agents[id]; a != nil && a.launched {
		return a, nil
	}
	return nil, unknownAgent(id)
}

// Status says where an agent stands. It reads memory and never blocks. Errors match
// [ErrUnknownAgent].
func (r *Registry) Status(id AgentID) (AgentStatus, error) {
	r.mu.Lock()
	a, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return AgentStatus{}, err
	}
	return r.status(a), nil
}

// Agents is the status of all agents, closed ones included, in the order they were started.
func (r *Registry) Agents() []AgentStatus {
	r.mu.Lock()
	agents := slices.Clone(r.order)
	r.mu.Unlock()
	all := make([]AgentStatus, len(agents))
	for i, a := range agents {
		all[i] = r.status(a)
	}
	return all
}

func (r *Registry) status(a *agent) AgentStatus {
	o, _ := r.herdr.Observe(a.target)
	s := AgentStatus{
		ID: a.id, Name: a.spec.Name, Label: a.spec.Label, Kind: a.spec.Kind, Dir: a.spec.Dir,
		State: o.State, Since: o.Since, Seen: o.Seen, Detail: o.Detail,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Closed = a.closed
	if a.slot != nil && !a.slot.submitted.IsZero() {
		s.PromptID, s.Submitted = a.slot.id, a.slot.submitted
	}
	return s
}

// Recent returns the end of what an agent has been saying, for a look at it. It may block
// until ctx ends. Errors match [ErrUnknownAgent], errors.ErrUnsupported where the Herdr is
// no [OutputReader], or are the Herdr's.
func (r *Registry) Recent(ctx context.Context, id AgentID) (string, error) {
	r.mu.Lock()
	a, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return "", err
	}
	reader, ok := r.herdr.(OutputReader)
	if !ok {
		return "", fmt.Errorf("lifecycle: recent output of %s: %w", id, errors.ErrUnsupported)
	}
	return reader.Recent(ctx, a.target)
}

// CloseAgent closes an agent. An unresolved prompt is cancelled first, and its note is
// finished before CloseAgent returns; a disk that hangs delays that by the limits of
// [Rules] and no more. Closing again is fine; when the Herdr could not close the agent, its
// error is returned, the agent takes no more prompts, and closing can be tried again. ctx
// bounds the call. Errors match [ErrUnknownAgent], [ErrClosed], or are the Herdr's.
func (r *Registry) CloseAgent(ctx context.Context, id AgentID) error {
	r.mu.Lock()
	a, err := r.find(id)
	if err == nil && !a.closed {
		err = r.enter()
	}
	if err != nil || a.closed {
		r.mu.Unlock()
		return err
	}
	defer r.wg.Done()
	a.closing = true
	p := a.slot
	r.mu.Unlock()

	if p != nil {
		p.propose(proposal{Result: Result{Status: StatusCancelled, Error: "Agent was closed."}})
		select {
		case <-p.done:
		case <-r.options.Clock.After(r.options.Rules.settling()):
			r.options.Logger.Warn("closing an agent whose prompt does not settle", "agent", id, "prompt", p.id)
		case <-r.life.Done():
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("lifecycle: close %s: %w", id, ctx.Err())
		}
	}
	r.noteLateEnding(a)
	if err := r.herdr.Close(ctx, a.target); err != nil {
		return fmt.Errorf("lifecycle: close %s: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a.closed = true
	r.options.Logger.Debug("agent closed", "agent", id)
	return nil
}

func checkSpec(s Spec) (Spec, error) {
	s.Name, s.Label = strings.TrimSpace(s.Name), strings.TrimSpace(s.Label)
	if s.Name == "" {
		return s, fmt.Errorf("%w: the agent's name is empty", ErrInvalid)
	}
	if err := checkLine("name", s.Name); err != nil {
		return s, err
	}
	if err := checkLine("label", s.Label); err != nil {
		return s, err
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		return s, fmt.Errorf("%w: the agent's directory is not absolute: %q", ErrInvalid, s.Dir)
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return s, fmt.Errorf("%w: environment variable %q cannot be set", ErrInvalid, k)
		}
	}
	for _, arg := range append([]string{s.Dir, s.Kind}, s.Args...) {
		if strings.Contains(arg, "\x00") {
			return s, fmt.Errorf("%w: %q holds a zero byte", ErrInvalid, arg)
		}
	}
	return s, nil
}

// maxLine is how long a name or a label may be, in characters.
const maxLine = 64

func checkLine(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: the agent's %s is not valid UTF-8: %q", ErrInvalid, what, s)
	}
	if n := utf8.RuneCountInString(s); n > maxLine {
		return fmt.Errorf("%w: the agent's %s has %d characters, at most %d are allowed", ErrInvalid, what, n, maxLine)
	}
	if i := strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 {
		return fmt.Errorf("%w: the agent's %s holds a character that cannot be shown: %q", ErrInvalid, what, s)
	}
	return nil
}

func display(s Spec) string {
	if s.Label == "" {
		return s.Name
	}
	return s.Name + ": " + s.Label
}
