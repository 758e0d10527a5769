package herdrtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"time"
	"unicode/utf8"
)

// serve answers the one request of a connection.
func (s *Server) serve(c net.Conn, down chan struct{}) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	_ = c.SetReadDeadline(time.Now().Add(lineTime))
	in := bufio.NewReader(io.LimitReader(c, maxLine+1))
	line, err := in.ReadBytes('\n')
	if err != nil || len(line) > maxLine || len(bytes.TrimSpace(line)) == 0 || !utf8.Valid(line) {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	r, refusal := decode(line)
	if refusal != nil {
		write(c, reply{Error: refusal})
		return
	}
	fault := s.count(r.Method)
	if fault != nil && fault(c, r, nil, down) {
		return
	}
	if r.Method == "events.subscribe" {
		s.subscribe(c, r, down)
		return
	}
	result, refusal := s.handle(r.Method, r.Params, down)
	if errors.Is(refusal, errDown) {
		return
	}
	answer := reply{ID: r.ID, Result: result, Error: refusal}
	if refusal != nil && refusal.unheard {
		answer.ID = ""
	}
	if fault != nil && fault(c, r, &answer, down) {
		return
	}
	write(c, answer)
}

// count notes the request and returns what is to go wrong with it.
func (s *Server) count(method string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[method]++
	return s.faultFor(method)
}

type call struct {
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type reply struct {
	ID     string   `json:"id"`
	Result any      `json:"result,omitempty"`
	Error  *refusal `json:"error,omitempty"`
}

// refusal is an error answer.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	unheard bool   // the request was not understood: answered without its id
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// errDown: the server has ended meanwhile; there is no answer.
var errDown = &refusal{Code: "server_unavailable", Message: "server is shutting down"}

func refuse(code, message string) *refusal { return &refusal{Code: code, Message: message} }

func invalid(message string) *refusal {
	return &refusal{Code: "invalid_request", Message: "invalid request: " + message, unheard: true}
}

func decode(line []byte) (call, *refusal) {
	var r call
	if err := json.Unmarshal(line, &r); err != nil {
		return r, invalid(err.Error())
	}
	if p := bytes.TrimSpace(r.Params); len(p) == 0 || p[0] != '{' {
		return r, invalid("params must be an object")
	}
	if _, ok := methods[r.Method]; !ok && r.Method != "events.subscribe" {
		return r, invalid("unknown variant `" + r.Method + "`, expected one of `ping`, `server.stop`, …")
	}
	return r, nil
}

func write(c net.Conn, v any) bool {
	b, err := json.Marshal(v)
	if err != nil {
		panic("herdrtest: " + err.Error())
	}
	_ = c.SetWriteDeadline(time.Now().Add(lineTime))
	_, err = c.Write(append(b, '\n'))
	return err == nil
}

// handle carries out a request.
func (s *Server) handle(method string, params json.RawMessage, down chan struct{}) (any, *refusal) {
	if strings.HasSuffix(method, ".wait") || method == "pane.wait_for_output" || method == "agent.prompt" {
		return s.waits(method, params, down)
	}
	if method == "server.stop" {
		time.AfterFunc(s.o.Tick, s.Stop) // the answer comes first
		return ok, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return methods[method](s, params)
}
