package herdr

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// C55: the right text wherever there is one, whatever else is in the file.
func TestTranscriptReply(t *testing.T) {
	const marker = "[sheep:0123456789ab]"
	user := func(id, parent, text string) string {
		return `{"type":"message","id":"` + id + `","parentId":"` + parent + `","message":{"role":"user","content":[{"type":"text","text":"` + text + `"}]}}`
	}
	says := func(id, parent, text string) string {
		return `{"type":"message","id":"` + id + `","parentId":"` + parent + `","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"` + text + `"}],"stopReason":"stop"}}`
	}
	header := `{"type":"session","version":3,"id":"s","cwd":"/"}`
	ours := user("u", "", marker+`\nwork`)
	lines := func(all ...string) string { return strings.Join(all, "\n") + "\n" }
	for name, tt := range map[string]struct{ file, want string }{
		"one answer":                  {lines(header, ours, says("a", "u", "yes")), "yes"},
		"the last of several":         {lines(header, ours, says("a", "u", "first"), says("b", "a", "last")), "last"},
		"a text that is a string":     {lines(header, `{"id":"u","message":{"role":"user","content":"`+marker+` x"}}`, says("a", "u", "yes")), "yes"},
		"unfinished":                  {lines(header, ours), ""},
		"somebody else's prompt":      {lines(header, user("u", "", "[sheep:another]"), says("a", "u", "no")), ""},
		"a human asked on":            {lines(header, ours, says("a", "u", "yes"), user("h", "a", "and now"), says("b", "h", "no")), "yes"},
		"a line of 30 MB":             {lines(header, ours, `{"type":"message","id":"t","parentId":"u","message":{"role":"toolResult","content":[{"type":"image","data":"`+strings.Repeat("A", 30<<20)+`"}]}}`, says("a", "t", "yes")), "yes"},
		"cut in a character":          {lines(header, ours, says("a", "u", "yes")) + `{"type":"message","id":"c","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"\ud83d` + "\xf0\x9f", "yes"},
		"two records on a line":       {header + ours + says("a", "u", "yes") + "\n", "yes"},
		"CRLF":                        {strings.ReplaceAll(lines(header, ours, says("a", "u", "yes")), "\n", "\r\n"), "yes"},
		"a branch that was left":      {lines(header, ours, says("x", "u", "old"), says("a", "u", "new"), `{"type":"label","id":"l","parentId":"a"}`), "new"},
		"the last line is elsewhere":  {lines(header, ours, says("a", "u", "yes"), `{"type":"label","id":"l","parentId":"s"}`), ""},
		"a circle":                    {lines(`{"id":"a","parentId":"b"}`, `{"id":"b","parentId":"a"}`), ""},
		"rubbish between the records": {lines(header, "Warning: x", ours, "\x00\xff{", says("a", "u", "yes")), "yes"},
		"empty":                       {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			file := filepath.Join(t.TempDir(), "s.jsonl")
			is.NoErr(os.WriteFile(file, []byte(tt.file), 0o600))
			got, err := transcriptReply(file, marker)
			is.NoErr(err)
			is.Equal(got, tt.want)
		})
	}
}

func FuzzTranscript(f *testing.F) {
	f.Add(`{"id":"u","message":{"role":"user","content":"[m]"}}` + "\n" + `{"id":"a","parentId":"u","message":{"role":"assistant","content":[{"type":"text","text":"x"}]}}`)
	f.Add("{}{}\n[\n")
	f.Fuzz(func(t *testing.T, file string) {
		_, _ = findReply(strings.NewReader(file), "[m]")
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"scout":                            "scout",
		"\x1b[1;31mred\x1b[0m":             "red",
		"\x1b]0;title\x07a\x1b]2;t\x1b\\b": "ab",
		"a\tb\n c\x07":                     "a b c",
		"\x1b":                             "",
		"é中🐑\xff":                          "é中🐑",
		"\u200b\u202ex":                    "x",
	} {
		is.New(t).Equal(clean(in), want)
	}
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func TestUniqueName_IsWhatHerdrWants(t *testing.T) {
	is := is.New(t)
	seen := make(map[string]bool)
	for _, name := range []string{"scout", "", "-x", "9lives", "Ünïcode", strings.Repeat("long ", 20), "a_b-c d"} {
		got := uniqueName(name)
		is.True(validName.MatchString(got))
		is.True(!seen[got])
		seen[got] = true
	}
	is.True(!seen[uniqueName("scout")])
}
