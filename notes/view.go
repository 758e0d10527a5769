package notes

import "time"

// Kind is what a directory among the sessions is.
type Kind string

// The kinds of directories. Only a KindSession is ever attached or written to.
const (
	KindSession    Kind = "session"    // bound to a parent, of this version
	KindNewer      Kind = "newer"      // written by a newer version (ruling R18)
	KindTypeScript Kind = "typescript" // bound to a parent by the TypeScript original
	KindLegacy     Kind = "legacy"     // of its predecessor: bound to nobody
	KindAbandoned  Kind = "abandoned"  // an allocation that was cut short; its number is burnt
	KindCorrupt    Kind = "corrupt"    // cannot be read; SessionInfo.Err says why
)

// SessionInfo is what can be shown of a session.
type SessionInfo struct {
	Dir     string // the directory's name: "0007-fix-oauth-login"
	Kind    Kind
	Err     error // KindNewer and KindCorrupt: why it is one
	Number  int
	Name    string // in full
	Path    string // absolute
	RelPath string // relative to the project, slash-separated
	Parent  string // redacted; "" if it is bound to nobody
	Status  string
	Modes   []string
	Started time.Time
	Updated time.Time
	Notes   []NoteInfo // in the order of their reservation
	Strays  []string   // Read only: files that look like notes and are none
}

// NoteInfo is what can be shown of a note.
type NoteInfo struct {
	File      string
	Path      string // absolute
	RelPath   string // relative to the project, slash-separated
	Agent     string
	Ordinal   int
	Step      int // notes that were reserved together have the same
	Label     string
	Task      string // may be cut
	Mode      string
	Status    Status
	PromptID  string
	AgentID   string
	Pane      string
	Reserved  time.Time
	Started   time.Time
	Completed time.Time
	// ReturnCode is nil as long as the note has not ended.
	ReturnCode *int
	Error      string // may be cut
	Inferred   bool
	Late       Status // how the prompt ended after it had been given up; "" if it did not
	// Left: the note has not ended, and nobody looks after it: its process died or closed.
	// Only Read looks.
	Left bool
}

// NoteView is a note with its content.
type NoteView struct {
	NoteInfo
	// Body is what the child wrote, byte for byte: the file without our front matter and
	// without our section.
	Body string
	// Text is the final output, exact unless Edited.
	Text     string
	LateText string
	// Edited: somebody changed the output, so Text is empty. Raw has it.
	Edited bool
	Raw    string // the file
}
