package herdr

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/jsonl"
)

const (
	keptText  = 4 << 20 // bytes of one message's text that are kept
	keptIDs   = 128
	keptBegin = 256 // bytes of a user's message, whose first line is the marker
)

// transcriptReply returns the last message that a pi has written for the prompt whose first
// line is marker, or "" when there is none. A session file is a tree: its last entry's
// ancestors are the conversation, and what stands between them belongs to branches that were
// left. Memory is bounded by the conversation's number of entries and by two texts.
func transcriptReply(file, marker string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return findReply(f, strings.TrimSpace(marker))
}

// entry is what is kept of each line.
type entry struct {
	parent string
	role   byte // 'u'ser with the marker, 'o'ther user, 'a'ssistant, 0
	offset int  // of an assistant: which one it is in the file
}

// findReply reads the file twice: for its tree, and for the one text.
func findReply(f io.ReadSeeker, marker string) (string, error) {
	entries := make(map[string]entry)
	leaf, count := "", 0
	err := eachEntry(f, keptBegin, func(e line) {
		if e.id == "" {
			return
		}
		n := entry{parent: e.parent}
		switch {
		case e.role == "user" && strings.HasPrefix(e.text, marker):
			n.role = 'u'
		case e.role == "user":
			n.role = 'o'
		case e.role == "assistant":
			n.role, n.offset = 'a', count
			count++
		}
		entries[e.id], leaf = n, e.id
	})
	if err != nil {
		return "", err
	}
	wanted := answerAbove(entries, leaf)
	if wanted < 0 {
		return "", nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	var text string
	count = 0
	err = eachEntry(f, keptText, func(e line) {
		if e.id != "" && e.role == "assistant" {
			if count == wanted {
				text = e.text
			}
			count++
		}
	})
	return text, err
}

// answerAbove walks from the leaf to our prompt and returns which assistant message was the
// last before another user's, or -1.
func answerAbove(entries map[string]entry, leaf string) int {
	answer := -1
	for range len(entries) { // a file that goes round in circles ends too
		e, ok := entries[leaf]
		if !ok {
			return -1
		}
		switch e.role {
		case 'u':
			return answer
		case 'o':
			answer = -1
		case 'a':
			if answer < 0 {
				answer = e.offset
			}
		}
		leaf = e.parent
	}
	return -1
}

// line is what is read of one entry.
type line struct {
	id, parent string
	role, text string
}

// eachEntry calls f for each entry of a session file. What is no entry is skipped: a line that
// is still being written, for example.
func eachEntry(in io.Reader, limit int, f func(line)) error {
	r := jsonl.NewReader(bufio.NewReader(in))
	for {
		if err := r.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		for more := true; more; more = r.More() {
			e, err := readEntry(r, limit)
			if errors.Is(err, jsonl.ErrSyntax) || err == io.EOF || err == io.ErrUnexpectedEOF {
				break
			}
			if err != nil {
				return err
			}
			f(e)
		}
	}
}

func readEntry(r *jsonl.Reader, limit int) (e line, err error) {
	err = r.Object(func(key string) (err error) {
		switch key {
		case "id":
			e.id, err = r.String(keptIDs)
		case "parentId":
			e.parent, err = r.String(keptIDs)
		case "message":
			err = r.Object(func(key string) (err error) {
				switch key {
				case "role":
					e.role, err = r.String(16)
				case "content":
					e.text, err = readText(r, limit)
				}
				return err
			})
		}
		return err
	})
	return e, err
}

// readText reads a content: a text, or parts of which some are.
func readText(r *jsonl.Reader, limit int) (string, error) {
	if r.Kind() == '"' {
		return r.String(limit)
	}
	var all strings.Builder
	err := r.Array(func() error {
		var kind, text string
		err := r.Object(func(key string) (err error) {
			switch key {
			case "type":
				kind, err = r.String(16)
			case "text":
				text, err = r.String(limit - all.Len())
			}
			return err
		})
		if kind == "text" {
			all.WriteString(text)
		}
		return err
	})
	return all.String(), err
}
