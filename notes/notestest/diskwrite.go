package notestest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
)

// Create is [notes.FS.Create].
func (v *View) Create(name string, data []byte) error {
	if err := begin(v, "create", name); err != nil {
		return err
	}
	_, err := v.replace("create", name, data, func(old *inode) bool { return old == nil })
	return err
}

// Update is [notes.FS.Update].
func (v *View) Update(name string, change func(old []byte) ([]byte, error)) error {
	if err := begin(v, "update", name); err != nil {
		return err
	}
	for {
		var old []byte
		var was uint64
		err := v.change("update", name, func(dir *inode, base string) error {
			if n := dir.names[base]; n != nil && n.isDir() {
				return errIsDir
			} else if n != nil {
				old, was = n.data, n.version // content is replaced, never changed in place
			}
			return nil
		})
		if err != nil {
			return err
		}
		var given []byte
		if was != 0 {
			given = append([]byte{}, old...) // change may write into it
		}
		data, err := change(given)
		if err != nil {
			return err
		}
		if was != 0 && bytes.Equal(old, data) || was == 0 && data == nil {
			return nil
		}
		same := func(n *inode) bool { return n == nil && was == 0 || n != nil && n.version == was }
		done, err := v.replace("update", name, data, same)
		if err != nil || done {
			return err
		}
	}
}

// Derive is [notes.Deriver].
func (v *View) Derive(name string, data []byte) error {
	if err := begin(v, "derive", name); err != nil {
		return err
	}
	_, err := v.replace("derive", name, data, func(*inode) bool { return true })
	return err
}

// replace writes a file whole: temporary file, sync, rename, sync of the directory. It is
// done only if ok says so of what has the name at that moment.
func (v *View) replace(op, name string, data []byte, ok func(old *inode) bool) (done bool, err error) {
	d := v.d
	d.mu.Lock()
	d.temps++
	temp := path.Join(path.Dir(name), fmt.Sprintf("%s%d", tempPrefix, d.temps))
	d.mu.Unlock()
	n := &inode{mode: 0o644}
	steps := []struct {
		part string
		do   func(dir *inode, base string) error
	}{
		{"temp", func(dir *inode, base string) error {
			if op == "create" && dir.names[base] != nil {
				return fs.ErrExist
			}
			dir.names[path.Base(temp)] = n
			return nil
		}},
		{"write", func(*inode, string) error {
			d.last++
			n.version, n.data = d.last, bytes.Clone(data)
			return nil
		}},
		{"sync", func(*inode, string) error {
			n.synced = bytes.Clone(n.data)
			return nil
		}},
		{"rename", func(dir *inode, base string) error {
			old := dir.names[base]
			switch {
			case old != nil && old.isDir() && op != "create":
				return errIsDir
			case !ok(old) && op == "create":
				return fs.ErrExist
			case !ok(old):
				delete(dir.names, path.Base(temp))
				return nil
			case old != nil:
				n.mode = old.mode
			}
			delete(dir.names, path.Base(temp))
			dir.names[base] = n
			done = true
			return nil
		}},
	}
	for _, s := range steps {
		if op == "derive" && s.part == "sync" {
			continue
		}
		if err = v.step(op, name, s.part); err == nil {
			err = v.change(op, name, s.do)
		}
		if err != nil {
			v.discard(temp)
			return false, err
		}
	}
	if op == "derive" || !done {
		return done, nil
	}
	if err := v.syncDir(op, name); err != nil {
		return true, err
	}
	return true, v.step(op, name, "ack")
}

// discard removes a temporary file after an error; a dead process does not.
func (v *View) discard(temp string) {
	if !v.alive() {
		return
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	if dir, err := v.d.find(path.Dir(temp)); err == nil {
		delete(dir.names, path.Base(temp))
	}
}

const tempPrefix = ".tmp-"
