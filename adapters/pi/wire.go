package pi

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// What goes over the link: one JSON object a line. The other half is extension/child.ts.

const protocol = 1

// maxLine is the longest line that is read from a child, in bytes. The extension keeps below
// it; who does not is no child of ours and is disconnected.
const maxLine = 64 << 20

// message is any line from a child.
type message struct {
	Type     string
	Protocol int    // hello
	Token    string // hello
	PID      int    // hello
	Prompt   lifecycle.PromptID
	Refused  string // answer
	Level    level
}

// level is what a child says of itself in each message.
type level struct {
	Busy    bool
	Dialog  bool
	Turns   uint64
	Session string
	Signal  *signal // nil: as said before on this connection
}

// signal is a lifecycle.Signal as the extension writes it, also to the signal file.
type signal struct {
	Prompt lifecycle.PromptID
	Kind   string
	Text   string
	Error  string
	Code   *int
	At     int64 // ms since 1970
}

var kinds = map[string]lifecycle.SignalKind{
	"started":  lifecycle.Started,
	"finished": lifecycle.Finished,
	"failed":   lifecycle.Failed,
	"aborted":  lifecycle.Aborted,
}

func (s signal) decode() lifecycle.Signal {
	return lifecycle.Signal{Prompt: s.Prompt, Kind: kinds[s.Kind], Text: s.Text, Error: s.Error, Code: s.Code, At: time.UnixMilli(s.At)}
}

func welcomeLine() []byte {
	return line(struct {
		Type string `json:"type"`
	}{"welcome"})
}

// promptLine carries the marker, the first line of the text, besides: only package turns
// knows what it looks like. JSON has no place for bytes that are not UTF-8; these alone arrive
// as U+FFFD.
func promptLine(s lifecycle.Submission) []byte {
	text := turns.Wrap(s)
	marker, _, _ := strings.Cut(text, "\n")
	return line(struct {
		Type   string             `json:"type"`
		Prompt lifecycle.PromptID `json:"prompt"`
		Marker string             `json:"marker"`
		Text   string             `json:"text"`
	}{"prompt", s.Prompt, marker, text})
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings
	}
	return append(b, '\n')
}

// messages reads lines up to maxLine. A line that is not JSON ends it: it is not our child.
type messages struct{ lines *bufio.Scanner }

func newMessages(r io.Reader) messages {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	return messages{lines}
}

// next blocks until there is a message. Its error is io.EOF at the end of the connection.
func (m messages) next() (message, error) {
	if !m.lines.Scan() {
		if err := m.lines.Err(); err != nil {
			return message{}, err
		}
		return message{}, io.EOF
	}
	var msg message
	err := json.Unmarshal(m.lines.Bytes(), &msg)
	return msg, err
}
