//go:build unix

package aferofs_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests' other processes are this test binary, started again to run one of these.
var programs = map[string]func(args []string){
	"hold":     holdLock,
	"contend":  contend,
	"append":   appendForEver,
	"full":     writeBeyondLimit,
	"nobody":   writeAsNobody,
	"allocate": allocate,
	"notes":    writeNotes,
	"parents":  openAsParents,
}

const programVar = "AFEROFS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if name := os.Getenv(programVar); name != "" {
		programs[name](os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is another process that talks in lines.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
}

func start(t testing.TB, program string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), programVar+"="+program, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(p.kill)
	return p
}

// line waits for the next line; it is empty at the end.
func (p *process) line() string {
	if !p.out.Scan() {
		return ""
	}
	return p.out.Text()
}

// rest reads to the end and waits for the process.
func (p *process) rest() []string {
	var lines []string
	for p.out.Scan() {
		lines = append(lines, p.out.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("a process of the test: %v", err)
	}
	return lines
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

func (p *process) killAndReadOn() (lines []string) {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	for p.out.Scan() {
		lines = append(lines, p.out.Text())
	}
	_ = p.cmd.Wait()
	return lines
}

// say prints one line at once.
func say(args ...any) { fmt.Fprintln(os.Stdout, args...) }

func must(err error) {
	if err != nil {
		say("failed:", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// report gives the figures of waits and judges none: they are the machine's as well. Who is
// stuck, because nobody frees a lock, never gets here.
func report(t *testing.T, waits []time.Duration) {
	t.Helper()
	slices.Sort(waits)
	t.Logf("the next one waited %v (median), %v at most", waits[len(waits)/2], waits[len(waits)-1])
}

// within waits for something that happens soon, without trusting one moment.
func within(d time.Duration, happened func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if happened() {
			return true
		}
	}
	return happened()
}
