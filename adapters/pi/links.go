package pi

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/childenv"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// ErrNotOurs: a directory given to Reopen is not one that Open has made.
var ErrNotOurs = errors.New("pi: not a launch directory")

//go:embed extension/child.ts
var childExtension []byte

// The files of a launch directory.
const (
	extensionFile = "child.ts"
	tokenFile     = "token"
	roleFile      = "role.md"
	socketFile    = "link"
	signalFile    = "signal.json"
	sessionFile   = "session.jsonl"
)

const (
	dirPrefix     = "shepherd-"
	maxSocketPath = 103 // bytes; what the strictest of the systems allows
)

// Links returns the links of pi children, for herdr.Options.Links. It may be used from many
// goroutines at once, and by many at the same time.
func Links() link.Links { return links{} }

type links struct{}

// Open makes a launch directory below [os.TempDir] and listens in it; see link.Links. It
// does not block. Errors are those of the file system and the network, with the path.
func (links) Open(ctx context.Context, s lifecycle.Spec, on func(link.Event)) (link.Link, error) {
	l, err := open(ctx, s, on)
	if err != nil {
		return nil, fmt.Errorf("pi: open a link for %s: %w", s.Name, err)
	}
	return l, nil
}

func open(ctx context.Context, s lifecycle.Spec, on func(link.Event)) (_ *childLink, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	dir := filepath.Join(os.TempDir(), dirPrefix+strings.ToLower(rand.Text()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	token := rand.Text()
	for name, data := range map[string][]byte{
		extensionFile: childExtension,
		tokenFile:     []byte(token),
		roleFile:      []byte(role(s)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return listen(dir, token, on)
}

// Reopen listens again in the directory of an earlier link, whose host is gone; see
// link.Links. Errors: ErrNotOurs; fs.ErrNotExist when the directory is gone; another host
// that still listens there is one, too.
func (links) Reopen(ctx context.Context, dir string, on func(link.Event)) (link.Link, error) {
	l, err := reopen(ctx, dir, on)
	if err != nil {
		return nil, fmt.Errorf("pi: reopen the link in %s: %w", dir, err)
	}
	return l, nil
}

func reopen(ctx context.Context, dir string, on func(link.Event)) (*childLink, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := checkOurs(dir); err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(dir, tokenFile))
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, socketFile)
	if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
		conn.Close()
		return nil, errors.New("another process listens there")
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // left by a host that was killed
	}
	return listen(dir, string(token), on)
}

// checkOurs looks at a path that was read from somewhere before anything in it is believed.
func checkOurs(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !filepath.IsAbs(dir), !strings.HasPrefix(filepath.Base(dir), dirPrefix):
		return fmt.Errorf("%w: its name", ErrNotOurs)
	case !info.IsDir(), info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: it is %v", ErrNotOurs, info.Mode())
	}
	return nil
}

func listen(dir, token string, on func(link.Event)) (*childLink, error) {
	socket := filepath.Join(dir, socketFile)
	if n := len(socket); n > maxSocketPath {
		return nil, fmt.Errorf("%s is %d bytes long, a socket's path may have %d; set TMPDIR to a shorter directory", socket, n, maxSocketPath)
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return newLink(dir, token, ln, on), nil
}

// Launch returns what a pi needs so that it connects: see link.Link. Nothing in it makes pi
// ask a question at its start.
func (l *childLink) Launch() (env map[string]string, args []string) {
	depth := childenv.Depth(os.Environ(), 1) + 1
	env = map[string]string{
		"SHEPHERD_LINK":       l.dir,
		"SHEPHERD_LINK_TOKEN": l.token,
		childenv.DepthVar:     strconv.Itoa(depth),
		"PI_OFFLINE":          "1", // starts in 0.3 s instead of 10 when the network is slow
	}
	args = []string{
		"-na",
		"-e", filepath.Join(l.dir, extensionFile),
		"--session", filepath.Join(l.dir, sessionFile),
	}
	return env, args
}

// role is what the agent is told about itself, in its system prompt.
func role(s lifecycle.Spec) string {
	who := fmt.Sprintf("the agent %q", s.Name)
	if s.Label != "" {
		who += fmt.Sprintf(" (%s)", s.Label)
	}
	return "You are " + who + ". An orchestrating agent has started you and gives you tasks as user messages. " +
		"The first line of each, a bracketed [sheep:…], is for bookkeeping: ignore it. " +
		"When your turn ends, your last message goes back as the result: make it complete in itself. " +
		"If a task fails, or a return code is asked for, say so with the tool shepherd_done before that message. " +
		"A human may also type here; the orchestrator does not see that.\n"
}
