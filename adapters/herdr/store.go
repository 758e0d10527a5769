package herdr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Record says what was made for one agent, so that a later process of the same parent finds
// it, and nobody takes what is somebody else's. It holds no secret.
type Record struct {
	Key      string            `json:"key"`            // the agent's name in Herdr
	Parent   string            `json:"parent"`         // Options.Parent
	Agent    lifecycle.AgentID `json:"agent"`          // who it was
	Socket   string            `json:"socket"`         // of the server
	Pane     string            `json:"pane,omitempty"` // "": none was made yet
	Terminal string            `json:"terminal,omitempty"`
	PID      int               `json:"pid,omitempty"` // of the agent's program
	Kind     string            `json:"kind"`
	Dir      string            `json:"dir,omitempty"` // the link's private directory
	Host     int               `json:"host"`          // the process that looks after it
	Made     time.Time         `json:"made"`
}

// Store keeps records. It may be called from many goroutines and processes at once.
type Store interface {
	// List returns all records, also those of other parents.
	List() ([]Record, error)
	// Put keeps a record in place of the one with the same key. When it returns nil, the
	// record survives a crash.
	Put(Record) error
	// Delete forgets the record with the key, if there is one.
	Delete(key string) error
}

// Files is what [FileStore] needs of a file system. notes.FS has it, and with it a project's
// .shepherd directory is where records belong. The methods do what those of notes.FS do.
type Files interface {
	MkdirAll(name string) error
	Update(name string, change func(old []byte) ([]byte, error)) error
	ReadFile(name string) ([]byte, error)
	Lock(ctx context.Context, name string) (unlock func() error, err error)
}

// FileStore returns a store in the JSON file of that name, ".shepherd/herdr.json" for
// example. Its parent directory is made when the first record is. Changes are made under a
// lock beside it, which is waited for at most 10 s.
func FileStore(files Files, name string) Store { return &fileStore{files, name} }

type fileStore struct {
	files Files
	name  string
}

type recordFile struct {
	Version int      `json:"version"`
	Agents  []Record `json:"agents"`
}

func (s *fileStore) List() ([]Record, error) {
	data, err := s.files.ReadFile(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := s.decode(data)
	return f.Agents, err
}

func (s *fileStore) Put(r Record) error {
	if err := s.files.MkdirAll(path.Dir(s.name)); err != nil {
		return err
	}
	return s.change(func(all []Record) []Record { return append(without(all, r.Key), r) })
}

func (s *fileStore) Delete(key string) error {
	err := s.change(func(all []Record) []Record { return without(all, key) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// change edits the records under the lock: an update alone does not exclude another one.
func (s *fileStore) change(edit func([]Record) []Record) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	unlock, err := s.files.Lock(ctx, s.name+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return s.files.Update(s.name, func(old []byte) ([]byte, error) {
		f, err := s.decode(old)
		if err != nil {
			return nil, err // left as it is: it may be all that knows of the agents
		}
		edited := edit(slices.Clone(f.Agents))
		if old == nil && len(edited) == 0 {
			return nil, fs.ErrNotExist
		}
		if slices.Equal(edited, f.Agents) {
			return old, nil
		}
		f.Agents = edited
		data, err := json.MarshalIndent(f, "", "  ")
		return append(data, '\n'), err
	})
}

func (s *fileStore) decode(data []byte) (recordFile, error) {
	f := recordFile{Version: 1}
	if data == nil {
		return f, nil
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("herdr: %s is not a file of records: %w", s.name, err)
	}
	if f.Version != 1 {
		return f, fmt.Errorf("herdr: %s is of version %d; this package knows version 1", s.name, f.Version)
	}
	return f, nil
}

func without(all []Record, key string) []Record {
	return slices.DeleteFunc(all, func(r Record) bool { return r.Key == key })
}

// MemoryStore returns a store that ends with the process. Two Herdrs that share it are as
// two processes with one file.
func MemoryStore() Store { return &memoryStore{} }

type memoryStore struct {
	mu  sync.Mutex
	all []Record
}

func (s *memoryStore) List() ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all), nil
}

func (s *memoryStore) Put(r Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(without(s.all, r.Key), r)
	return nil
}

func (s *memoryStore) Delete(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = without(s.all, key)
	return nil
}

type noStore struct{}

func (noStore) List() ([]Record, error) { return nil, nil }
func (noStore) Put(Record) error        { return nil }
func (noStore) Delete(string) error     { return nil }
