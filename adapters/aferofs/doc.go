// Package aferofs is [notes.FS] over afero: a project's directory on disk ([OS]) and a tree
// in memory ([Memory]), with one and the same code above them.
//
//	shepherd.Config{FS: aferofs.OS(project)}   // a host
//	shepherd.Config{FS: aferofs.Memory()}      // a test, also inside testing/synctest
//
// # How a file is written
//
// Always whole, next to its target, and in this order:
//
//	temporary file   O_EXCL, name from a cryptographic source, mode bits of the target
//	write, sync      its content is on the disk
//	look again       Update only: still the content that change was given?
//	publish          Create: a hard link, which fails if the name is taken
//	                 Update: a rename over the target
//	sync directory   the name is on the disk
//	return nil       acknowledged
//
// A process that dies on the way leaves a temporary file at most. It has a recognisable
// name (.shepherd-….tmp), which no method accepts and ReadDir does not list. An error of the
// last step says that the new content is in place but not promised.
//
// Between looking again and the rename lie some microseconds in which a foreign program's
// write can still be lost; programs that take the lock do not have that window.
//
// # Durability
//
// [SyncAll], the default, is the list above. [SyncFiles] leaves out the directory's sync: a
// crash of the machine may then take back what was acknowledged, but never leaves half a
// file. What it saves is little, a tenth or so; what costs is the file's own sync. Medians of
// eight runs on a busy virtual machine with ext4, in milliseconds:
//
//	          bare   SyncAll   SyncFiles   Derive
//	  1 kB    1.5    1.6       1.4         1.1
//	 30 kB    1.4    1.6       1.4         1.0
//	300 kB    1.9    2.5       2.2         1.4
//
// where bare is temporary file, sync, rename and directory sync by system calls alone
// (go test -bench Write ./adapters/aferofs).
//
// # Containment
//
// A name is walked from the root one component at a time. Each must be a real directory,
// and is opened through its parent ([os.Root]) and compared with what was looked at, so
// that a directory swapped for a link in between is noticed and not followed. Everything is
// made, read, linked and removed through the directory that was opened in this way. Two
// libraries take paths only: natefinch/atomic for the rename and gofrs/flock for the lock.
// Both are given nothing to create, and what they did is compared with the open directory
// before anything is acknowledged. What is left to somebody who swaps directories at the
// right moment is to have us rename a file that they put elsewhere under our temporary name.
//
// # Modes and owners
//
// Notes are files of the project and get the modes of its other files: 0644, and 0755 for
// directories, less what the umask takes away. Under a umask of 077 they are private. The
// mode bits of a file that exists are kept, so that a note made private stays private; its
// owner, ACLs and extended attributes are those of a new file.
//
// # Other systems
//
// Create needs hard links. Where the file system has none (exFAT, some network and shared
// mounts), Linux and macOS rename without replacing instead; elsewhere Create fails and says
// so. Windows has no sync for directories; there the rename itself writes through, and
// Create and Mkdir rest on NTFS's journal. On Windows a file that somebody holds open
// without sharing cannot be replaced: Update fails and leaves it as it was.
//
// # Goroutines
//
// A Lock that has to wait for another process waits in the kernel, in a goroutine, because
// that queue is fair and costs nothing. If ctx ends first that goroutine stays, at most one
// for each lock name and FS; it gives the lock back as soon as it gets it, unless a later
// Lock has taken it over. A Lock whose ctx ends within 100 ms asks once a millisecond
// instead and leaves nothing behind.
package aferofs
