package herdr

import (
	"encoding/json"
	"strings"
)

// This file alone knows Herdr's socket API. Only what is used is named; fields, events,
// statuses and codes that are not known pass.

const (
	minProtocol  = 17 // agent.start with a pane, agent.prompt
	minVersion   = "0.7.5"
	testProtocol = 20 // the newest that was tried

	maxRequest = 1 << 20  // bytes of a request's line; the server hangs up on more
	maxLine    = 16 << 20 // bytes of an answer or event that are accepted
)

type request struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	Params any    `json:"params"`
}

type response struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// none is the params of methods without parameters: present and an object.
type none struct{}

type pong struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
}

type placeParams struct {
	WorkspaceID string            `json:"workspace_id,omitempty"` // of tab.create
	Cwd         string            `json:"cwd,omitempty"`
	Focus       bool              `json:"focus"`
	Label       string            `json:"label,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
}

type splitParams struct {
	TargetPaneID string            `json:"target_pane_id"` // never empty: the focused pane would be split
	Direction    string            `json:"direction"`
	Cwd          string            `json:"cwd,omitempty"`
	Focus        bool              `json:"focus"`
	Env          map[string]string `json:"env,omitempty"`
}

type placeResult struct {
	RootPane paneInfo `json:"root_pane"` // of tab.create and workspace.create
	Pane     paneInfo `json:"pane"`      // of pane.split
}

type paneParams struct {
	PaneID string `json:"pane_id"`
}

type paneResult struct {
	Pane paneInfo `json:"pane"`
}

type paneInfo struct {
	PaneID      string `json:"pane_id"`
	TerminalID  string `json:"terminal_id"`
	WorkspaceID string `json:"workspace_id"`
	TabID       string `json:"tab_id"`
	Cwd         string `json:"cwd"`
}

type startParams struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	PaneID    string   `json:"pane_id"`
	Args      []string `json:"args"`
	TimeoutMS int64    `json:"timeout_ms"`
}

type targetParams struct {
	Target string `json:"target"`
}

type promptParams struct {
	Target string `json:"target"`
	Text   string `json:"text"`
}

type keysParams struct {
	PaneID string   `json:"pane_id"`
	Keys   []string `json:"keys"`
}

type agentResult struct {
	Agent agentInfo `json:"agent"`
}

type agentInfo struct {
	paneInfo
	Name             string `json:"name"`
	Agent            string `json:"agent"` // the kind that was recognised
	AgentStatus      string `json:"agent_status"`
	LaunchPending    bool   `json:"launch_pending"`
	InteractiveReady bool   `json:"interactive_ready"`
	StateChangeSeq   uint64 `json:"state_change_seq"`
	AgentSession     *struct {
		Kind  string `json:"kind"` // "path" or "id"
		Value string `json:"value"`
	} `json:"agent_session"`
}

type readParams struct {
	PaneID    string `json:"pane_id"`
	Source    string `json:"source"` // "visible", "recent_unwrapped"
	Lines     int    `json:"lines,omitempty"`
	Format    string `json:"format"`
	StripANSI bool   `json:"strip_ansi"`
}

type readResult struct {
	Read struct {
		Text string `json:"text"`
	} `json:"read"`
}

type processResult struct {
	Info processInfo `json:"process_info"`
}

type processInfo struct {
	ShellPID  int `json:"shell_pid"`
	Group     int `json:"foreground_process_group_id"`
	Processes []struct {
		PID  int    `json:"pid"`
		Name string `json:"name"`
	} `json:"foreground_processes"`
}

// has reports whether the process is in the pane's foreground.
func (p processInfo) has(pid int) bool {
	for _, x := range p.Processes {
		if x.PID == pid {
			return true
		}
	}
	return false
}

// shellAlone reports whether nothing but the pane's own shell runs in the foreground.
func (p processInfo) shellAlone() bool {
	for _, x := range p.Processes {
		if x.PID != p.ShellPID {
			return false
		}
	}
	return p.Group == p.ShellPID
}

// leader is the process id of the program in the foreground, or 0.
func (p processInfo) leader() int {
	if p.shellAlone() {
		return 0
	}
	return p.Group
}

type snapshotResult struct {
	Snapshot snapshot `json:"snapshot"`
}

type snapshot struct {
	Tabs []struct {
		TabID string `json:"tab_id"`
		Label string `json:"label"`
	} `json:"tabs"`
	Workspaces []struct {
		WorkspaceID string `json:"workspace_id"`
		Label       string `json:"label"`
	} `json:"workspaces"`
	Panes  []paneInfo  `json:"panes"`
	Agents []agentInfo `json:"agents"`
}

type subscribeParams struct {
	Subscriptions []subscription `json:"subscriptions"`
}

type subscription struct {
	Type   string `json:"type"`
	PaneID string `json:"pane_id,omitempty"`
}

// pushed is a line on a subscription. Global events have underscores in their names and
// those about one pane have dots; kind makes them one.
type pushed struct {
	Event string `json:"event"`
	Data  struct {
		PaneID         string   `json:"pane_id"`
		TabID          string   `json:"tab_id"`
		WorkspaceID    string   `json:"workspace_id"`
		PreviousPaneID string   `json:"previous_pane_id"`
		Pane           paneInfo `json:"pane"`
	} `json:"data"`
}

func (p pushed) kind() string { return strings.ReplaceAll(p.Event, ".", "_") }

// lifecycleEvents end or move panes. What changes inside a pane is not among them: it is
// asked for pane by pane (statusEvent), or told by the child's link.
var lifecycleEvents = []subscription{
	{Type: "pane.closed"}, {Type: "pane.exited"}, {Type: "pane.moved"}, {Type: "pane.agent_detected"},
	{Type: "tab.closed"}, {Type: "workspace.closed"},
}

const statusEvent = "pane.agent_status_changed"
