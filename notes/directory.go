package notes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Beside the sessions lie two helpers. Neither is believed over a session.json, and either
// can be removed: the next allocation makes them again.
//
//	.bindings/<hash>   one line: the directory of the parent with that hash
//	.directory         one line for each number ever given: directory, and hash or "-"
const (
	pointersDir   = sessionsDir + "/.bindings"
	directoryFile = sessionsDir + "/.directory"
)

// readPointer returns the name of the directory that a parent's pointer names, or "".
func readPointer(fsys FS, hash string) (string, error) {
	data, err := fsys.ReadFile(path.Join(pointersDir, hash))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("notes: %w", err)
	}
	dir := strings.TrimSuffix(string(data), "\n")
	if !validSessionDir(dir) {
		return "", nil
	}
	return dir, nil
}

// writePointer is durable, and done before a session is: so a session without a pointer is
// one whose pointer was removed by hand.
func writePointer(fsys FS, hash, dir string) error {
	err := fsys.Update(path.Join(pointersDir, hash), func([]byte) ([]byte, error) {
		return []byte(dir + "\n"), nil
	})
	if err != nil {
		return fmt.Errorf("notes: %w", err)
	}
	return nil
}

// directory is the list of all sessions and of the numbers they have.
type directory struct {
	names  []string
	hashes map[string]string // directory → hash; "" if it is nobody's
}

// survey reads the list and adds what it does not know. Only unknown directories are
// looked into.
func survey(fsys FS) (*directory, error) {
	d := &directory{hashes: make(map[string]string)}
	data, err := fsys.ReadFile(directoryFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("notes: %w", err)
	}
	for line := range bytes.Lines(data) {
		name, hash, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if _, numbered := sessionNumber(name); numbered {
			d.add(name, strings.TrimPrefix(hash, "-"))
		}
	}
	files, err := fsys.ReadDir(sessionsDir)
	if err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	for _, f := range files {
		if _, numbered := sessionNumber(f.Name()); !numbered {
			continue
		}
		if _, known := d.hashes[f.Name()]; !known {
			d.add(f.Name(), peek(fsys, f.Name()))
		}
	}
	return d, nil
}

func (d *directory) add(name, hash string) {
	if _, known := d.hashes[name]; !known {
		d.names = append(d.names, name)
	}
	d.hashes[name] = hash
}

// of returns the directories that are said to be a parent's, the newest first.
func (d *directory) of(hash string) (names []string) {
	for _, name := range slices.Backward(d.names) {
		if d.hashes[name] == hash && validSessionDir(name) {
			names = append(names, name)
		}
	}
	return names
}

// last is the highest number that was ever given.
func (d *directory) last() (last int) {
	for _, name := range d.names {
		n, _ := sessionNumber(name)
		last = max(last, n)
	}
	return last
}

func (d *directory) save(fsys FS) error {
	var b bytes.Buffer
	for _, name := range d.names {
		hash := d.hashes[name]
		if hash == "" {
			hash = "-"
		}
		b.WriteString(name + " " + hash + "\n")
	}
	return derive(fsys, directoryFile, b.Bytes())
}

// peek returns the hash of whose session a directory is, also if the session is of a newer
// version; "" if it is nobody's.
func peek(fsys FS, dir string) string {
	data, err := fsys.ReadFile(path.Join(sessionsDir, dir, recordFile))
	if err != nil {
		return ""
	}
	var r struct {
		Version json.RawMessage `json:"noteSessionVersion"`
		Parent  struct {
			Identity string `json:"identity"`
		} `json:"parentPiSession"`
	}
	if json.Unmarshal(data, &r) != nil || r.Version == nil {
		return ""
	}
	hash, _ := strings.CutPrefix(r.Parent.Identity, hashPrefix)
	if len(hash) != 64 {
		return ""
	}
	return hash
}
