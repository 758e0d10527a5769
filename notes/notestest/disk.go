package notestest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
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
