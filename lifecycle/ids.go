package lifecycle

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// AgentID names an agent: "shepherd-agent-<scope>-<uuid>". It is opaque and compared
// exactly. Scope is the registry's own, eight hex digits; it names one registry in one
// process and is never a note session's identity.
type AgentID string

// PromptID names one prompt: "shepherd-prompt-<scope>-<uuid>". An agent gets many over its
// life; results, notes and notices are about a prompt, never about an agent.
type PromptID string

const (
	agentPrefix  = "shepherd-agent-"
	promptPrefix = "shepherd-prompt-"
)

func newScope() string                  { return uuid.NewString()[:8] }
func newAgentID(scope string) AgentID   { return AgentID(mint(agentPrefix, scope)) }
func newPromptID(scope string) PromptID { return PromptID(mint(promptPrefix, scope)) }
func mint(prefix, scope string) string  { return prefix + scope + "-" + uuid.NewString() }
func unknownAgent(id AgentID) error     { return unknown(ErrUnknownAgent, string(id), agentPrefix) }
func unknownPrompt(id PromptID) error   { return unknown(ErrUnknownPrompt, string(id), promptPrefix) }

// unknown says of an id that nobody knows what is wrong with it: its kind, its form, or
// only that it is not from here.
func unknown(sentinel error, id, want string) error {
	form := want + "<8 hex>-<uuid>"
	switch {
	case id == "":
		return fmt.Errorf("%w: the id is empty; expected %s", sentinel, form)
	case strings.HasPrefix(id, want) && wellFormed(id[len(want):]):
		return fmt.Errorf("%w: %q does not belong to this parent session", sentinel, id)
	case strings.HasPrefix(id, "shepherd-"):
		if kind, _, ok := strings.Cut(id[len("shepherd-"):], "-"); ok && "shepherd-"+kind+"-" != want {
			return fmt.Errorf("%w: %q is the id of another kind (%s); expected %s", sentinel, id, kind, form)
		}
	}
	return fmt.Errorf("%w: %q is malformed; expected %s, exactly as it was given out (a pane is no id)", sentinel, id, form)
}

func wellFormed(rest string) bool {
	scope, id, ok := strings.Cut(rest, "-")
	return ok && len(scope) == 8 && len(id) == 36 && uuid.Validate(id) == nil
}
