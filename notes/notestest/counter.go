package notestest

import (
	"errors"
	"path"
	"sync"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// Counter wraps a file system and counts what is asked of it. It is safe for concurrent use.
type Counter struct {
	notes.FS
	mu sync.Mutex
	c  Counts
}

// Counts is what a [Counter] has counted.
type Counts struct {
	Synced  int // durable writes of whole files: each is a sync of the file and one of its directory
	Bytes   int // written durably
	Derived int // bytes written without waiting for the disk
	Commits int // writes of a session.json
	Reads   int
}

// Take returns the counts so far and begins anew.
func (c *Counter) Take() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.c
	c.c = Counts{}
	return n
}

func (c *Counter) count(f func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.c)
}

func (c *Counter) wrote(name string, n int) {
	c.count(func(c *Counts) {
		c.Synced++
		c.Bytes += n
		if path.Base(name) == "session.json" {
			c.Commits++
		}
	})
}

// Create counts a durable write.
func (c *Counter) Create(name string, data []byte) error {
	c.wrote(name, len(data))
	return c.FS.Create(name, data)
}

// Update counts a durable write unless change keeps the file.
func (c *Counter) Update(name string, change func([]byte) ([]byte, error)) error {
	return c.FS.Update(name, func(old []byte) ([]byte, error) {
		was := string(old)
		data, err := change(old)
		if err == nil && string(data) != was {
			c.wrote(name, len(data))
		}
		return data, err
	})
}

// ReadFile counts a read.
func (c *Counter) ReadFile(name string) ([]byte, error) {
	c.count(func(c *Counts) { c.Reads++ })
	return c.FS.ReadFile(name)
}

// Derive is that of the wrapped file system, or Update if it has none.
func (c *Counter) Derive(name string, data []byte) error {
	d, ok := c.FS.(notes.Deriver)
	if !ok {
		return c.Update(name, func([]byte) ([]byte, error) { return data, nil })
	}
	c.count(func(c *Counts) { c.Derived += len(data) })
	return d.Derive(name, data)
}

// Stamp is that of the wrapped file system, or an error if it has none.
func (c *Counter) Stamp(name string) (string, error) {
	if s, ok := c.FS.(notes.Stamper); ok {
		return s.Stamp(name)
	}
	return "", errors.ErrUnsupported
}

// Err is that of the wrapped file system.
func (c *Counter) Err() error {
	if check, ok := c.FS.(notes.Checker); ok {
		return check.Err()
	}
	return nil
}
