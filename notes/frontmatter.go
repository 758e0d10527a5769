package notes

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const (
	fence   = "---"
	utf8BOM = "\ufeff"
)

// frontMatter is the block at the head of a note: one "key: value" a line, strings quoted
// where YAML might take them for something else.
func frontMatter(r *record, e *entry) []byte {
	var b bytes.Buffer
	b.WriteString(fence + "\n")
	put := func(key, value string) {
		if value != "" {
			b.WriteString(key + ": " + value + "\n")
		}
	}
	text := func(key, value string) {
		if value != "" {
			put(key, yamlString(value))
		}
	}
	put("noteSessionVersion", strconv.Itoa(Version))
	text("session", sessionDir(r.Number, r.Slug))
	text("sessionName", r.Name)
	text("parentPiSession", "sha256:"+redact(strings.TrimPrefix(r.Parent.Identity, hashPrefix)))
	text("agent", e.Agent)
	put("ordinal", strconv.Itoa(e.Ordinal))
	text("label", e.Label)
	text("task", e.Task)
	text("mode", e.Mode)
	text("status", string(e.Status))
	put("reservedAt", e.Reserved.String())
	put("started", e.Started.String())
	put("completed", e.Completed.String())
	text("pane", e.Pane)
	text("handle", e.AgentID)
	text("prompt", e.PromptID)
	if e.ReturnCode != nil {
		put("returnCode", strconv.Itoa(*e.ReturnCode))
	}
	text("error", e.Error)
	if e.Inferred {
		put("inferred", "true")
	}
	text("lateStatus", string(e.LateStatus))
	b.WriteString(fence + "\n")
	return b.Bytes()
}

// frontKeys are the keys that are ours, in this version and in all before.
var frontKeys = map[string]bool{
	"noteSessionVersion": true, "session": true, "sessionName": true, "parentPiSession": true,
	"agent": true, "ordinal": true, "label": true, "task": true, "mode": true, "status": true,
	"reservedAt": true, "started": true, "completed": true, "pane": true, "handle": true,
	"prompt": true, "returnCode": true, "error": true, "inferred": true, "lateStatus": true,
	"artifactSessionVersion": true, "promptId": true, "agentId": true, // the TypeScript original's
}

// written returns what is in a note apart from our front matter, byte for byte: what the
// child wrote, and our section if it is there. The front matter is recognised whatever was
// done to its values; lines that somebody added to it are kept, at the beginning. A block
// that is not this note's is not ours, and neither is a block without an end.
func written(file []byte, r *record, e *entry) []byte {
	rest, bom := bytes.CutPrefix(file, []byte(utf8BOM))
	block, after, ok := cutBlock(rest)
	if !ok {
		return file
	}
	names := map[string]string{
		"session": yamlString(sessionDir(r.Number, r.Slug)),
		"agent":   yamlString(e.Agent),
		"ordinal": strconv.Itoa(e.Ordinal),
	}
	var foreign []byte
	for line := range bytes.Lines(block) {
		key, value, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		if !frontKeys[key] {
			foreign = append(foreign, line...)
			continue
		}
		if want, ok := names[key]; ok && unquoted(value) == unquoted(want) {
			delete(names, key)
		}
	}
	if len(names) > 0 {
		return file
	}
	if !bom && foreign == nil {
		return after
	}
	var out []byte
	if bom {
		out = append(out, utf8BOM...)
	}
	return append(append(out, foreign...), after...)
}

// frontValue reads one of our own values back; "" if it is not there.
func frontValue(file []byte, key string) string {
	block, _, _ := cutBlock(bytes.TrimPrefix(file, []byte(utf8BOM)))
	for line := range bytes.Lines(block) {
		value, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), key+": ")
		if !ok {
			continue
		}
		if text, err := strconv.Unquote(value); err == nil {
			return text
		}
		return value
	}
	return ""
}

func unquoted(scalar string) string { return strings.Trim(scalar, " \t\"") }

// cutBlock cuts a file after its front matter, of whoever that is.
func cutBlock(file []byte) (block, after []byte, ok bool) {
	isFence := func(line []byte) bool { return string(bytes.TrimRight(line, "\r\n")) == fence }
	start, end := 0, 0
	for line := range bytes.Lines(file) {
		end += len(line)
		switch {
		case start == 0 && !isFence(line):
			return nil, nil, false
		case start == 0:
			start = end
		case isFence(line):
			return file[start : end-len(line)], file[end:], true
		}
	}
	return nil, nil, false
}

// newNote is a note as it is reserved.
func newNote(r *record, e *entry) []byte {
	return fmt.Appendf(frontMatter(r, e), "\n# %s\n\nField notes: [%s](./%s)\n\n", title(e), indexFile, indexFile)
}
