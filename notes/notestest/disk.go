package notestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
)

// Errors with which a [Disk] ends a process, given by its Fault hook.
var (
	// ErrKill: the process dies at this step. What it has written stays, also what it has
	// not synced; its locks are free.
	ErrKill = errors.New("notestest: kill the process here")
	// ErrPowerCut: the machine dies at this step. What is not synced is lost.
	ErrPowerCut = errors.New("notestest: cut the power here")

	// ErrKilled is what a dead process gets from every operation.
	ErrKilled = errors.New("notestest: the process is dead")
)

// Disk is a model of a disk in memory, for fault tests: it knows what has been written and
// what has been synced, and every single step can be made to fail, to hang, to kill the
// process or to cut the power. Each [Disk.View] is one process's [notes.FS] on it.
//
// Locks are made of channels, so all of it works inside a testing/synctest bubble.
type Disk struct {
	// Root is the path that views report. Change it to move the project.
	Root string
	// Fault is asked before every step, from many goroutines. An error makes the step fail
	// with it: an errno, ErrKill, ErrPowerCut. It may block, as a disk that hangs does. Set
	// it while nothing runs.
	Fault func(Step) error
	// Tracing keeps the steps that were carried out, for Trace. Set it while nothing runs.
	Tracing bool

	mu    sync.Mutex
	top   *inode
	last  uint64 // the newest inode or version
	temps int
	locks map[string]chan struct{}
	views []*View
	trace []Step
}

// Step is one step of an operation.
type Step struct {
	Op   string // "create", "update", "derive", "mkdir", "read", "readdir", "stamp", "lock", "unlock"
	Name string
	Part string // of a write: "temp", "write", "sync", "rename", "dirsync", "ack"; otherwise ""
}

func (s Step) String() string { return strings.TrimSpace(s.Op + " " + s.Name + " " + s.Part) }

// inode is a file, a directory or a symbolic link.
type inode struct {
	version uint64 // changes with the content
	mode    fs.FileMode

	data, synced []byte // of a file: as it is, and as it survives a power cut

	names, syncedNames map[string]*inode // of a directory
	target             string            // of a link
}

func (n *inode) isDir() bool  { return n.names != nil }
func (n *inode) isLink() bool { return n.target != "" }

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	d := &Disk{Root: "/project", locks: make(map[string]chan struct{})}
	d.top = d.dir()
	return d
}

func (d *Disk) dir() *inode {
	d.last++
	return &inode{version: d.last, mode: fs.ModeDir | 0o755, names: map[string]*inode{}, syncedNames: map[string]*inode{}}
}

// View returns the file system as a new process sees it.
func (d *Disk) View() *View {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := &View{d: d}
	d.views = append(d.views, v)
	return v
}

// PowerCut kills every process and loses what is not synced.
func (d *Disk) PowerCut() {
	d.mu.Lock()
	views := slices.Clone(d.views)
	d.mu.Unlock()
	for _, v := range views {
		v.Kill()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.top.revert()
}

func (n *inode) revert() {
	n.data = bytes.Clone(n.synced)
	if n.isDir() {
		n.names = maps.Clone(n.syncedNames)
		for _, child := range n.names {
			child.revert()
		}
	}
}

// Trace returns the steps carried out so far, in order, and forgets them.
func (d *Disk) Trace() []Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	steps := d.trace
	d.trace = nil
	return steps
}

// The following are for what others do to the disk: a child, an editor, a user. They fail
// a test's set-up with a panic.

// Write replaces a file in place, through no temporary file, and syncs it.
func (d *Disk) Write(name, content string) {
	d.edit(name, func(dir *inode, base string) {
		n := dir.names[base]
		if n == nil || n.isDir() {
			n = &inode{mode: 0o644}
		}
		d.last++
		n.version, n.data, n.synced = d.last, []byte(content), []byte(content)
		dir.names[base], dir.syncedNames[base] = n, n
	})
}

