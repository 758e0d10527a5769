package agentdir

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestFind_AnUnknownName_SuggestsAndLists(t *testing.T) {
	w := newWorld(t)
	c := w.load(Options{Home: w.home})
	const all = "; there are planner, reviewer, scout, worker"
	tests := map[string]string{
		"scuot":                   `agentdir: unknown agent "scuot"; did you mean "scout"?` + all,
		"Scout":                   `agentdir: unknown agent "Scout"; did you mean "scout"?` + all,
		"review":                  `agentdir: unknown agent "review"; did you mean "reviewer"?` + all,
		"plan":                    `agentdir: unknown agent "plan"; did you mean "planner"?` + all,
		"painter":                 `agentdir: unknown agent "painter"` + all,
		"":                        `agentdir: unknown agent ""` + all,
		"scout\x1b[2J":            `agentdir: unknown agent "scout\x1b[2J"` + all,
		strings.Repeat("x", 1000): `agentdir: unknown agent "` + strings.Repeat("x", 64) + `…"` + all,
	}
	for name, want := range tests {
		_, err := c.Find(name)
		if !errors.Is(err, ErrUnknown) || err.Error() != want {
			t.Errorf("%q:\n%v, want\n%s", name, err, want)
		}
	}
}

func TestFind_InNothing(t *testing.T) {
	is := is.New(t)
	_, err := Catalog{}.Find("scout")
	is.Equal(err.Error(), `agentdir: unknown agent "scout"; there are none`)
}

func TestFind_ManyAreNotAllListed(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	for i := range 60 {
		w.write(fmt.Sprintf(".agents/agents/a%02d.md", i), file("description: d"))
	}
	_, err := w.load(w.options(ScopeUser)).Find("z")
	is.True(strings.HasSuffix(err.Error(), "a48, a49, 10 more"))
}

func TestCatalog_IsNotChangedThroughWhatItReturns(t *testing.T) {
	is := is.New(t)
	w := newWorld(t)
	c := w.load(Options{Home: w.home})
	c.All()[2].Tools[0] = "bash"
	d, err := c.Find("scout")
	is.NoErr(err)
	d.Tools[1] = "bash"
	again, err := c.Find("scout")
	is.NoErr(err)
	is.Equal(again.Tools, []string{"read", "grep", "find", "ls"})
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"scout", "scout", 0}, {"scuot", "scout", 1},
		{"kitten", "sitting", 3}, {"späher", "spaher", 1}, {"ab", "ba", 1}, {"abc", "cab", 2},
	} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("%q to %q: %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
