package notes

import "fmt"

// sequence is the notes of one agent.
type sequence struct {
	slug string
	last int // the newest ordinal
}

// index fills in what is derived from the notes.
func (r *record) index() error {
	r.files = make(map[string]int, len(r.notes))
	r.seqs = make(map[string]*sequence)
	r.slugs = make(map[string]string)
	r.step = 0
	for i, e := range r.notes {
		if _, twice := r.files[e.File]; twice {
			return fmt.Errorf("notes[%d]: %s twice", i, e.File)
		}
		r.add(i, e)
	}
	return nil
}

func (r *record) add(i int, e *entry) {
	r.files[e.File] = i
	r.slugs[e.Slug] = e.Agent
	seq := r.sequence(e.Agent, e.Slug)
	seq.last = max(seq.last, e.Ordinal)
	r.step = max(r.step, e.Step)
}

func (r *record) sequence(agent, slug string) *sequence {
	seq := r.seqs[agent]
	if seq == nil {
		seq = &sequence{slug: slug}
		r.seqs[agent] = seq
	}
	return seq
}

// slugFor is the agent's slug in this session: what it has already, or the first that no
// other agent has, nor any in given, which are names that are about to be added.
func (r *record) slugFor(agent string, given map[string]*sequence) string {
	if seq := r.seqs[agent]; seq != nil {
		return seq.slug
	}
	taken := func(slug string) bool {
		if _, taken := r.slugs[slug]; taken {
			return true
		}
		for _, seq := range given {
			if seq.slug == slug {
				return true
			}
		}
		return false
	}
	last := ""
	for s := range agentSlugs(agent) {
		if last = s; !taken(s) {
			break
		}
	}
	return last
}

// append adds entries. They must not have a name that is taken.
func (r *record) append(entries ...*entry) {
	for _, e := range entries {
		r.add(len(r.notes), e)
		r.notes = append(r.notes, e)
	}
}

// find returns the entry of a file, or nil.
func (r *record) find(file string) *entry {
	if i, ok := r.files[file]; ok {
		return r.notes[i]
	}
	return nil
}

// change replaces the entry of a file by a changed copy.
func (r *record) change(file string, f func(*entry)) {
	if i, ok := r.files[file]; ok {
		r.unpage(i)
		r.notes[i] = r.notes[i].with(f)
	}
}
