package agentdir

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/matryer/is"
)

// file is a definition with these lines of front matter.
func file(lines ...string) string {
	return "---\n" + strings.Join(lines, "\n") + "\n---\nDo it.\n"
}

func TestParse_ReadsDefinitions(t *testing.T) {
	tests := map[string]struct {
		text string
		want Definition
	}{
		"only what is needed": {file("description: d"), Definition{Name: "stem", Description: "d", Prompt: "Do it."}},
		"every field": {
			file("name: Code Reviewer", "description: looks", "model: anthropic/claude", "tools: [read, bash]",
				"omit-system-prompt: true", "omit-context-files: true", "omit-pi-documentation: true",
				"user-invocable: false", "disable-model-invocation: true"),
			Definition{Name: "Code Reviewer", Description: "looks", Model: "anthropic/claude", Tools: []string{"read", "bash"},
				Prompt: "Do it.", OmitSystemPrompt: true, OmitContextFiles: true, OmitPiDocumentation: true,
				HiddenFromUser: true, HiddenFromModel: true}},
		"VS Code's example": {
			file("description: Generate a plan", "name: Planner", "tools: ['web/fetch', 'search/usages']",
				"model: ['Claude Opus 4.5', 'GPT-5.2']  # in order", "handoffs:", "  - label: Go", "    send: false", "argument-hint: x", "target: vscode"),
			Definition{Name: "Planner", Description: "Generate a plan", Model: "Claude Opus 4.5",
				Tools: []string{"web/fetch", "search/usages"}, Prompt: "Do it."}},
		"a model for pi beside others": {file("description: d", "model: [GPT-5 (copilot), ' openai/gpt-5:high ']"),
			Definition{Name: "stem", Description: "d", Model: "openai/gpt-5:high", Prompt: "Do it."}},
		"no models":                 {file("description: d", "model: []"), Definition{Name: "stem", Description: "d", Prompt: "Do it."}},
		"tools as text, twice":      {file("description: d", "tools: read , grep,read"), Definition{Name: "stem", Description: "d", Tools: []string{"read", "grep"}, Prompt: "Do it."}},
		"tools as lines":            {file("description: d", "tools:", "- mcp__x__*", "- ls"), Definition{Name: "stem", Description: "d", Tools: []string{"mcp__x__*", "ls"}, Prompt: "Do it."}},
		"no tools":                  {file("description: d", "tools: []"), Definition{Name: "stem", Description: "d", NoTools: true, Prompt: "Do it."}},
		"tools left open":           {file("description: d", "tools:"), Definition{Name: "stem", Description: "d", Prompt: "Do it."}},
		"a folded description":      {file("description: >", "  one", "  two", "name: |", "  n"), Definition{Name: "n", Description: "one two", Prompt: "Do it."}},
		"quotes":                    {file(`name: "007"`, `description: 'a: b # c'`), Definition{Name: "007", Description: "a: b # c", Prompt: "Do it."}},
		"other alphabets":           {file("name: späher 🐑", "description: d"), Definition{Name: "späher 🐑", Description: "d", Prompt: "Do it."}},
		"an unknown field":          {file("description: d", "color: &a [1, {b: *a}]", "mode: subagent", "thinking: high"), Definition{Name: "stem", Description: "d", Prompt: "Do it."}},
		"flags the other way":       {file("description: d", "user-invocable: true", "disable-model-invocation: false", "omit-context-files: null"), Definition{Name: "stem", Description: "d", Prompt: "Do it."}},
		"windows":                   {"\uFEFF---\r\nname: w\r\ndescription: d\r\n---\r\n\r\na\r\nb\r\n", Definition{Name: "w", Description: "d", Prompt: "a\nb"}},
		"no body":                   {"---\ndescription: d\n---", Definition{Name: "stem", Description: "d"}},
		"a fence in the body":       {"--- \ndescription: d\n---\t\na\n---\nb", Definition{Name: "stem", Description: "d", Prompt: "a\n---\nb"}},
		"dashes that are no fence":  {"---\ndescription: d\nx: |\n ---\n---\nb", Definition{Name: "stem", Description: "d", Prompt: "b"}},
		"64 characters of a name":   {file("name: "+strings.Repeat("ü", 64), "description: d"), Definition{Name: strings.Repeat("ü", 64), Description: "d", Prompt: "Do it."}},
		"a comment and empty lines": {file("# hello", "", "description: d"), Definition{Name: "stem", Description: "d", Prompt: "Do it."}},
	}
	for _, inherit := range []string{"null", "~", "default", "inherit", "Inherit", "[default]"} {
		tests["a model of "+inherit] = struct {
			text string
			want Definition
		}{file("description: d", "model: "+inherit), Definition{Name: "stem", Description: "d", Prompt: "Do it."}}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := parse([]byte(tt.text), "stem")
			is.NoErr(err)
			is.Equal(got, tt.want)
		})
	}
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no text":                 {"---\ndescription: \xff\n---\n", "UTF-8"},
		"a zero byte":             {file("description: d") + "\x00", "UTF-8"},
		"not closed":              {"---\ndescription: d\n", "not closed"},
		"only a fence":            {"---", "not closed"},
		"a huge front matter":     {file("description: d", strings.Repeat("#\n", maxHeader)), "8192 bytes"},
		"nothing in it":           {file(""), "description is missing"},
		"no fields":               {file("- a"), "not a list of fields"},
		"not YAML":                {file("name: [a", "description: d"), "line 2 of the front matter: "},
		"not YAML further down":   {file("name: a", "description: 'd"), "line 2 of the front matter: "},
		"a field twice":           {file("name: a", "description: d", "name: b"), "already defined"},
		"two documents":           {file("name: a", "...", "description: d"), "front matter"},
		"a field that is a list":  {file("[a, b]: c", "description: d"), "front matter"},
		"merging":                 {file("<<: {name: a}", "description: d"), "not plain text"},
		"no description":          {file("name: a"), "description is missing"},
		"an empty description":    {file("description: ' '"), "description is missing"},
		"a number for a name":     {file("name: 007", "description: d"), "name is not text; put quotes"},
		"a list for a name":       {file("name: [a]", "description: d"), "name is not text"},
		"an alias":                {file("x: &x a", "name: *x", "description: d"), "name is not text"},
		"an anchor":               {file("name: &x a", "description: d"), "name is not text"},
		"a tag":                   {file("name: !!str a", "description: d"), "name is not text"},
		"an empty name":           {file("name: ''", "description: d"), "name \"\" is empty"},
		"a long name":             {file("name: "+strings.Repeat("ü", 65), "description: d"), "65 characters, at most 64"},
		"a name of two lines":     {file(`name: "a\nb"`, "description: d"), "cannot be shown"},
		"a name with an escape":   {file(`name: "a\e[31m"`, "description: d"), "cannot be shown"},
		"a name turned around":    {file("name: a\u202Eb", "description: d"), "cannot be shown"},
		"an escape to read":       {file(`description: "\e]0;x\a"`), "description has a character"},
		"an escape for a model":   {file("description: d", `model: "a/b\nc"`), "model has a character"},
		"an empty model":          {file("description: d", "model: ''"), "model is empty"},
		"a model of numbers":      {file("description: d", "model: 4"), "model is not text"},
		"tools that are empty":    {file("description: d", "tools: ''"), "tools has an empty name"},
		"a tool that is empty":    {file("description: d", "tools: [read, '']"), "tools has an empty name"},
		"a number for a tool":     {file("description: d", "tools: [1]"), "an entry of tools is not text"},
		"more tools":              {file("description: d", "tools: +bash"), `"+bash": tools are named`},
		"fewer tools":             {file("description: d", "tools: [-bash]"), `"-bash": tools are named`},
		"two tools in one":        {file("description: d", "tools: ['a,b']"), `"a,b" is not a tool's name`},
		"a tool of two lines":     {file("description: d", `tools: ["a\nb"]`), "is not a tool's name"},
		"a flag in quotes":        {file("description: d", "omit-context-files: 'true'"), "neither true nor false"},
		"a flag that is a word":   {file("description: d", "user-invocable: yes"), "neither true nor false"},
		"nothing to replace with": {"---\ndescription: d\nomit-system-prompt: true\n---\n \n", "omit-system-prompt"},
		"a misspelt field":        {file("description: d", "tool: [read]"), `unknown field "tool"; did you mean tools?`},
		"another spelling":        {file("description: d", "omitContextFiles: true"), "did you mean omit-context-files?"},
		"a field too many":        {file("description: d", "omit-context-file: true"), "did you mean omit-context-files?"},
		"capitals":                {file("Description: d"), "did you mean description?"},
		"a restriction":           {file("description: d", "disallowedTools: Bash"), "disallowedTools has no effect"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := parse([]byte(tt.text), "stem")
			is.True(err != nil)
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want something with %q", err, tt.want)
			}
			is.True(!strings.Contains(err.Error(), "\n")) // one line
		})
	}
}

