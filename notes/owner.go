package notes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"sync"
	"time"
)

// owner is this Session's mark on the notes it looks after: a word in their entries, and a
// lock of that name which is held as long as the Session lives. The lock is the kernel's, so
// a process that died holds none; whoever gets the lock of an entry's owner knows that
// nobody looks after the note any more.
type owner struct {
	mu     sync.Mutex
	id     string
	unlock func() error
}

func ownerFile(id string) string { return ".owner-" + id }

// probeTime bounds how long the lock of an owner who is alive is waited for.
const probeTime = 20 * time.Millisecond

// own returns the owner's word and takes its lock the first time. It is called under the
// session's lock.
func (s *Session) own() (string, error) {
	s.owner.mu.Lock()
	id := s.owner.id
	s.owner.mu.Unlock()
	if id != "" {
		return id, nil
	}
	var b [4]byte
	_, _ = rand.Read(b[:])
	id = hex.EncodeToString(b[:])
	ctx, cancel := context.WithTimeout(context.Background(), s.lockTimeout)
	defer cancel()
	unlock, err := lock(ctx, s.fs, s.rel(ownerFile(id)), s.dir)
	if err != nil {
		return "", err
	}
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.owner.id, s.owner.unlock = id, unlock
	return id, nil
}

// Close says that this process does not look after its notes any more: what it has not
// finalised is for others to take over, as it would be after its death. It does not block
// and deletes nothing; calls after it work as before.
func (s *Session) Close() error {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	unlock := s.owner.unlock
	s.owner.id, s.owner.unlock = "", nil
	if unlock == nil {
		return nil
	}
	return unlock()
}

// alive reports whether somebody else looks after notes with this owner's word. It is asked
// about one owner once a call of Unfinished.
func alive(ctx context.Context, fsys FS, dir, id string) (bool, error) {
	if !validName(id) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	unlock, err := fsys.Lock(ctx, dir+"/"+ownerFile(id))
	switch {
	case err == nil:
		return false, unlock()
	case errors.Is(err, context.DeadlineExceeded):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}
