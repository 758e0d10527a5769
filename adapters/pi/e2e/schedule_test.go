//go:build unix

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/internal/pitest"
)

// seeds is how many schedules are played: SHEPHERD_SEEDS, or a few.
func seeds() int {
	if n, err := strconv.Atoi(os.Getenv("SHEPHERD_SEEDS")); err == nil && n > 0 {
		return n
	}
	return 2
}

// player plays one random schedule and keeps account of what has to be told.
type player struct {
	*stage
	rand  *rand.Rand
	idle_ []string         // agents without a prompt
	open  map[string]watch // by gate
	must  map[string]bool  // notices that have to come, each once
	kills int              // of this pi's hosts: a fourth within a minute waits for a tool call
	story []string
}

type watch struct{ id, agent string }

// TestRandomSchedules plays random sequences of everything that can happen to a parent. No
// notice may come twice, none that is owed may be missing, and a restart asks for no turn.
func TestRandomSchedules(t *testing.T) {
	first := 1
	if n, err := strconv.Atoi(os.Getenv("SHEPHERD_SEED")); err == nil {
		first = n
	}
	for _, version := range []string{pitest.Version, oldest} {
		for seed := first; seed < first+seeds(); seed++ {
			t.Run(fmt.Sprintf("pi %s seed %d", version, seed), func(t *testing.T) {
				m := newMachine(t, version)
				p := &player{stage: m.stage(t, "main"), rand: rand.New(rand.NewPCG(uint64(seed), 6)), open: map[string]watch{}, must: map[string]bool{}}
				p.idle_ = []string{p.agent}
				defer func() {
					if t.Failed() {
						t.Logf("the schedule: %q", p.story)
					}
				}()
				for range 14 {
					p.step()
					time.Sleep(time.Duration(p.rand.IntN(300)) * time.Millisecond)
				}
				p.finishAll()
			})
		}
	}
}

func (p *player) step() {
	steps := []struct {
		name string
		do   func()
	}{
		{"watch", p.watch}, {"watch", p.watch}, {"watch", p.watch},
		{"complete", p.complete}, {"complete", p.complete}, {"complete", p.complete},
		{"work", func() { p.prompt("slow 700ms one two three four five") }},
		{"say", func() { p.prompt("say hello again") }},
		{"abort", func() { p.ask(object{"type": "abort"}) }},
		{"reload", func() { p.ask(object{"type": "prompt", "message": "/reload-now"}) }},
		{"compact", func() { p.send(object{"type": "compact"}) }},
		{"away", p.away},
		{"host killed", p.killHost},
		{"quit", func() { p.restart(func() { p.quit() }) }},
		{"pi killed", func() { p.restart(func() { p.kill(syscall.SIGKILL) }) }},
		{"both killed", func() {
			p.restart(func() {
				_ = syscall.Kill(p.host(), syscall.SIGKILL)
				p.kill(syscall.SIGKILL)
			})
		}},
	}
	s := steps[p.rand.IntN(len(steps))]
	p.story = append(p.story, s.name)
	s.do()
}

func (p *player) watch() {
	p.rpc.idle()
	if len(p.idle_) == 0 {
		p.idle_ = append(p.idle_, p.again())
	}
	agent := p.idle_[0]
	p.idle_ = p.idle_[1:]
	g := p.gate("schedule")
	p.open[g] = watch{p.watched(agent, g), agent}
}

// complete lets a random prompt settle. Its notice is owed from the moment in which the
// ledger or the session has it.
func (p *player) complete() {
	for g, w := range p.open {
		p.model.open(g)
		p.until("its notice is on its way", func() bool {
			return contains(p.ledgerIDs(), w.id) || contains(delivered(p.t, p.main), w.id)
		})
		p.must[w.id] = true
		p.idle_ = append(p.idle_, w.agent)
		delete(p.open, g)
		return
	}
}

// away leaves the session and comes back: its watches are released.
func (p *player) away() {
	p.ask(object{"type": "new_session"})
	p.until("it is another session", func() bool { return p.file() != p.main })
	time.Sleep(time.Duration(p.rand.IntN(400)) * time.Millisecond)
	p.ask(object{"type": "switch_session", "sessionPath": p.main})
	p.until("it is back", func() bool { return p.file() == p.main })
	for g := range p.open {
		p.model.open(g)
	}
	clear(p.open)
	p.idle_ = nil // they may still be at work
}

// killHost: what its watches were waiting for was interrupted, and they are told.
func (p *player) killHost() {
	if p.kills++; p.kills > 3 {
		return
	}
	_ = syscall.Kill(p.host(), syscall.SIGKILL)
	for g, w := range p.open {
		p.must[w.id] = true
		p.model.open(g)
	}
	clear(p.open)
	p.idle_ = nil
	for id := range p.must {
		p.until("everything open is told by the new host", func() bool {
			return contains(p.ledgerIDs(), id) || contains(delivered(p.t, p.main), id)
		})
	}
	p.until("a new host", func() bool { return p.hosts() == 1 })
	time.Sleep(200 * time.Millisecond)
}

// restart ends pi and opens the session again: that asks for no turn.
func (p *player) restart(end func()) {
	end()
	for g := range p.open {
		p.model.open(g) // nobody is watching any more
	}
	clear(p.open)
	p.idle_, p.kills = nil, 0
	before := p.model.count()
	p.stage = &stage{rpc: p.rpc.machine.rpc(p.t, "--session", p.main), is: p.is, main: p.main}
	for id := range p.must {
		p.gets(id)
	}
	p.rpc.idle()
	if n := p.model.count() - before; n != 0 {
		p.t.Errorf("the restart made %d calls", n)
	}
	p.again()
}

func (p *player) finishAll() {
	for len(p.open) > 0 {
		p.complete()
	}
	for id := range p.must {
		p.gets(id)
	}
	p.rpc.idle()
	p.once()
	for _, id := range delivered(p.t, p.main) {
		delete(p.must, id)
	}
	if len(p.must) > 0 {
		p.t.Errorf("never told: %v", p.must)
	}
	p.until("the ledger is empty", func() bool { return len(p.ledgerIDs()) == 0 })
}
