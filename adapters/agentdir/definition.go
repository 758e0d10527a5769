package agentdir

// Definition is one agent that can be started.
type Definition struct {
	Name        string // at most 64 printable characters: fit to be lifecycle.Spec.Name
	Description string // one line
	Model       string // as pi's --model takes it; "" is the parent's
	Tools       []string
	NoTools     bool   // no tools at all; otherwise empty Tools mean pi's own choice
	Prompt      string // the system prompt; may be empty

	OmitSystemPrompt    bool // Prompt replaces pi's own system prompt
	OmitContextFiles    bool
	OmitPiDocumentation bool // has no effect on Apply

	HiddenFromUser  bool // user-invocable: false
	HiddenFromModel bool // disable-model-invocation: true

	Level  Level
	Source string // the file's absolute path, or "bundled"
}

// Level says who wrote a definition.
type Level string

// The levels, most believed first.
const (
	LevelUser    Level = "user"
	LevelProject Level = "project"
	LevelBundled Level = "bundled"
)
