package headless

import (
	"strings"
	"sync"
)

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	limit int // bytes

	mu   sync.Mutex
	data []byte
	cut  bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, b...)
	if over := len(t.data) - t.limit; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
		t.cut = true
	}
	return len(b), nil
}

// String returns what is kept as valid UTF-8, from the beginning of a line if there is one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.data)
	if t.cut {
		if _, lines, ok := strings.Cut(s, "\n"); ok && lines != "" {
			s = lines
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
}
