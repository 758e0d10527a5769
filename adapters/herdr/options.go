package herdr

import (
	"log/slog"
	"os"
	"time"
)

// Placement says where an agent's pane is made. None takes the focus.
type Placement string

// The placements.
const (
	// InTab: a tab of its own, in the workspace that this process runs in, or, from a plain
	// terminal, in a workspace made for the agents. The default.
	InTab Placement = "tab"
	// ToTheRight and Below: beside the pane that this process runs in (or Options.Beside).
	ToTheRight Placement = "right"
	Below      Placement = "down"
	// InWorkspace: a workspace of its own.
	InWorkspace Placement = "workspace"
)

// Options say which server is used and how agents are run. The zero value uses the server
// that a herdr started here would use, and starts agents without a link.
type Options struct {
	// Socket is the path of the server's socket. "" is looked for as Herdr does: Session,
	// HERDR_SOCKET_PATH, HERDR_SESSION, the default session.
	Socket string
	// Session is the name of one of Herdr's sessions; used when Socket is "".
	Session string
	// Links are the links of pi children: pi.Links(). Without them the agents, of any kind,
	// are known by Herdr's status alone, which never says how a prompt ended. See the
	// package comment.
	Links Links

	Placement Placement
	// Beside is the pane that ToTheRight and Below split; "" is this process's own.
	Beside string
	// Dir is the working directory of agents whose Spec names none; "" is this process's.
	Dir string
	// Env is added to the environment of every agent; Spec.Env comes on top. What else is
	// there is the server's, not this process's.
	Env map[string]string
	// Logger gets what was survived (Warn) and what changed (Debug), never prompt text,
	// and no environment. The default discards.
	Logger *slog.Logger

	// Store records what was made, so that a later process can find it; see [Store]. The
	// default records nothing.
	Store Store
	// Parent names in those records who gives the orders, the same after a restart.
	Parent string

	// StartServer starts a server when none is running and the program herdr is on PATH. It
	// is detached, in a session of its own, and never stopped by us.
	StartServer bool

	// CallTimeout bounds each request to the server. Default 10 s.
	CallTimeout time.Duration
	// StartTimeout bounds a launch, from the request for a pane to an agent that can be
	// prompted. Default 30 s; at most 300 s.
	StartTimeout time.Duration
	// Reconcile is how often all panes are read, whatever the events say (ruling R1).
	// Default 15 s.
	Reconcile time.Duration
	// NudgeAfter is how long an agent without a link may show no sign of a prompt that was
	// typed into its pane, before the pane is looked at and Enter is pressed once, if the
	// text still stands there. Default 5 s.
	NudgeAfter time.Duration

	// MaxDepth is how many levels of agents may be started below the outermost process:
	// 1, the default, means that an agent starts no agents (ruling R16).
	MaxDepth int
}

func (o Options) withDefaults() Options {
	if o.Placement == "" {
		o.Placement = InTab
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Store == nil {
		o.Store = noStore{}
	}
	orElse(&o.CallTimeout, 10*time.Second)
	orElse(&o.StartTimeout, 30*time.Second)
	o.StartTimeout = min(o.StartTimeout, 300*time.Second)
	orElse(&o.Reconcile, 15*time.Second)
	orElse(&o.NudgeAfter, 5*time.Second)
	orElse(&o.MaxDepth, 1)
	return o
}

// find settles which server is meant. The error is kept until somebody needs the server.
func (o Options) find() (socket string, err error) {
	if o.Socket != "" {
		return o.Socket, nil
	}
	return socketPath(o.Session, os.Getenv)
}

func orElse[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}
