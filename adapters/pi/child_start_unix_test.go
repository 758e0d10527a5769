//go:build unix

package pi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/adapters/internal/link"
)

func TestChild_SaysHello(t *testing.T) {
	is := is.New(t)
	c := launch(t)
	e, _, _ := c.newest()
	is.Equal(e.PID, c.cmd.Process.Pid)
	is.True(!e.Busy)
	is.Equal(e.Turns, uint64(0))
}

// From the start of pi to its hello: when a prompt can be sent. The target is 2 s on a machine
// that does nothing else.
func BenchmarkHello(b *testing.B) {
	p := newPi(b)
	for b.Loop() {
		c := launchPi(b, p)
		b.StopTimer()
		c.stop()
		b.StartTimer()
	}
}

func TestChild_AQuestionAtItsStart_HoldsNothingUp(t *testing.T) {
	is := is.New(t)
	p := newPi(t)
	installed(t, p, "greeter.ts", `export default function (pi) { pi.on("session_start", async (e, ctx) => { await ctx.ui.confirm("Start?", "really"); }); }`)
	c := launchPi(t, p) // has said hello
	c.until(t, "dialog", func(e link.Event) bool { return e.Dialog })
	c.types(enter)
	c.until(t, "answered", func(e link.Event) bool { return !e.Dialog })
	is.Equal(c.result(c.send("1", "say ok")).Text, "ok")
}

func TestChild_KnowsItsPlaceAndKeepsNoSecrets(t *testing.T) {
	is := is.New(t)
	p := newPi(t)
	m := withTools(t, p)
	c := launchPi(t, p)
	is.Equal(c.result(c.send("1", "bash env > seen\nsay ok")).Text, "ok")
	seen, err := os.ReadFile(filepath.Join(c.dir, "seen"))
	is.NoErr(err)
	is.True(!strings.Contains(string(seen), c.link.(*childLink).token))
	is.True(!strings.Contains(string(seen), "SHEPHERD_LINK"))
	is.True(strings.Contains(string(seen), "SHEPHERD_DEPTH=1\n"))
	is.True(strings.Contains(m.lastBody(), `the agent \"scout\" (look around)`)) // in the system prompt
	is.True(strings.Contains(m.lastBody(), `"name":"shepherd_done"`))
}

// A parent extension is installed, and another one even has the name of our tool.
func TestChild_StartsWhateverIsInstalled(t *testing.T) {
	is := is.New(t)
	p := newPi(t)
	for _, tool := range []string{"shepherd_start", "shepherd_done"} {
		installed(t, p, tool+".ts", `export default function (pi) { pi.registerTool({ name: "`+tool+`", label: "x", description: "somebody's",
			parameters: { type: "object", properties: {} }, execute: async () => ({ content: [], details: {} }) }); }`)
	}
	m := withTools(t, p)
	c := launchPi(t, p)
	is.Equal(c.result(c.send("1", "say ok")).Text, "ok")
	is.Equal(strings.Count(m.lastBody(), "somebody's"), 2) // the user's own are there
}

func TestChild_IsNotAskedWhetherToTrustTheProject(t *testing.T) {
	is := is.New(t)
	dir := t.TempDir()
	write(t, dir, ".pi/extensions/some.ts", `throw new Error("loaded")`)
	c := launchIn(t, newPi(t), dir)
	is.Equal(c.result(c.send("1", "say ok")).Text, "ok")
}

func TestChild_InPrintMode_DoesNotHang(t *testing.T) {
	is := is.New(t)
	p := newPi(t)
	l, told := openLink(t)
	env, args := l.Launch()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Program[0], append(append(p.Program[1:], args...), "-p", "say printed")...)
	cmd.Dir = t.TempDir()
	cmd.Env = environ(p, env)
	out, err := cmd.Output()
	is.NoErr(err)
	is.Equal(strings.TrimSpace(string(out)), "printed")
	is.True(told.has(up))
}
