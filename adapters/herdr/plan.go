package herdr

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/childenv"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// plan checks all that can be checked before anything is made.
func (h *Herdr) plan(s lifecycle.Spec) (a *agent, dir string, env map[string]string, err error) {
	kind := cmp.Or(s.Kind, "pi")
	for _, arg := range s.Args {
		if strings.ContainsFunc(arg, isControl) {
			return nil, "", nil, fmt.Errorf("%w: argument %q has a control character; it is typed into a shell", lifecycle.ErrInvalid, arg)
		}
	}
	if dir, err = childenv.Dir(cmp.Or(s.Dir, h.o.Dir)); err != nil {
		return nil, "", nil, err
	}
	if env, err = environment(os.Environ(), h.o.MaxDepth, h.o.Env, s.Env); err != nil {
		return nil, "", nil, err
	}
	return newAgent(h, s, kind, uniqueName(s.Name)), dir, env, nil
}

// environment returns what is put on top of the server's environment. The server may have
// been started by our parent, so what names us is overridden, not left out.
func environment(environ []string, limit int, add ...map[string]string) (map[string]string, error) {
	if _, err := childenv.Build(environ, limit, add...); err != nil {
		return nil, err
	}
	env := make(map[string]string)
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SHEPHERD_") || strings.HasPrefix(name, "PI_SESSION_") {
			env[name] = ""
		}
	}
	for _, vars := range add {
		for name, value := range vars {
			env[name] = value
		}
	}
	env[childenv.DepthVar] = strconv.Itoa(childenv.Depth(environ, limit) + 1)
	return env, nil
}

// inDir: a pane that is somewhere else than it should be gets no prompt.
func inDir(p paneInfo, dir string) error {
	if p.Cwd == "" || p.Cwd == dir {
		return nil
	}
	want, err := os.Stat(dir)
	is, err2 := os.Stat(p.Cwd)
	if err == nil && err2 == nil && os.SameFile(want, is) {
		return nil
	}
	return fmt.Errorf("%w: pane %s is in %q, not in %q", ErrStart, p.PaneID, p.Cwd, dir)
}

// uniqueName returns a name as Herdr wants it, with an end that no other agent has.
func uniqueName(name string) string {
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b strings.Builder
	for _, r := range strings.ToLower(clean(name)) {
		switch {
		case b.Len() == 26:
		case r >= 'a' && r <= 'z', b.Len() > 0 && (r >= '0' && r <= '9' || r == '_'):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	end := make([]byte, 5)
	for i := range end {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(chars))))
		end[i] = chars[n.Int64()]
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "agent") + "-" + string(end)
}
