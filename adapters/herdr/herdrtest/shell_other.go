//go:build !unix

package herdrtest

// startShell: there are no pseudo-terminals here.
func (s *Server) startShell(p *pane) program {
	s.fatal("real programs need a unix")
	return &shell{s: s, p: p}
}
