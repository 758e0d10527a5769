// Package childenv makes the environment of an agent's process. The agent must not take
// itself for its parent: whatever names the parent's pane, session or place in the tree
// stays behind, and the depth goes up by one (ruling R16).
package childenv

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// DepthVar tells a process how many shepherds stand above it. Without it there are none.
const DepthVar = "SHEPHERD_DEPTH"

// ErrTooDeep: this process is itself an agent, as deep as agents may be.
var ErrTooDeep = errors.New("agents may not start further agents here")

// identity: variables that begin so are about the parent.
var identity = []string{"HERDR_", "PI_SESSION_", "SHEPHERD_"}

// Depth returns the depth of the process with environment environ. A value that makes no
// sense counts as limit: who cannot say how deep it is starts nothing.
func Depth(environ []string, limit int) int {
	depth := 0
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, DepthVar+"="); ok {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				n = limit
			}
			depth = n
		}
	}
	return depth
}

// Build returns the environment for a child of the process with environment environ: that
// one without the parent's identity, with the variables of add on top (later maps win) and
// the depth raised, which add cannot change. environ stays as it is. At the limit the error
// matches [ErrTooDeep].
func Build(environ []string, limit int, add ...map[string]string) ([]string, error) {
	depth := Depth(environ, limit)
	if depth >= limit {
		return nil, fmt.Errorf("%w: depth %d of at most %d (%s); do the work yourself, or let the host raise the limit", ErrTooDeep, depth, limit, DepthVar)
	}
	env := make([]string, 0, len(environ)+1)
	for _, kv := range environ {
		if !slices.ContainsFunc(identity, func(p string) bool { return strings.HasPrefix(kv, p) }) {
			env = append(env, kv)
		}
	}
	for _, vars := range add {
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(vars[name], "\x00") {
				return nil, fmt.Errorf("environment variable %q cannot be set: its name or value has a character that is not allowed", name)
			}
			env = append(env, name+"="+vars[name])
		}
	}
	return append(env, DepthVar+"="+strconv.Itoa(depth+1)), nil
}
