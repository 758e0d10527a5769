package herdrtest

import (
	"encoding/json"
	"path/filepath"
)

func (s *Server) workspaceCreate(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	if p.Label == "" {
		p.Label = filepath.Base(p.Cwd)
	}
	w := s.model.addWorkspace(p.Label)
	if p.Focus {
		s.model.active = w
	}
	t := s.model.addTab(w, "")
	q := s.newPane(t, p.Cwd, p.Env)
	s.model.emit("tab_created", object{"tab": s.model.tabInfo(t)})
	s.model.emit("workspace_created", object{"workspace": s.model.workspaceInfo(w)})
	return object{"type": "workspace_created", "workspace": s.model.workspaceInfo(w),
		"tab": s.model.tabInfo(t), "root_pane": s.model.paneInfo(q)}, nil
}

func (s *Server) workspaceList(json.RawMessage) (any, *refusal) {
	all := []workspaceInfo{}
	for _, w := range s.model.workspaces {
		all = append(all, s.model.workspaceInfo(w))
	}
	return object{"type": "workspace_list", "workspaces": all}, nil
}

func (s *Server) workspaceInfo(w *workspace, _ params) (any, *refusal) {
	return object{"type": "workspace_info", "workspace": s.model.workspaceInfo(w)}, nil
}

func (s *Server) workspaceFocus(w *workspace, p params) (any, *refusal) {
	s.model.active = w
	s.model.emit("workspace_focused", object{"workspace_id": w.id})
	return s.workspaceInfo(w, p)
}

func (s *Server) workspaceRename(w *workspace, p params) (any, *refusal) {
	w.label = p.Label
	return s.workspaceInfo(w, p)
}

// workspaceClose emits one event, and none for what was in it.
func (s *Server) workspaceClose(w *workspace, _ params) (any, *refusal) {
	info := s.model.workspaceInfo(w)
	for _, t := range append([]*tab{}, w.tabs...) {
		for _, p := range append([]*pane{}, t.panes...) {
			s.endPane(p)
		}
	}
	s.model.emit("workspace_closed", object{"workspace_id": w.id, "workspace": info})
	return ok, nil
}

func (s *Server) tabCreate(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	if r != nil {
		return nil, r
	}
	w := s.model.active
	if p.WorkspaceID != "" {
		if w = s.model.workspace(p.WorkspaceID); w == nil {
			return nil, refuse("workspace_not_found", "workspace "+p.WorkspaceID+" not found")
		}
	}
	if w == nil {
		return nil, refuse("workspace_not_found", "no active workspace")
	}
	t := s.model.addTab(w, p.Label)
	q := s.newPane(t, p.Cwd, p.Env)
	if p.Focus {
		s.model.active, w.active = w, t
	}
	s.model.emit("tab_created", object{"tab": s.model.tabInfo(t)})
	return object{"type": "tab_created", "tab": s.model.tabInfo(t), "root_pane": s.model.paneInfo(q)}, nil
}

func (s *Server) tabList(raw json.RawMessage) (any, *refusal) {
	p, r := read(raw)
	all := []tabInfo{}
	for _, w := range s.model.workspaces {
		for _, t := range w.tabs {
			if p.WorkspaceID == "" || p.WorkspaceID == w.id {
				all = append(all, s.model.tabInfo(t))
			}
		}
	}
	return object{"type": "tab_list", "tabs": all}, r
}

func (s *Server) tabInfo(t *tab, _ params) (any, *refusal) {
	return object{"type": "tab_info", "tab": s.model.tabInfo(t)}, nil
}

func (s *Server) tabFocus(t *tab, p params) (any, *refusal) {
	s.model.active, t.in.active = t.in, t
	s.model.emit("tab_focused", object{"tab_id": t.id, "workspace_id": t.in.id})
	return s.tabInfo(t, p)
}

func (s *Server) tabRename(t *tab, p params) (any, *refusal) {
	t.label = p.Label
	return s.tabInfo(t, p)
}

// tabClose emits no event for the panes.
func (s *Server) tabClose(t *tab, _ params) (any, *refusal) {
	w := t.in
	info := s.model.workspaceInfo(w)
	for _, p := range append([]*pane{}, t.panes...) {
		s.endPane(p)
	}
	s.model.emit("tab_closed", object{"tab_id": t.id, "workspace_id": w.id})
	if len(w.tabs) == 0 {
		s.model.emit("workspace_closed", object{"workspace_id": w.id, "workspace": info})
	}
	return ok, nil
}
