package agentdir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Options say where to look. The zero value: the current user's directories and the bundled
// definitions.
type Options struct {
	// Home is the user's home directory. "" is the current user's, and then
	// $PI_CODING_AGENT_DIR, if set, takes the place of ~/.pi/agent.
	Home string
	// Project is a directory in the project. Required where Scope asks for a project's
	// definitions.
	Project string
	// Scope is ScopeUser by default.
	Scope Scope
	// Trust is asked before anything of a project's directory is used; nil trusts none. It
	// gets the directory's real absolute path and the agents' names, which a stranger may have
	// chosen; all of it is printable. It may block, for a human to answer; ctx is Load's.
	Trust func(ctx context.Context, dir string, names []string) bool
	// NoBundled leaves the bundled definitions out.
	NoBundled bool
}

// Scope says whose directories to look into. The bundled definitions do not depend on it.
type Scope string

// The scopes.
const (
	ScopeUser    Scope = "user"
	ScopeProject Scope = "project"
	ScopeBoth    Scope = "both"
)

// Load reads all definitions. It asks Trust at most once for each of the project's two
// directories, with nothing held open meanwhile, and reads every file once: what was asked
// about is what is used. It may be called by many at once if Trust may.
//
// What is wrong with a file or a directory is in the catalog. An error is about the options
// (an unknown scope, no home directory, a project that is not there) or ctx's own.
func Load(ctx context.Context, o Options) (Catalog, error) {
	places, err := o.places()
	if err != nil {
		return Catalog{}, fmt.Errorf("agentdir: %w", err)
	}
	var c Catalog
	for _, p := range places {
		found, err := p.read(ctx)
		if err != nil {
			return Catalog{}, fmt.Errorf("agentdir: %w", err)
		}
		names := found.names()
		if p.level == LevelProject && len(names) > 0 {
			trusted := o.Trust != nil && o.Trust(ctx, printable(p.path), eachPrintable(names))
			if err := context.Cause(ctx); err != nil {
				return Catalog{}, fmt.Errorf("agentdir: %w", err)
			}
			if !trusted {
				c.untrusted = append(c.untrusted, p.path)
				continue
			}
		}
		c.add(found)
	}
	return c, nil
}

// places are where to look, the first to be believed first.
func (o Options) places() ([]place, error) {
	user, err := o.userDirs()
	if err != nil {
		return nil, err
	}
	var places []place
	switch o.Scope {
	case "", ScopeUser, ScopeBoth:
		for _, dir := range user {
			places = append(places, userPlace(dir))
		}
	case ScopeProject:
	default:
		return nil, fmt.Errorf("unknown scope %q; there are user, project and both", string(o.Scope))
	}
	if o.Scope == ScopeProject || o.Scope == ScopeBoth {
		project, err := o.projectPlaces(user)
		if err != nil {
			return nil, err
		}
		places = append(places, project...)
	}
	if !o.NoBundled {
		places = append(places, bundledPlace())
	}
	return places, nil
}

func (o Options) userDirs() ([]string, error) {
	home, agent := o.Home, ""
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return nil, err
		}
		agent = os.Getenv("PI_CODING_AGENT_DIR")
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return nil, err
	}
	if agent == "" {
		agent = filepath.Join(home, ".pi", "agent")
	}
	if agent, err = filepath.Abs(agent); err != nil {
		return nil, err
	}
	return []string{filepath.Join(agent, "agents"), filepath.Join(home, ".agents", "agents")}, nil
}

func (o Options) projectPlaces(user []string) ([]place, error) {
	if o.Project == "" {
		return nil, fmt.Errorf("scope %q needs a project", string(o.Scope))
	}
	project, err := filepath.Abs(o.Project)
	if err != nil {
		return nil, err
	}
	if project, err = filepath.EvalSymlinks(project); err != nil { // its real parents, not those of a link to it
		return nil, fmt.Errorf("project: %w", err)
	}
	var places []place
	for _, sub := range []string{filepath.Join(".pi", "agents"), filepath.Join(".agents", "agents")} {
		if root, ok := upward(project, sub, user); ok {
			places = append(places, projectPlace(root, sub))
		}
	}
	return places, nil
}

// upward finds dir or the nearest directory above it that has sub. The user's own directories
// do not count: a project may well lie below the home directory.
func upward(dir, sub string, user []string) (string, bool) {
	for {
		info, err := os.Stat(filepath.Join(dir, sub))
		isUsers := func(d string) bool {
			other, err := os.Stat(d)
			return err == nil && os.SameFile(info, other)
		}
		if err == nil && info.IsDir() && !slices.ContainsFunc(user, isUsers) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
