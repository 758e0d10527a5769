package notes

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Whatever a line leaves out, it is read again as it was.
func TestEntry_LeavesOutOnlyWhatItsReaderKnows(t *testing.T) {
	zero, one := 0, 1
	then := at(time.Date(2025, 8, 14, 9, 30, 0, 0, time.UTC))
	later := at(then.Add(time.Second))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		e := &entry{
			File:       pick(rng, "scout-01.md", "scout-1.md", "scout-0.md", "scout.md", "über-7-12.md", "a-100.md"),
			Agent:      pick(rng, "scout", "Scout!"),
			Slug:       pick(rng, "scout", "über-7", "a", "other"),
			Ordinal:    pick(rng, 1, 12, 100),
			Mode:       pick(rng, defaultMode, "single"),
			Status:     pick(rng, Pending, Running, Completed, Failed),
			Reserved:   then,
			Started:    pick(rng, moment{}, then, later),
			ReturnCode: pick(rng, &zero, &one),
		}
		e.encode()
		got, err := decodeEntry(e.raw)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%+v was written as %s and read as %+v, %v", e, e.raw, got, err)
		}
	}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// A line that does not say what its reader would have to guess is refused.
func TestEntry_ThatLacksItsNumber_IsRefused(t *testing.T) {
	for _, line := range []string{
		`{"file":"scout.md","status":"running"}`,
		`{"file":"scout-1.md","slug":"scout","status":"running"}`,
		`{"file":"-01.md","status":"running"}`,
		`{"file":"scout-00.md","status":"running"}`,
	} {
		if e, err := decodeEntry([]byte(line)); err == nil || !strings.Contains(err.Error(), ".md") {
			t.Errorf("%s: %+v, %v", line, e, err)
		}
	}
}
