package notes

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// indexFile is the session's fieldnotes. It is derived from session.json alone.
const indexFile = "shepherd.md"

// lines is what a note contributes to the index. It is kept while the note does not change.
type lines struct{ item, link string }

func (e *entry) lines() *lines {
	if e.view == nil {
		link := e.link()
		item := link + ": " + string(e.Status)
		if e.LateStatus != "" {
			item += ", late " + string(e.LateStatus)
		}
		if e.Label != "" {
			item += ", " + markdown(shorten(e.Label, maxLine))
		}
		e.view = &lines{item, link}
	}
	return e.view
}

// fieldnotes renders shepherd.md.
func (r *record) fieldnotes() []byte {
	var b bytes.Buffer
	b.Grow(512 + 160*len(r.notes))
	fmt.Fprintf(&b, "# Session %04d: %s\n\n", r.Number, markdown(shorten(r.Name, maxLine)))
	fmt.Fprintf(&b, "- Status: %s\n", r.summary())
	fmt.Fprintf(&b, "- Session: %s\n", markdown(sessionDir(r.Number, r.Slug)))
	fmt.Fprintf(&b, "- Parent: bound to sha256:%s%s\n", redact(strings.TrimPrefix(r.Parent.Identity, hashPrefix)), ephemeral(r.Parent))
	fmt.Fprintf(&b, "- Project: %s\n", markdown(r.Parent.ProjectRoot))
	fmt.Fprintf(&b, "- Started: %s\n- Updated: %s\n", r.Started, r.Updated)
	if len(r.Modes) > 0 {
		fmt.Fprintf(&b, "- Modes: %s\n", markdown(strings.Join(r.Modes, ", ")))
	}
	for _, mark := range r.recoveries() {
		fmt.Fprintf(&b, "- Recovered from: %s, left as it was (%s)\n", markdown(mark.Directory), markdown(shorten(mark.Reason, maxLine)))
	}
	b.WriteString("\n## Notes\n\n")
	for i, e := range r.notes {
		b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(i+1), 10))
		b.WriteString(". ")
		b.WriteString(e.lines().item)
		b.WriteByte('\n')
	}
	b.WriteString("\n## Flow\n\n")
	for i, e := range r.notes {
		switch {
		case i == 0:
		case e.Step > 0 && e.Step == r.notes[i-1].Step: // reserved together
			b.WriteString(" + ")
		default:
			b.WriteString("\n→ ")
		}
		b.WriteString(e.lines().link)
	}
	if len(r.notes) == 0 {
		b.WriteString("No notes yet.")
	}
	b.WriteString("\n")
	return b.Bytes()
}

func ephemeral(b binding) string {
	if b.Ephemeral {
		return " (made up for this parent; it cannot be resumed)"
	}
	return ""
}

// The statuses of a session. They follow its notes.
const (
	SessionOpen      = "open"      // no notes yet
	SessionRunning   = "running"   // some note has not ended
	SessionCompleted = "completed" // all notes have ended, none of them badly
	SessionFailed    = "failed"    // all notes have ended, some badly
)

// follow works the session's status out.
func (r *record) follow() string {
	status := SessionOpen
	for _, e := range r.notes {
		switch {
		case !e.Status.Final():
			return SessionRunning
		case e.Status == Completed || e.Status == Cancelled:
			if status == SessionOpen {
				status = SessionCompleted
			}
		default:
			status = SessionFailed
		}
	}
	return status
}

// summary is the session's status and how many notes have which.
func (r *record) summary() string {
	count := make(map[Status]int)
	for _, e := range r.notes {
		count[e.Status]++
	}
	var parts []string
	for _, s := range []Status{Pending, Running, Detached, Completed, Failed, Blocked, TimedOut, Cancelled, Interrupted} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if parts == nil {
		return r.Status
	}
	return r.Status + " (" + strings.Join(parts, ", ") + ")"
}
