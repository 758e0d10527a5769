package pi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// ledgerDir is where hosts keep their ledgers in a project: one small file for each parent
// session that has used shepherd, and its lock.
const ledgerDir = ".shepherd/pi"

// ledger keeps the notices of one parent session that have no receipt yet, so that neither
// the death of pi nor that of the host loses one. Its kernel lock says which host it belongs
// to: of two pis on one session only the first has it. All methods may be called from many
// goroutines at once.
type ledger struct {
	fs   notes.FS
	name string
	log  *slog.Logger

	mu      sync.Mutex
	unlock  func() error // nil: it is not ours
	notices []bridgeNotice
}

type ledgerFile struct {
	Version int            `json:"version"`
	Notices []bridgeNotice `json:"notices"`
}

func newLedger(fsys notes.FS, identity notes.Identity, log *slog.Logger) *ledger {
	sum := sha256.Sum256([]byte(identity))
	return &ledger{fs: fsys, name: ledgerDir + "/" + hex.EncodeToString(sum[:16]), log: log}
}

func (l *ledger) file() string { return l.name + ".json" }

// ledgerPatience is how long somebody else's lock is waited for: whoever has it keeps it.
const ledgerPatience = 20 * time.Millisecond

// take takes the ledger for this host and reads it. Unless create is set, a session that has
// none yet does not get one, which is no error. It reports whether the ledger is ours.
func (l *ledger) take(ctx context.Context, create bool) (ours bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlock != nil {
		return true, nil
	}
	if _, err := l.fs.ReadFile(l.file()); errors.Is(err, fs.ErrNotExist) {
		if !create {
			return false, nil
		}
		if err := l.fs.MkdirAll(ledgerDir); err != nil {
			return false, fmt.Errorf("pi: ledger: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	unlock, err := l.fs.Lock(ctx, l.name+".lock")
	if err != nil {
		if ctx.Err() != nil {
			return false, nil // another host has it
		}
		return false, fmt.Errorf("pi: ledger: %w", err)
	}
	l.unlock = unlock
	l.notices = l.read()
	return true, l.write()
}

// read returns what the file says. One that cannot be understood is kept aside and replaced:
// it may not stop the parent.
func (l *ledger) read() []bridgeNotice {
	data, err := l.fs.ReadFile(l.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var f ledgerFile
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != 1 {
		err = fmt.Errorf("version %d", f.Version)
	}
	if err != nil {
		aside := fmt.Sprintf("%s.unreadable-%d", l.name, time.Now().UnixMilli())
		l.log.Error("the ledger cannot be read; it is kept aside", "ledger", l.file(), "aside", aside, "err", err)
		if err := l.fs.Create(aside, data); err != nil {
			l.log.Error("the ledger could not be kept aside", "ledger", l.file(), "err", err)
		}
	}
	return f.Notices
}

func (l *ledger) write() error {
	data, err := json.MarshalIndent(ledgerFile{Version: 1, Notices: emptyIfNil(l.notices)}, "", " ")
	if err == nil {
		err = l.fs.Update(l.file(), func([]byte) ([]byte, error) { return append(data, '\n'), nil })
	}
	if err != nil {
		return fmt.Errorf("pi: ledger: %w", err)
	}
	return nil
}

// exists reports whether the session has a ledger, whosever it is.
func (l *ledger) exists() bool {
	_, err := l.fs.ReadFile(l.file())
	return err == nil
}

// ours reports whether this host has the ledger.
func (l *ledger) ours() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unlock != nil
}

// add enters a notice; its texts stay in the notes. It blocks until the disk has it. One
// that is entered already stays as it is.
func (l *ledger) add(n bridgeNotice) error {
	n.Items = slices.Clone(n.Items)
	for i := range n.Items {
		if n.Items[i].NotePath != "" {
			n.Items[i].Text = ""
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.notices, func(old bridgeNotice) bool { return old.ID == n.ID }) {
		return nil
	}
	l.notices = append(l.notices, n)
	if l.unlock == nil {
		return nil // in memory only: the file is another host's
	}
	return l.write()
}

// remove strikes out notices that have a receipt.
func (l *ledger) remove(ids []watch.NotificationID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.notices)
	l.notices = slices.DeleteFunc(l.notices, func(n bridgeNotice) bool { return slices.Contains(ids, n.ID) })
	if len(l.notices) == before || l.unlock == nil {
		return nil
	}
	return l.write()
}

// open returns the notices without a receipt, in the order in which they are to be shown.
func (l *ledger) open() []bridgeNotice {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := slices.Clone(l.notices)
	slices.SortStableFunc(open, func(a, b bridgeNotice) int { return a.Order - b.Order })
	return open
}

// release gives the ledger up. The file stays.
func (l *ledger) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlock == nil {
		return nil
	}
	unlock := l.unlock
	l.unlock = nil
	return unlock()
}

func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
