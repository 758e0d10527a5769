// Package notes keeps the notes of a parent session on disk: one numbered directory for
// each parent and project, one note for each prompt, and one index that links them all. It
// knows nothing of agents: it is told what is planned and how it ended.
//
//	session, err := notes.Open(ctx, notes.Config{FS: …, Parent: …})    // resume, or allocate exactly one
//	note, err := session.Reserve(ctx, notes.Plan{Agent: "scout", …})   // before anything is submitted
//	message += "\n\n" + note.Brief()                                   // what the child is told
//	err = note.Finalize(ctx, notes.Outcome{Status: notes.Completed, …})
//
// # On disk
//
//	<project>/.shepherd/sessions/
//	├── 0007-fix-oauth-login/
//	│   ├── session.json       the truth: binding, and one line for each note
//	│   ├── notes-0001-….json  the lines of old notes, once there are many; session.json names it
//	│   ├── shepherd.md        the fieldnotes, derived from the two
//	│   ├── scout-01.md        front matter │ the child's own words │ one marked section
//	│   ├── planner-01.md
//	│   ├── .lock              held during a transaction
//	│   └── .owner-1a2b3c4d    held by a process as long as it looks after notes here
//	├── .bindings/<hash>       which directory is a parent's; a hint, made again when missing
//	├── .directory             which numbers were given, and to whom; likewise
//	└── .lock                  held while a session is allocated
//
// A session belongs to a parent's identity, of which only the hash is written, and to the
// project in which it lies, wherever that is moved. It is found by the hash, whose cost does
// not depend on how many sessions there are, and believed only if its session.json says the
// same. Names read from disk are checked and joined to the directory they were read from;
// paths read from disk are never used. Nothing is ever removed or renamed.
//
// Between Start and Finalize a note's file is its child's. What the child leaves in it is
// kept byte for byte; the front matter is ours, and lines that a child adds to it move to
// the beginning of the body. The final output in the section is framed by its length and
// comes back exactly, whatever is in it.
//
// # Transactions and locks
//
// Each change is one transaction: lock, read, change, write session.json, render
// shepherd.md, unlock. What goes on at the same time in one process shares a transaction.
// session.json is decoded and rendered again only where it changed, and old notes that have
// ended move into pages, files that are written once: so it stays short, however many notes
// there are, and only the index grows. Acknowledged means that the note and session.json have
// been synced, renamed and their directory synced, in this order and the note first;
// shepherd.md is not waited for.
//
// Locks are taken in the order sessions, session, owner, and none is held while nothing is
// written but the owner's. They are the kernel's, so a dead process holds none, and what is
// in their files means nothing.
//
// # What a crash can leave
//
//   - A numbered directory without session.json: an allocation that was cut short. It is no
//     session, and its number is not used again.
//   - A note's file without an entry in session.json: a reservation that was cut short. It
//     was never given out, and its name is not used again.
//   - A finished note whose entry is not: [Session.Unfinished] or another Finalize indexes it.
//   - A page that session.json does not name: it means nothing, and is named by the next
//     transaction if it is what that would write.
//   - An index that is behind session.json: the next opening or transaction writes it again.
//   - Notes that are pending or running: [Session.Unfinished] lists them.
//   - Temporary files of the file system: they are not listed and not read.
//
// # Goroutines
//
// A Session starts one goroutine when something is to be written and none is at work; it
// carries out what is waiting, and ends. Nobody has to wait for it: every caller waits for
// its own job. There is no other.
//
// # Testing
//
// Package notestest has the suites that every [FS] has to pass, a model of a disk in memory
// whose every step can fail, hang, kill or lose what is not synced, and the benchmarks.
package notes
