// Report reads `go test -json` from standard input and prints what a person wants of it: a
// line for each package, the output of what failed, and what was skipped. It fails when a
// test failed, when nothing ran, and, with CI=true, when a test was skipped that .ci/skips
// does not list.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
}

type name struct{ pkg, test string }

func main() {
	allowed, err := os.ReadFile(".ci/skips")
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	r := report{output: map[name]*strings.Builder{}, allowed: strings.Split(string(allowed), "\n")}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	if !r.close(os.Getenv("CI") == "true") {
		os.Exit(1)
	}
}

type report struct {
	output          map[name]*strings.Builder
	allowed         []string
	passed, failed  int
	skipped, banned []string
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil { // a compiler's or a vet's own words
		os.Stdout.Write(line)
		return
	}
	n := name{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if r.output[n] == nil {
			r.output[n] = &strings.Builder{}
		}
		r.output[n].WriteString(e.Output)
		if e.Test == "" && (e.Action == "build-output" || strings.HasPrefix(e.Output, "ok ") || strings.HasPrefix(e.Output, "FAIL\t") || strings.HasPrefix(e.Output, "panic:")) {
			fmt.Print(e.Output)
		}
		return
	case "pass":
		if e.Test != "" {
			r.passed++
		}
	case "fail":
		r.failed++
		if e.Test == "" {
			fmt.Print(r.text(n))
		} else {
			fmt.Printf("%s %s\n%s", e.Package, e.Test, r.text(n))
		}
	case "skip":
		if e.Test != "" {
			r.skip(n)
		}
	default:
		return
	}
	delete(r.output, n)
}

func (r *report) text(n name) string {
	if b := r.output[n]; b != nil {
		return b.String()
	}
	return ""
}

// skip notes a skipped test with its reason.
func (r *report) skip(n name) {
	reason := ""
	for line := range strings.Lines(r.text(n)) {
		if !strings.HasPrefix(line, "===") && !strings.HasPrefix(strings.TrimSpace(line), "---") {
			reason += strings.TrimSpace(line) + " "
		}
	}
	said := n.pkg + " " + n.test + ": " + strings.TrimSpace(reason)
	r.skipped = append(r.skipped, said)
	for _, a := range r.allowed {
		if a != "" && !strings.HasPrefix(a, "#") && strings.Contains(said, a) {
			return
		}
	}
	r.banned = append(r.banned, said)
}

func (r *report) close(ci bool) bool {
	for _, s := range r.skipped {
		fmt.Println("skipped:", s)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skipped))
	if ci {
		for _, s := range r.banned {
			fmt.Println("not to be skipped here:", s)
		}
	}
	return r.failed == 0 && r.passed > 0 && (!ci || len(r.banned) == 0)
}
