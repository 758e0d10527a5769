package headlesstest

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Script is what the agent does with a prompt. When it returns, the turn ends with what was
// said last as the answer.
type Script func(t *Turn)

// Fault makes an agent misbehave.
type Fault string

// The faults of an agent, for [Command].
const (
	Broken   Fault = "broken"   // ends at its start, with exit status 3 and words on stderr
	Mute     Fault = "mute"     // never says anything
	Deaf     Fault = "deaf"     // reads nothing after it was launched
	Stubborn Fault = "stubborn" // ignores the end of its input and SIGTERM
)

const (
	agentArg   = "headlesstest-agent" // begins the arguments of an agent
	sleeperArg = "headlesstest-sleep" // and of what an agent starts
)

// Command is what headless.Options.Command has to be: this very program, as an agent.
// Further arguments (Spec.Args) are ignored, as long as they name no fault.
func Command(faults ...Fault) []string {
	exe, err := os.Executable()
	if err != nil {
		panic("headlesstest: " + err.Error())
	}
	command := []string{exe, agentArg}
	for _, f := range faults {
		command = append(command, string(f))
	}
	return command
}

// Main runs the agent and ends the process with it, if [Command] has started this process;
// otherwise it returns at once. It has to come before anything that reads flags.
func Main(script Script) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == sleeperArg:
		time.Sleep(10 * time.Minute)
		exit(0)
	case len(os.Args) > 1 && os.Args[1] == agentArg:
		has := func(f Fault) bool { return slices.Contains(os.Args[2:], string(f)) }
		if has(Broken) {
			fmt.Fprintln(os.Stderr, "Error: this agent is broken")
			exit(3)
		}
		if has(Stubborn) {
			signal.Ignore(syscall.SIGTERM)
		}
		a := &agent{script: script, out: os.Stdout, mute: has(Mute), deaf: has(Deaf)}
		a.serve(os.Stdin)
		if has(Stubborn) {
			time.Sleep(10 * time.Minute)
		}
		exit(0)
	}
}

// exit is os.Exit without the second that a program with the race detector takes for it.
func exit(code int) { syscall.Exit(code) }
