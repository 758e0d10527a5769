package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/pi-shepherd/go-shepherd/adapters/agentdir"
	"github.com/pi-shepherd/go-shepherd/adapters/pi"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// defined is a Herdr that starts agents as their definitions say, with the model that the
// parent uses at that moment unless a definition names another.
type defined struct {
	lifecycle.Herdr
	parent *pi.Parent
	scope  agentdir.Scope
	tools  []string // that every agent must have

	asking  sync.Mutex // one question at a time
	trusted map[string]bool
}

// Launch starts an agent by the name of its definition. An unknown name is an error that
// lists what there is.
func (h *defined) Launch(ctx context.Context, s lifecycle.Spec) (lifecycle.Target, error) {
	catalog, err := h.catalog(ctx)
	if err != nil {
		return "", err
	}
	d, err := catalog.Find(s.Name)
	if err != nil {
		return "", err
	}
	s, err = d.Apply(s, agentdir.Launch{Model: h.parent.Model(), Tools: h.tools})
	if err != nil {
		return "", err
	}
	return h.Herdr.Launch(ctx, s)
}

// Recent is the Herdr's: all of ours have it.
func (h *defined) Recent(ctx context.Context, t lifecycle.Target) (string, error) {
	return h.Herdr.(lifecycle.OutputReader).Recent(ctx, t)
}

func (h *defined) catalog(ctx context.Context) (agentdir.Catalog, error) {
	return agentdir.Load(ctx, agentdir.Options{Project: h.parent.Dir, Scope: h.scope, Trust: h.trust})
}

// trust asks the user once for each directory. Who cannot be asked has not agreed.
func (h *defined) trust(ctx context.Context, dir string, names []string) bool {
	h.asking.Lock()
	defer h.asking.Unlock()
	key := dir + "\x00" + strings.Join(names, "\x00")
	if trusted, asked := h.trusted[key]; asked {
		return trusted
	}
	ok, err := h.parent.Confirm(ctx, "Use this project's agents?",
		fmt.Sprintf("%s defines %s. Their prompts tell an agent with tools what to do, so say yes only if you trust this project.", dir, strings.Join(names, ", ")))
	if err == nil && h.parent.Mode() != "print" && h.parent.Mode() != "json" {
		h.trusted[key] = ok
	}
	return ok && err == nil
}

// list is what shepherd_agents shows.
func (h *defined) list(ctx context.Context) ([]pi.Definition, error) {
	catalog, err := h.catalog(ctx)
	if err != nil {
		return nil, err
	}
	var list []pi.Definition
	for _, d := range catalog.All() {
		if !d.HiddenFromModel {
			list = append(list, pi.Definition{Name: d.Name, Description: d.Description, Source: d.Source, Model: d.Model})
		}
	}
	for _, b := range catalog.Broken() {
		list = append(list, pi.Definition{Description: "cannot be used: " + b.Error(), Source: "broken"})
	}
	return list, nil
}
