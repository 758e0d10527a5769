package main

import (
	"strings"
	"testing"
)

func TestWhereChildrenLive(t *testing.T) {
	herdr := map[string]string{"HERDR_ENV": "1", "HERDR_SOCKET_PATH": "/run/herdr.sock"}
	for name, test := range map[string]struct {
		env   map[string]string
		panes bool
		err   string
	}{
		"nothing is set":           {nil, false, ""},
		"inside Herdr":             {herdr, true, ""},
		"a leftover of Herdr":      {map[string]string{"HERDR_SOCKET_PATH": "/run/herdr.sock"}, false, ""},
		"panes, wherever":          {map[string]string{"SHEPHERD_CHILDREN": "panes"}, true, ""},
		"headless, wherever":       {with(herdr, "SHEPHERD_CHILDREN", "headless"), false, ""},
		"a misspelt setting":       {map[string]string{"SHEPHERD_CHILDREN": "pains"}, false, `SHEPHERD_CHILDREN="pains": there are auto, panes and headless`},
		"a misspelt agents' scope": {map[string]string{"SHEPHERD_AGENTS": "all"}, false, `SHEPHERD_AGENTS="all"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := childrenFrom(func(name string) string { return test.env[name] })
			if (err != nil) != (test.err != "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && (c.panes != test.panes || c.why == "") {
				t.Errorf("panes %v because %q, want %v", c.panes, c.why, test.panes)
			}
		})
	}
}

func with(env map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for k, v := range env {
		all[k] = v
	}
	return all
}
