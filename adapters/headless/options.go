package headless

import (
	"log/slog"
	"time"
)

// Options say how agents are run. The zero value runs `pi` from PATH.
type Options struct {
	// Command is the program and its leading arguments; Spec.Args come after them. The
	// default is DefaultCommand(). A replacement has to speak pi's RPC mode.
	Command []string
	// Dir is the working directory of agents whose Spec names none; "" is this process's.
	Dir string
	// Env is added to the environment of every agent; Spec.Env comes on top.
	Env map[string]string
	// Logger gets what was survived (Warn) and what changed (Debug), never prompt text.
	// The default discards.
	Logger *slog.Logger

	// StartTimeout bounds a launch, up to the agent's first answer. Default 30 s.
	StartTimeout time.Duration
	// StopGrace is how long an agent that is being closed gets after its input was closed,
	// and once more after SIGTERM, before its process group is killed. Default 2 s.
	StopGrace time.Duration

	// StderrLimit is how many bytes of the end of an agent's stderr are kept for error
	// messages. Default 4 KiB.
	StderrLimit int
	// MaxDepth is how many levels of agents may be started below the outermost process:
	// 1, the default, means that an agent starts no agents (ruling R16).
	MaxDepth int
}

// DefaultCommand is how pi is run unless Options.Command says otherwise: in RPC mode,
// without asking whether to trust the project (-na: its .pi folder is left alone), and
// without a session file, so that the user's own `pi --continue` does not find an agent's
// session. The answer of each prompt is in its signal and its note.
func DefaultCommand() []string { return []string{"pi", "--mode", "rpc", "-na", "--no-session"} }

func (o Options) withDefaults() Options {
	if len(o.Command) == 0 {
		o.Command = DefaultCommand()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	orElse(&o.StartTimeout, 30*time.Second)
	orElse(&o.StopGrace, 2*time.Second)
	orElse(&o.StderrLimit, 4<<10)
	orElse(&o.MaxDepth, 1)
	return o
}

func orElse[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}
