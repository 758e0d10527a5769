package notes

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The orchestration section is what we write at the end of a note when its prompt has
// ended. Its marks bear the note's seal, a random word that stands in session.json only; so
// a child's report that imitates a mark, or quotes another note's, is not taken for one. (A
// child can look the seal up and forge a mark, and gains nothing: the text is its own word
// anyway.) The final text is framed by its length and comes back exactly, marks or not.
//
//	(blank line)
//	<!-- shepherd:orchestration SEAL status=completed code=0 at=TIME text=1234 -->
//	## Shepherd orchestration
//	- Status: completed
//	…
//	### Final output
//
//	<!-- shepherd:text SEAL -->
//	…1234 bytes…
//	<!-- shepherd:end SEAL -->
//	### Error, only if it is long
//	<!-- shepherd:close SEAL -->

// newSeal makes a note's seal.
func newSeal() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ending is what a section's first line says.
type ending struct {
	Status Status
	Code   int
	At     time.Time
	Text   int // bytes
}

func (e ending) mark(what, seal string) string {
	return fmt.Sprintf("<!-- shepherd:%s %s status=%s code=%d at=%s text=%d -->\n", what, seal, e.Status, e.Code, at(e.At), e.Text)
}

func textMark(seal string) string  { return "<!-- shepherd:text " + seal + " -->\n" }
func endMark(seal string) string   { return "\n<!-- shepherd:end " + seal + " -->\n" }
func closeMark(seal string) string { return "<!-- shepherd:close " + seal + " -->\n" }

const (
	mainSection = "orchestration"
	lateSection = "late"
)

// section is the orchestration section of an entry that has just ended with o. before is
// the note that was reserved before it, or nil.
func section(e, before *entry, o Outcome) []byte {
	var b bytes.Buffer
	b.WriteString("\n\n")
	b.WriteString(ending{e.Status, o.ReturnCode, o.At, len(o.Text)}.mark(mainSection, e.Seal))
	b.WriteString("## Shepherd orchestration\n\n")
	item := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", name, value)
		}
	}
	item("Status", string(e.Status)+inferred(o))
	item("Reserved", e.Reserved.String())
	item("Started", e.Started.String())
	item("Completed", e.Completed.String())
	item("Return code", strconv.Itoa(o.ReturnCode))
	item("Error", markdown(shorten(o.Error, maxLine)))
	item("Agent", markdown(joined(e.Agent, e.AgentID)))
	item("Prompt", markdown(e.PromptID))
	item("Pane", markdown(e.Pane))
	item("Field notes", "[shepherd.md](./shepherd.md)")
	if before != nil {
		item("Previous note", before.link())
	}
	outputs(&b, e.Seal, "Final output", "Error", o)
	b.WriteString(closeMark(e.Seal))
	return b.Bytes()
}

// late is the part that is added for an ending that came after the ending.
func late(e *entry, o Outcome) []byte {
	var b bytes.Buffer
	b.WriteString("\n" + ending{o.Status, o.ReturnCode, o.At, len(o.Text)}.mark(lateSection, e.Seal))
	b.WriteString("### Late ending\n\n")
	fmt.Fprintf(&b, "- Status: %s%s (the note stays %s)\n", o.Status, inferred(o), e.Status)
	fmt.Fprintf(&b, "- Came: %s\n- Return code: %d\n", at(o.At), o.ReturnCode)
	if o.Error != "" {
		fmt.Fprintf(&b, "- Error: %s\n", markdown(shorten(o.Error, maxLine)))
	}
	outputs(&b, e.Seal, "Late output", "Late error", o)
	return b.Bytes()
}

// outputs writes the text in its frame, and the error once more if one line was too short
// for it.
func outputs(b *bytes.Buffer, seal, text, err string, o Outcome) {
	if o.Text != "" {
		b.WriteString("\n### " + text + "\n\n" + textMark(seal) + o.Text + endMark(seal))
	}
	if shorten(o.Error, maxLine) != o.Error {
		fence := strings.Repeat("`", longestRun(o.Error, '`')+3)
		b.WriteString("\n### " + err + "\n\n" + fence + "text\n" + o.Error + "\n" + fence + "\n")
	}
}

func inferred(o Outcome) string {
	if o.Inferred {
		return " (inferred from the agent's state)"
	}
	return ""
}

func joined(name, id string) string {
	if id == "" {
		return name
	}
	return name + " " + id
}

// longestRun is the length of the longest run of c.
func longestRun(s string, c rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// sealed is where a section of ours lies in a note.
type sealed struct {
	ending
	start int // of the section, its blank line included
	head  int // where the first line ends
	text  int // where the text begins; 0 if there is none
	ok    bool
}

// findSection finds the section of the seal in a note. One that is not whole is none.
func findSection(file []byte, what, seal string) sealed {
	if seal == "" {
		return sealed{}
	}
	prefix := []byte("\n<!-- shepherd:" + what + " " + seal + " ")
	for from := 0; ; {
		i := bytes.Index(file[from:], prefix)
		if i < 0 {
			return sealed{}
		}
		if s := readSection(file, from+i+1, seal); s.ok {
			s.start = from + i
			if s.start > 0 && file[s.start-1] == '\n' {
				s.start--
			}
			return s
		}
		from += i + 1
	}
}

func readSection(file []byte, begin int, seal string) (s sealed) {
	line, _, ok := bytes.Cut(file[begin:], []byte("\n"))
	if !ok {
		return s
	}
	var when, status string
	for word := range strings.FieldsSeq(string(line)) {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "status":
			status = value
		case "code":
			s.Code, err = strconv.Atoi(value)
		case "at":
			when = value
		case "text":
			s.ending.Text, err = strconv.Atoi(value)
		}
		if err != nil {
			return sealed{}
		}
	}
	s.Status = Status(status)
	s.At, _ = time.Parse(momentFormat, when)
	s.head = begin + len(line) + 1
	if !s.Status.Final() || s.ending.Text < 0 {
		return sealed{}
	}
	if s.ending.Text > 0 {
		mark := []byte(textMark(seal))
		i := bytes.Index(file[s.head:], mark)
		if i < 0 {
			return sealed{}
		}
		s.text = s.head + i + len(mark)
	}
	s.ok = true
	return s
}

// output returns the text of a section, exactly as it was given to Finalize.
func (s sealed) output(file []byte, seal string) (string, error) {
	n := s.ending.Text
	if n == 0 {
		return "", nil
	}
	if s.text+n > len(file) || !bytes.HasPrefix(file[s.text+n:], []byte(endMark(seal))) {
		return "", ErrEdited
	}
	return string(file[s.text : s.text+n]), nil
}

// end is where the section ends: behind its last mark, or at the end of the file if that
// was removed.
func (s sealed) end(file []byte, seal string) int {
	from := min(max(s.text, s.head)+s.ending.Text, len(file))
	if i := bytes.Index(file[from:], []byte(closeMark(seal))); i >= 0 {
		return from + i + len(closeMark(seal))
	}
	return len(file)
}

// withLate inserts the late part at the end of the section.
func (s sealed) withLate(file, part []byte, seal string) []byte {
	at := s.end(file, seal)
	if bytes.HasSuffix(file[:at], []byte(closeMark(seal))) {
		at -= len(closeMark(seal))
	}
	out := make([]byte, 0, len(file)+len(part))
	out = append(out, file[:at]...)
	out = append(out, part...)
	return append(out, file[at:]...)
}
