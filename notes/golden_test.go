package notes_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What the files look like, in full.
func TestGolden(t *testing.T) {
	is := is.New(t)
	d := notestest.NewDisk()
	now := time.Date(2025, 8, 14, 9, 30, 0, 0, time.UTC)
	s, err := notes.Open(t.Context(), notes.Config{
		FS: d.View(), Parent: notes.Identity("golden"), SessionName: "fix-oauth-login",
		Now: func() time.Time { now = now.Add(time.Second); return now },
	})
	is.NoErr(err)
	scout, err := s.Reserve(t.Context(), notes.Plan{
		Agent: "scout", Label: "where: is it?", Task: "Find where the retry policy is decided.", Pane: "w8:pY",
		AgentID: "shepherd-agent-0123abcd-x", PromptID: "shepherd-prompt-0123abcd-y", Start: true,
	})
	is.NoErr(err)
	d.Append(scout.RelPath(), "The policy is in `auth/retry.go`.\n")
	finalize(t, scout, notes.Outcome{Status: notes.Completed, Text: "In auth/retry.go, line 40.\n"})
	pair, err := s.ReserveAll(t.Context(), []notes.Plan{{Agent: "planner", Start: true}, {Agent: "reviewer"}})
	is.NoErr(err)
	finalize(t, pair[0], notes.Outcome{Status: notes.TimedOut, Error: "no answer within 1h\nlast seen: 10:00", ReturnCode: 124})
	is.NoErr(pair[0].Late(t.Context(), notes.Outcome{Status: notes.Completed, Text: "Here is the plan."}))
	is.NoErr(pair[1].Start(t.Context(), "w8:pZ"))

	seal := regexp.MustCompile(`\b[0-9a-f]{16}\b|"owner":"[0-9a-f]{8}"`)
	for _, name := range d.Names(s.RelPath()) {
		if strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		got := seal.ReplaceAllString(d.Read(name), "RANDOM")
		golden := filepath.Join("testdata", "golden", path.Base(name))
		if *update {
			is.NoErr(os.MkdirAll(filepath.Dir(golden), 0o755))
			is.NoErr(os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is missing; run with -update", golden)
		}
		if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
			t.Errorf("%s is now\n%s", name, got)
		}
	}
}
