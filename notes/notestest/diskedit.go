package notestest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
)

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
