package herdrtest

import (
	"encoding/json"
	"io"
	"net"
)

// Fault goes wrong with a request. It is asked twice: before the request is carried out, with
// a nil answer, and after. It reports whether it has dealt with the connection.
type Fault func(c net.Conn, r call, answer *reply, down <-chan struct{}) bool

// The faults that a server can have.
var (
	// Hang accepts a request and never answers.
	Hang Fault = func(c net.Conn, _ call, answer *reply, _ <-chan struct{}) bool {
		if answer == nil {
			_, _ = io.Copy(io.Discard, c)
		}
		return answer == nil
	}
	// HalfLine answers with half a line and stalls.
	HalfLine Fault = func(c net.Conn, _ call, answer *reply, _ <-chan struct{}) bool {
		if answer == nil {
			return false
		}
		b, _ := json.Marshal(answer)
		_, _ = c.Write(b[:len(b)/2])
		_, _ = io.Copy(io.Discard, c)
		return true
	}
	// NoNewline answers without an end of line.
	NoNewline Fault = func(c net.Conn, _ call, answer *reply, _ <-chan struct{}) bool {
		if answer == nil {
			return false
		}
		b, _ := json.Marshal(answer)
		_, _ = c.Write(b)
		return true
	}
	// Drop hangs up before anything is done.
	Drop Fault = func(_ net.Conn, _ call, answer *reply, _ <-chan struct{}) bool { return answer == nil }
	// DoneButDrop carries the request out and hangs up without a word.
	DoneButDrop Fault = func(_ net.Conn, _ call, answer *reply, _ <-chan struct{}) bool { return answer != nil }
)

// Refuse answers with an error.
func Refuse(code string) Fault {
	return func(c net.Conn, r call, answer *reply, _ <-chan struct{}) bool {
		if answer == nil {
			write(c, reply{ID: r.ID, Error: refuse(code, "refused by the test")})
		}
		return answer == nil
	}
}

type fault struct {
	method string
	left   int
	do     Fault
}

// Fail makes the next n requests of the method go wrong; negative n: all of them, until
// Mend.
func (s *Server) Fail(method string, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{method, n, f})
}

// Mend takes all faults back. Calls that hang go on hanging.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) faultFor(method string) Fault {
	for _, f := range s.faults {
		if f.method == method && f.left != 0 {
			f.left--
			return f.do
		}
	}
	return nil
}
