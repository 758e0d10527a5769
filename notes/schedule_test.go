package notes_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
	"testing/synctest"

	"github.com/pi-shepherd/go-shepherd/notes"
	"github.com/pi-shepherd/go-shepherd/notes/notestest"
)

// Random lives of two parents with several faults each, deaths and power cuts among them.
// What was acknowledged holds to the end. A failing seed is a test of its own.
func TestFaults_RandomSchedules(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 60
	}
	notes.SmallPages(t, 2)
	faults := 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := &rambler{life: newLife(t, -1, nil, false), rand: rand.New(rand.NewPCG(1, uint64(seed)))}
			r.ramble()
			r.check(fmt.Sprintf("seed %d", seed))
			faults += r.faults
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d schedules with %d faults held", seeds, faults)
}

// rambler does anything at any time.
type rambler struct {
	*life
	rand     *rand.Rand
	faults   int
	views    []*notestest.View
	sessions map[string]*notes.Session
	handles  map[string][]*handle
}

func (r *rambler) ramble() {
	r.sessions, r.handles = map[string]*notes.Session{}, map[string][]*handle{}
	rate := 20 + r.rand.IntN(150)
	r.disk.Fault = func(s notestest.Step) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.rand.IntN(rate) > 0 {
			return nil
		}
		r.hit = s
		r.faults++
		return kinds[r.rand.IntN(len(kinds))].err
	}
	for range 40 {
		r.mu.Lock()
		parent, what := []string{"one", "two"}[r.rand.IntN(2)], r.rand.IntN(10)
		r.mu.Unlock()
		r.act(parent, what)
	}
	for _, v := range r.views { // the processes end
		v.Kill()
	}
}

func (r *rambler) act(parent string, what int) {
	s := r.sessions[parent]
	if s == nil || what == 0 { // a new process; the old one may live on
		v := r.disk.View()
		r.views = append(r.views, v)
		r.sessions[parent] = r.open(v, parent)
		return
	}
	var h *handle
	if list := r.handles[parent]; len(list) > 0 {
		r.mu.Lock()
		h = list[r.rand.IntN(len(list))]
		r.mu.Unlock()
	}
	switch what {
	case 1, 2:
		r.handles[parent] = append(r.handles[parent], r.reserve(s, parent, notes.Plan{Agent: "scout", Start: what == 1}))
	case 3:
		r.handles[parent] = append(r.handles[parent], r.reserveAll(s, parent, notes.Plan{Agent: "scout"}, notes.Plan{Agent: "planner", Start: true})...)
	case 4:
		r.start(h)
	case 5:
		if h != nil && !r.facts[h.file].status.Final() {
			r.write(h, fmt.Sprintf("words %d\n", r.step))
		}
	case 6, 7:
		r.finalize(h, notes.Outcome{Status: notes.TimedOut, Text: fmt.Sprintf("text of %d", what)})
	case 8:
		r.late(h, notes.Outcome{Status: notes.Completed, Text: "late"})
	case 9:
		r.resume(parent, s)
	}
	if h != nil && path.Dir(h.file) != s.RelPath() {
		r.t.Errorf("%s is not in %s", h.file, s.RelPath())
	}
}

// resume takes over what dead processes left.
func (r *rambler) resume(parent string, s *notes.Session) {
	left, err := s.Unfinished(r.ctx())
	if err != nil {
		return
	}
	for _, u := range left {
		f := r.facts[u.RelPath()]
		if f == nil {
			continue // its reservation was never acknowledged
		}
		f.may = append(f.may, ending{status: notes.Running}, ending{status: notes.Detached})
		if u.Adopt(r.ctx()) == nil {
			r.handles[parent] = append(r.handles[parent], &handle{u.Note, u.RelPath()})
		}
	}
}
