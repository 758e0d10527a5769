package pi

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pi-shepherd/go-shepherd/lifecycle"
	"github.com/pi-shepherd/go-shepherd/watch"
)

// What goes over the bridge: JSON-RPC 2.0, one object a line. The other half is
// extension/parent.ts.
//
//	extension ──► host   hello, session, leave, tool, show     requests
//	                     receipts, cancel                      notifications
//	host ──► extension   notice, confirm                       requests
//	                     watch, herd                           notifications

// BridgeProtocol is the version of what host and extension say to each other.
const BridgeProtocol = 1

// maxNoticeText is how much of one completion's text goes into a notice, in bytes (ruling R20).
const maxNoticeText = 64 << 10

// codeSessionOver is the extension's answer to a notice for a session that is not there.
const codeSessionOver = 1

type bridgeHello struct {
	Protocol int    `json:"protocol"`
	Token    string `json:"token"` // over a socket
	Tools    string `json:"tools"` // the hash of the extension's list
	PID      int    `json:"pid"`
}

type bridgeWelcome struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	Tools    string `json:"tools"` // the hash of the host's list
}

// bridgeSession says which session pi is in, at its start and whenever the host is new.
type bridgeSession struct {
	ID        string                 `json:"id"`
	File      string                 `json:"file"` // "": pi keeps none, so it cannot be resumed
	Mode      string                 `json:"mode"` // tui, rpc, print, json
	Dir       string                 `json:"dir"`
	Model     string                 `json:"model"`     // provider/id, "" if none is chosen
	Restart   bool                   `json:"restart"`   // only the host is new
	Seen      []watch.NotificationID `json:"seen"`      // notices that stand in the session
	Watches   []bridgeWatch          `json:"watches"`   // on a restart: those that have something open
	Ephemeral string                 `json:"ephemeral"` // on a restart: what the answer said
	Program   []string               `json:"program"`   // how pi itself was started, if that is known
}

type bridgeEntered struct {
	Again     []bridgeNotice `json:"again"` // notices without a receipt
	Place     string         `json:"place"` // where children live
	Ephemeral string         `json:"ephemeral,omitempty"`
	Warning   string         `json:"warning,omitempty"`
}

type bridgeLeave struct {
	Session string `json:"session"`
	Reason  string `json:"reason"` // quit, new, resume, fork
}

type bridgeCall struct {
	Session string          `json:"session"`
	Call    string          `json:"call"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args"`
	Model   string          `json:"model"`
}

type bridgeResult struct {
	Text       string         `json:"text"`
	Details    map[string]any `json:"details"`
	IsError    bool           `json:"isError"`
	ReturnCode int            `json:"returnCode"`
}

type bridgeShow struct {
	Session string `json:"session"`
	What    string `json:"what"` // notes, settings
}

type bridgeReceipts struct {
	Session string                 `json:"session"`
	IDs     []watch.NotificationID `json:"ids"`
}

type bridgeCancel struct {
	Call string `json:"call"`
}

type bridgeConfirm struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// bridgeWatch is an open watch, as both sides know it, so that each can outlive the other.
type bridgeWatch struct {
	ID      watch.ID       `json:"watcherId"`
	Order   int            `json:"order"` // of the registration, in its session
	Last    int            `json:"last"`  // the number of its newest notice
	Prompts []bridgePrompt `json:"prompts"`
}

// bridgePrompt is what is known of a prompt beside its result.
type bridgePrompt struct {
	ID       lifecycle.PromptID `json:"promptId"`
	AgentID  lifecycle.AgentID  `json:"agentId"`
	Agent    string             `json:"agent"`
	Label    string             `json:"label"`
	NotePath string             `json:"notePath"`
	Started  time.Time          `json:"started"`
	Input    int                `json:"input"` // its place in the watch
}

// bridgeNotice is one notification of watch, for one session.
type bridgeNotice struct {
	ID      watch.NotificationID `json:"id"`
	WatchID watch.ID             `json:"watcherId"`
	Order   int                  `json:"order"`
	Session string               `json:"session"`
	Pending int                  `json:"pending"`
	Items   []bridgeItem         `json:"items"`
}

// bridgeItem is one completion. The names are those of the tools' results.
type bridgeItem struct {
	WatchID    watch.ID           `json:"watcherId"`
	PromptID   lifecycle.PromptID `json:"promptId"`
	AgentID    lifecycle.AgentID  `json:"agentId"`
	Agent      string             `json:"agent"`
	Label      string             `json:"label"`
	Status     lifecycle.Status   `json:"status"`
	OK         bool               `json:"ok"`
	ReturnCode int                `json:"returnCode"`
	Error      string             `json:"error,omitempty"`
	Text       string             `json:"text,omitempty"` // not in the ledger: the note has it
	NotePath   string             `json:"notePath,omitempty"`
	NoteError  string             `json:"noteError,omitempty"`
	Inferred   bool               `json:"inferred,omitempty"`
	Waited     bool               `json:"waited,omitempty"`
	Pending    int                `json:"pending"`
	Seconds    float64            `json:"seconds,omitempty"` // from submission to ending
	Input      int                `json:"input"`             // the prompt's place in its watch
}

// bridgeChild is one agent in the widget.
type bridgeChild struct {
	ID    lifecycle.AgentID `json:"id"`
	Agent string            `json:"agent"`
	Label string            `json:"label"`
	State string            `json:"state"`
	Since int64             `json:"since"`           // ms since 1970
	Until int64             `json:"until,omitempty"` // ms since 1970; finished: the age stands still
}

func itemOf(c watch.Completion, p bridgePrompt) bridgeItem {
	i := bridgeItem{
		Input:   p.Input,
		WatchID: c.WatcherID, PromptID: c.PromptID, AgentID: c.AgentID, Agent: c.Agent, Label: c.Label,
		Status: c.Status, OK: c.OK(), ReturnCode: c.ReturnCode, Error: cutText(c.Error, c.NotePath),
		Text: cutText(c.Text, c.NotePath), NotePath: c.NotePath, Inferred: c.Inferred, Waited: c.Waited, Pending: c.Pending,
	}
	if c.NoteErr != nil {
		i.NoteError = c.NoteErr.Error()
	}
	if !p.Started.IsZero() && c.At.After(p.Started) {
		i.Seconds = c.At.Sub(p.Started).Seconds()
	}
	return i
}

// cutText makes a text fit for a notice: valid UTF-8, at most maxNoticeText bytes, saying
// what was cut and where the whole is.
func cutText(text, notePath string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxNoticeText {
		return text
	}
	end := maxNoticeText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	where := "the note has the whole"
	if notePath != "" {
		where = "the whole is in " + notePath
	}
	return text[:end] + "\n[cut here: " + sizeOf(end) + " of " + sizeOf(len(text)) + "; " + where + "]"
}
