package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/agentdir"
	"github.com/pi-shepherd/go-shepherd/adapters/headless"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/pi"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

// children says where agents live.
type children struct {
	panes   bool
	why     string   // in a few words
	childPi []string // what headless agents run; nil: the parent's own pi
	scope   agentdir.Scope
}

// childrenFrom reads the settings: inside Herdr agents live in panes, elsewhere headless,
// unless SHEPHERD_CHILDREN says otherwise.
func childrenFrom(getenv func(string) string) (children, error) {
	inHerdr := getenv("HERDR_ENV") == "1" && getenv("HERDR_SOCKET_PATH") != ""
	c := children{childPi: strings.Fields(getenv("SHEPHERD_CHILD_PI")), scope: agentdir.Scope(getenv("SHEPHERD_AGENTS"))}
	switch c.scope {
	case "", agentdir.ScopeUser, agentdir.ScopeProject, agentdir.ScopeBoth:
	default:
		return c, fmt.Errorf("SHEPHERD_AGENTS=%q: there are user, project and both", c.scope)
	}
	switch setting := getenv("SHEPHERD_CHILDREN"); setting {
	case "", "auto":
		c.panes = inHerdr
		c.why = "this pi runs inside Herdr"
		if !inHerdr {
			c.why = "this pi does not run inside Herdr"
		}
	case "panes", "headless":
		c.panes = setting == "panes"
		c.why = "as SHEPHERD_CHILDREN says"
	default:
		return c, fmt.Errorf("SHEPHERD_CHILDREN=%q: there are auto, panes and headless", setting)
	}
	return c, nil
}

func (c children) open(log *slog.Logger) func(context.Context, *pi.Parent) (pi.Parts, error) {
	return func(_ context.Context, p *pi.Parent) (pi.Parts, error) {
		files := aferofs.OS(p.Dir)
		if c.panes {
			return c.inPanes(p, files, log), nil
		}
		return c.headless(p, files, log), nil
	}
}

// headless agents are child processes: they are not seen and end with this program.
func (c children) headless(p *pi.Parent, files *aferofs.FS, log *slog.Logger) pi.Parts {
	command := headless.DefaultCommand()
	switch {
	case len(c.childPi) > 0:
		command = append(append([]string{}, c.childPi...), command[1:]...)
	case len(p.Program) > 0:
		command = append(append([]string{}, p.Program...), command[1:]...)
	}
	herd := headless.New(headless.Options{Command: command, Dir: p.Dir, Logger: log})
	agents := &defined{Herdr: herd, parent: p, scope: c.scope, trusted: map[string]bool{}}
	return pi.Parts{
		Config: shepherd.Config{Herdr: agents, FS: files},
		Agents: agents.list,
		Place:  "headless processes, out of sight (" + c.why + ")",
		Close:  herd.CloseAll,
	}
}

// Agents in panes can be watched, and stay when this program ends.
func (c children) inPanes(p *pi.Parent, files *aferofs.FS, log *slog.Logger) pi.Parts {
	herd := herdr.New(herdr.Options{
		Links: pi.Links(), Dir: p.Dir, Logger: log,
		Store: herdr.FileStore(files, ".shepherd/herdr.json"), Parent: p.Session,
	})
	agents := &defined{Herdr: herd, parent: p, scope: c.scope, tools: []string{"shepherd_done"}, trusted: map[string]bool{}}
	return pi.Parts{
		Config: shepherd.Config{Herdr: agents, FS: files},
		Agents: agents.list,
		Place:  "panes of Herdr (" + c.why + ")",
		Prune: func(ctx context.Context) ([]string, error) {
			gone, err := herd.Prune(ctx)
			var names []string
			for _, r := range gone {
				names = append(names, fmt.Sprintf("%s, pane %s", r.Key, r.Pane))
			}
			return names, err
		},
		Close: func(context.Context) error { return herd.Detach() },
	}
}