// Append is Write with what is there already in front.
func (d *Disk) Append(name, content string) { d.Write(name, d.Read(name)+content) }

// Read returns a file's content.
func (d *Disk) Read(name string) (content string) {
	d.edit(name, func(dir *inode, base string) { content = string(dir.names[base].data) })
	return content
}

// Remove removes a file, or a directory with all that is in it.
func (d *Disk) Remove(name string) {
	d.edit(name, func(dir *inode, base string) {
		delete(dir.names, base)
		delete(dir.syncedNames, base)
	})
}

// Symlink puts a symbolic link in the place of whatever has the name.
func (d *Disk) Symlink(target, name string) {
	d.edit(name, func(dir *inode, base string) {
		n := &inode{mode: fs.ModeSymlink | 0o777, target: target}
		dir.names[base], dir.syncedNames[base] = n, n
	})
}

// Names returns the names of all files and links below a directory, temporary and hidden
// ones included, sorted.
func (d *Disk) Names(dir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(dir)
	if err != nil {
		return nil
	}
	var names []string
	n.walk(dir, func(name string) { names = append(names, name) })
	slices.Sort(names)
	return names
}

func (n *inode) walk(name string, file func(string)) {
	for base, child := range n.names {
		if child.isDir() {
			child.walk(path.Join(name, base), file)
		} else {
			file(path.Join(name, base))
		}
	}
}

func (d *Disk) edit(name string, change func(dir *inode, base string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, err := d.find(path.Dir(name))
	if err != nil || !dir.isDir() {
		panic(fmt.Sprintf("notestest: %s: no such directory", path.Dir(name)))
	}
	change(dir, path.Base(name))
}

var (
	errSymlink = errors.New("a symbolic link is in the way")
	errNotDir  = errors.New("not a directory")
	errIsDir   = errors.New("is a directory")
)

// find walks to a name and refuses symbolic links. It is called with mu held.
func (d *Disk) find(name string) (*inode, error) {
	n := d.top
	if name == "." {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !n.isDir() {
			return nil, errNotDir
		}
		if n = n.names[part]; n == nil {
			return nil, fs.ErrNotExist
		}
		if n.isLink() {
			return nil, errSymlink
		}
	}
	return n, nil
}

// View is the file system as one process sees it: a [notes.FS] that can be killed.
type View struct {
	d    *Disk
	mu   sync.Mutex
	held map[int]func() // frees a lock
	next int
	dead bool
}

var (
	_ notes.FS      = (*View)(nil)
	_ notes.Deriver = (*View)(nil)
	_ notes.Stamper = (*View)(nil)
)

// Kill ends the process: its locks are free and its operations fail with ErrKilled.
func (v *View) Kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
	for _, free := range v.held {
		free()
	}
	v.held = nil
}

// step asks the hook, and notes the step if it may happen.
func (v *View) step(op, name, part string) error {
	s := Step{op, name, part}
	if !v.alive() {
		return &fs.PathError{Op: op, Path: name, Err: ErrKilled}
	}
	var err error
	if v.d.Fault != nil {
		err = v.d.Fault(s)
	}
	switch {
	case errors.Is(err, ErrKill):
		v.Kill()
	case errors.Is(err, ErrPowerCut):
		v.d.PowerCut()
	}
	if !v.alive() { // also if it was killed while the hook had it
		err = ErrKilled
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	if v.d.Tracing {
		v.d.mu.Lock()
		defer v.d.mu.Unlock()
		v.d.trace = append(v.d.trace, s)
	}
	return nil
}

func (v *View) alive() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.dead
}

func begin(v *View, op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return v.step(op, name, "")
}

// Root returns the path of the project.
func (v *View) Root() string { return v.d.Root }

