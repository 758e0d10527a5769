package notes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// A parent opens its session, reserves a note before it hands the work out, and writes down
// how the work ended. In a program the FS is one on disk, see adapters/aferofs.
func Example() {
	ctx := context.Background()
	disk := notestest.NewDisk()
	morning := time.Date(2025, 8, 14, 9, 30, 0, 0, time.UTC)
	session, err := notes.Open(ctx, notes.Config{
		FS:          disk.View(),
		Parent:      notes.Identity("nightly-review"),
		SessionName: "Fix OAuth login",
		Now:         func() time.Time { return morning },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	note, err := session.Reserve(ctx, notes.Plan{Agent: "scout", Label: "where is it?", Pane: "w8:pY", Start: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(note.RelPath())
	fmt.Println()

	if err := note.Finalize(ctx, notes.Outcome{Status: notes.Completed, Text: "In auth/retry.go."}); err != nil {
		fmt.Println(err)
	}
	fmt.Print(disk.Read(session.RelPath() + "/shepherd.md"))

	// Output:
	// .shepherd/sessions/0001-fix-oauth-login/scout-01.md
	//
	// # Session 0001: Fix OAuth login
	//
	// - Status: completed (1 completed)
	// - Session: 0001-fix-oauth-login
	// - Parent: bound to sha256:add4e99c
	// - Project: /project
	// - Started: 2025-08-14T09:30:00.000Z
	// - Updated: 2025-08-14T09:30:00.000Z
	// - Modes: lifecycle
	//
	// ## Notes
	//
	// 1. [Scout 01](./scout-01.md): completed, where is it?
	//
	// ## Flow
	//
	// [Scout 01](./scout-01.md)
}
