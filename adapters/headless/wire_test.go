package headless

import (
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/jsonl"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/turns"
)

func TestReadRecord(t *testing.T) {
	event := func(typ string, m turns.Message) record {
		return record{Type: typ, Event: turns.Event{Type: typ, Message: m}}
	}
	tests := map[string]struct {
		line string
		want record
	}{
		"a run begins": {`{"type":"agent_start"}`, event("agent_start", turns.Message{})},
		"a user's message, as parts": {
			`{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"[sheep:1] do"},{"type":"image","data":"AA=="},{"type":"text","text":" it"}],"timestamp":1}}`,
			event("message_end", turns.Message{Role: "user", Text: "[sheep:1] do it"}),
		},
		"a user's message, as a string": {
			`{"type":"message_end","message":{"role":"user","content":"do it"}}`,
			event("message_end", turns.Message{Role: "user", Text: "do it"}),
		},
		"an assistant's message: only its text parts": {
			`{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","text":"hm"},{"type":"text","text":"a"},{"type":"toolCall","arguments":{"text":"no"}},{"text":"b","type":"text"}],"stopReason":"toolUse","usage":{"input":1}}}`,
			event("message_end", turns.Message{Role: "assistant", Text: "ab", Stop: "toolUse"}),
		},
		"a failed message": {
			`{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"401: \"no\""}}`,
			event("message_end", turns.Message{Role: "assistant", Stop: "error", Error: `401: "no"`}),
		},
		"members in another order": {
			`{"message":{"stopReason":"stop","content":[{"text":"a","type":"text"}],"role":"assistant"},"type":"message_end"}`,
			event("message_end", turns.Message{Role: "assistant", Text: "a", Stop: "stop"}),
		},
		"a tool's result is not kept": {
			`{"type":"message_end","message":{"role":"toolResult","content":[{"type":"text","text":"long"}]}}`,
			event("message_end", turns.Message{Role: "toolResult"}),
		},
		"nor are messages in the making": {
			`{"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"a"}]},"assistantMessageEvent":{"type":"text_delta","delta":"a"}}`,
			event("message_update", turns.Message{}),
		},
		"settled": {
			`{"type":"agent_settled","aborted":true}`,
			record{Type: "agent_settled", Event: turns.Event{Type: "agent_settled", Aborted: true}},
		},
		"accepted": {
			`{"id":"c1","type":"response","command":"prompt","success":true,"data":{"disposition":"started","x":[1]}}`,
			record{Type: "response", ID: "c1", Success: true, Outcome: "started", Event: turns.Event{Type: "response"}},
		},
		"refused": {
			`{"id":"c1","type":"response","command":"prompt","success":false,"error":"No API key"}`,
			record{Type: "response", ID: "c1", Error: "No API key", Event: turns.Event{Type: "response"}},
		},
		"a dialog": {
			`{"type":"extension_ui_request","id":"u-1","method":"select","title":"Pick","options":["A","B"]}`,
			record{Type: "extension_ui_request", ID: "u-1", Method: "select", Event: turns.Event{Type: "extension_ui_request"}},
		},
		"nothing of the kind": {`[{"type":"agent_start"}]`, record{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			lines := jsonl.NewReader(strings.NewReader(tt.line + "\n"))
			is.NoErr(lines.Next())
			got, err := readRecord(lines)
			is.NoErr(err)
			is.Equal(got, tt.want)
		})
	}
}

func TestLinesThatAreWritten(t *testing.T) {
	is := is.New(t)
	is.Equal(string(stateLine("c1")), `{"id":"c1","type":"get_state"}`+"\n")
	is.Equal(string(promptLine("c2", "a\nb\u2028<c>")), `{"id":"c2","type":"prompt","message":"a\nb\u2028\u003cc\u003e"}`+"\n")
	is.Equal(string(cancelLine("u-1")), `{"type":"extension_ui_response","id":"u-1","cancelled":true}`+"\n")
}