func TestParse_ADocument_IsNoDefinition(t *testing.T) {
	is := is.New(t)
	for _, text := range []string{"", "# Agents\n", " ---\nname: a\n---\n", "----\n", "\n---\n"} {
		_, err := parse([]byte(text), "stem")
		is.True(errors.Is(err, errNoHeader))
	}
}

func TestParse_AMistakeElsewhere_LeavesTheNameKnown(t *testing.T) {
	is := is.New(t)
	d, err := parse([]byte(file("tools: 1", "name: scout")), "stem")
	is.True(err != nil)
	is.Equal(d.Name, "scout")
	d, err = parse([]byte(file("name: [scout", "description: d")), "stem")
	is.True(err != nil)
	is.Equal(d.Name, "stem")
	d, err = parse([]byte(file(`name: "\e"`)), "stem")
	is.True(err != nil)
	is.Equal(d.Name, "stem")
}

// The parser descends as deep as the text nests; the limit on the text keeps that harmless.
func TestParse_DeepNesting_IsAnErrorOrIgnored(t *testing.T) {
	for _, open := range []string{"[", "{a: ", "- ", "? ", "&a ", "!!map ", "a: b: "} {
		text := file("description: d", "x: "+strings.Repeat(open, (maxHeader-100)/len(open)))
		d, err := parse([]byte(text), "stem")
		if err == nil && d.Description != "d" {
			t.Errorf("%q: %+v", open, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file("name: a", "description: d", "tools: [read, 'x']", "model: p/i"))
	f.Add(file("description: >-", "  a", "tools: a, b", "omit-context-files: true"))
	f.Add("---\r\nname: \"\\u202e\"\r\n---\r\n")
	f.Add(file("x: &a [*a]", "<<: *a", "? b", ": c"))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parse([]byte(text), "stem")
		if d.Name != "stem" && checkName(d.Name) != nil {
			t.Errorf("name %q", d.Name)
		}
		if err != nil {
			return
		}
		printable := func(what, s string) {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Errorf("%s %q", what, s)
			}
		}
		printable("name", d.Name)
		printable("description", d.Description)
		printable("model", d.Model)
		for _, tool := range d.Tools {
			printable("tool", tool)
			if tool == "" || strings.ContainsAny(tool, ",") || strings.ContainsAny(tool[:1], "+-") {
				t.Errorf("tool %q", tool)
			}
		}
		if d.Description == "" || d.NoTools != (d.NoTools && d.Tools == nil) {
			t.Errorf("%+v", d)
		}
		if !utf8.ValidString(d.Prompt) || strings.TrimSpace(d.Prompt) != d.Prompt {
			t.Errorf("prompt %q", d.Prompt)
		}
	})
}

// FuzzParse_Names writes any name as YAML does, and reads it back.
func FuzzParse_Names(f *testing.F) {
	for _, name := range []string{"scout", "fix: login # now", `"quoted"`, "- item", "yes", "0012", "null", "---", "a\nb", "~", "🐑", "x\u2028y"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !utf8.ValidString(name) {
			return // YAML is UTF-8
		}
		header, err := yaml.MarshalWithOptions(map[string]string{"name": name, "description": "d"}, yaml.JSON())
		if err != nil {
			return // a definition that is refused
		}
		d, err := parse([]byte("---\n"+string(header)+"---\n"), "stem")
		want := strings.TrimSpace(name)
		if checkName(want) == nil && (err != nil || d.Name != want) {
			t.Errorf("%q became %q, %v", name, d.Name, err)
		}
		if checkName(want) != nil && err == nil && d.Name != "stem" {
			t.Errorf("%q was accepted as %q", name, d.Name)
		}
	})
}