// Mkdir is [notes.FS.Mkdir].
func (v *View) Mkdir(name string) error {
	if err := begin(v, "mkdir", name); err != nil {
		return err
	}
	err := v.change("mkdir", name, func(dir *inode, base string) error {
		if dir.names[base] != nil {
			return fs.ErrExist
		}
		dir.names[base] = v.d.dir()
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.syncDir("mkdir", name); err != nil {
		return err
	}
	return v.step("mkdir", name, "ack")
}

// MkdirAll is [notes.FS.MkdirAll].
func (v *View) MkdirAll(name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrInvalid}
	}
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		v.d.mu.Lock()
		n, err := v.d.find(name[:i])
		v.d.mu.Unlock()
		switch {
		case err == nil && n.isDir():
			continue
		case err == nil:
			err = errNotDir
		case errors.Is(err, fs.ErrNotExist):
			if err := v.Mkdir(name[:i]); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			continue
		}
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

// change edits the directory that a name is in.
func (v *View) change(op, name string, f func(dir *inode, base string) error) error {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	dir, err := v.d.find(path.Dir(name))
	if err == nil && !dir.isDir() {
		err = errNotDir
	}
	if err == nil {
		if n := dir.names[path.Base(name)]; n != nil && n.isLink() && op != "mkdir" {
			err = errSymlink
		} else {
			err = f(dir, path.Base(name))
		}
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (v *View) syncDir(op, name string) error {
	if err := v.step(op, name, "dirsync"); err != nil {
		return err
	}
	return v.change(op, name, func(dir *inode, _ string) error {
		dir.syncedNames = maps.Clone(dir.names)
		return nil
	})
}

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

// Stamp is [notes.Stamper].
func (v *View) Stamp(name string) (string, error) {
	var stamp string
	err := v.read("stamp", name, func(n *inode) { stamp = fmt.Sprint(n.version) })
	return stamp, err
}

// ReadFile is [notes.FS.ReadFile].
func (v *View) ReadFile(name string) ([]byte, error) {
	var data []byte
	err := v.read("read", name, func(n *inode) { data = append([]byte{}, n.data...) })
	return data, err
}

func (v *View) read(op, name string, f func(*inode)) error {
	if err := begin(v, op, name); err != nil {
		return err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	n, err := v.d.find(name)
	if err == nil && n.isDir() {
		err = errIsDir
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	f(n)
	return nil
}

// ReadDir is [notes.FS.ReadDir].
func (v *View) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := begin(v, "readdir", name); err != nil {
		return nil, err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	dir, err := v.d.find(name)
	if err == nil && !dir.isDir() {
		err = errNotDir
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	var entries []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(dir.names)) {
		if !strings.HasPrefix(base, tempPrefix) {
			n := dir.names[base]
			entries = append(entries, fs.FileInfoToDirEntry(info{base, int64(len(n.data)), n.mode}))
		}
	}
	return entries, nil
}

// info is a file's [fs.FileInfo].
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

// Lock is [notes.FS.Lock].
func (v *View) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	if err := begin(v, "lock", name); err != nil {
		return nil, err
	}
	err = v.change("lock", name, func(dir *inode, base string) error {
		if dir.names[base] == nil {
			dir.names[base] = &inode{mode: 0o644}
		}
		if dir.names[base].isDir() {
			return errIsDir
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	lock := v.d.lock(name)
	select {
	case lock <- struct{}{}:
	case <-ctx.Done():
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ctx.Err()}
	}
	return v.hold(name, lock)
}

func (d *Disk) lock(name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.locks[name]
	if c == nil {
		c = make(chan struct{}, 1)
		d.locks[name] = c
	}
	return c
}

// hold keeps a lock for the process until it is unlocked or the process dies.
func (v *View) hold(name string, lock chan struct{}) (unlock func() error, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead {
		<-lock
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrKilled}
	}
	if v.held == nil {
		v.held = make(map[int]func())
	}
	v.next++
	id := v.next
	v.held[id] = func() { <-lock }
	return func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if free := v.held[id]; free != nil {
			delete(v.held, id)
			free()
		}
		return nil
	}, nil
}
