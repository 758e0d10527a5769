package main

import (
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
)

// agent is what the scripted agents do, in their own processes: think, write to their own
// note, answer.
func agent(t *headlesstest.Turn) {
	t.Think(1200 * time.Millisecond)
	if !strings.Contains(t.Text, "Plan") {
		_ = t.Note("Looked at client.go, transport.go and retry.go.") // without a note the answer will do
		t.Say("In retry.go: the policy is decided there, and the transport only asks it.")
		return
	}
	t.Think(700 * time.Millisecond)
	_ = t.Note("A fake clock makes the waiting free.")
	t.Say("1. A server that fails twice. 2. A clock that the test moves. 3. Count the attempts.")
}
