package pi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Stored returns the ending that the child has left on disk, if it is the one of prompt p.
func (l *childLink) Stored(p lifecycle.PromptID) (lifecycle.Signal, bool) {
	f, err := os.Open(filepath.Join(l.dir, signalFile))
	if err != nil {
		return lifecycle.Signal{}, false
	}
	defer f.Close()
	var s signal
	if err := json.NewDecoder(io.LimitReader(f, maxLine)).Decode(&s); err != nil || s.Prompt != p {
		return lifecycle.Signal{}, false
	}
	stored := s.decode()
	return stored, stored.Final()
}

// Reply returns the last text that the child has said for prompt p, from its session file,
// "" if there is none. It reads the file once, from its beginning, by the same rules by which
// events are read.
func (l *childLink) Reply(ctx context.Context, p lifecycle.PromptID) (string, error) {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	f, err := os.Open(session)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // pi writes it with the first message
	}
	if err != nil {
		return "", err
	}
	defer f.Close()

	turn := turns.Tracker{}.Expect(p)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if ctx.Err() != nil {
			return "", fmt.Errorf("read %s: %w", session, context.Cause(ctx))
		}
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Type == "message" {
			turn = turn.Next(e.event())
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read %s: %w", session, err)
	}
	return turn.Reply(p), nil
}

// entry is a line of pi's session file. A last line that is still being written is no JSON.
type entry struct {
	Type    string
	Message struct {
		Role         string
		Content      json.RawMessage
		StopReason   string
		ErrorMessage string
	}
}

func (e entry) event() turns.Event {
	m := e.Message
	return turns.Event{Type: "message_end", Message: turns.Message{Role: m.Role, Text: text(m.Content), Stop: m.StopReason, Error: m.ErrorMessage}}
}

// text joins the text parts of a content, which may also be one string.
func text(content json.RawMessage) string {
	var all string
	if json.Unmarshal(content, &all) == nil {
		return all
	}
	var parts []struct{ Type, Text string }
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		if p.Type == "text" {
			all += p.Text
		}
	}
	return all
}
