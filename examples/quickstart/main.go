// Quickstart starts a scout and a planner, hands work to both, goes on working itself, is
// told of each answer as it arrives, and shows the notes that are left.
//
//	go run ./examples/quickstart             on a machine that has nothing but Go
//	go run ./examples/quickstart -agent pi   with a real pi from PATH
//
// Without pi the agents are child processes all the same: this program starts itself again
// as a small scripted agent that speaks pi's RPC lines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/headless"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

func main() {
	headlesstest.Main(agent) // does not return in a scripted agent

	kind := flag.String("agent", "scripted", "who does the work: scripted or pi")
	project := flag.String("project", "", "the project's directory; default: a new temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *kind, *project); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kind, project string) (err error) {
	options, err := agents(kind)
	if err != nil {
		return err
	}
	if project == "" {
		if project, err = os.MkdirTemp("", "shepherd-quickstart-"); err != nil {
			return err
		}
	}
	options.Dir = project
	told := make(chan shepherd.Completion, 2)
	herdr := headless.New(options)
	defer func() { err = errors.Join(err, herdr.CloseAll(context.Background())) }()

	sh, err := shepherd.New(shepherd.Config{
		Herdr:       herdr,
		FS:          aferofs.OS(project),
		Parent:      shepherd.Parent("quickstart"),
		SessionName: "quickstart",
		Notifier:    announcer(told),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close(context.Background())) }()

	if err := work(ctx, sh, told); err != nil {
		return err
	}
	return show(ctx, sh, project)
}

// agents says how agents are run.
func agents(kind string) (headless.Options, error) {
	switch kind {
	case "scripted":
		return headless.Options{Command: headlesstest.Command()}, nil
	case "pi":
		return headless.Options{}, nil
	}
	return headless.Options{}, fmt.Errorf("-agent %s: there are scripted and pi", kind)
}

// work is the parent's part: start, prompt, watch, go on, be told, wait, close.
func work(ctx context.Context, sh *shepherd.Shepherd, told <-chan shepherd.Completion) error {
	scout, err := sh.Start(ctx, shepherd.Spec{Name: "scout", Label: "retry policy"})
	if err != nil {
		return err
	}
	planner, err := sh.Start(ctx, shepherd.Spec{Name: "planner"})
	if err != nil {
		return err
	}
	say("started a scout and a planner")

	prompts, err := sh.PromptAll(ctx,
		shepherd.Order{Agent: scout, Text: "Where would you look for the retry policy of an HTTP client? Answer in one sentence."},
		shepherd.Order{Agent: planner, Text: "Plan in three short steps how to test a retry policy."})
	if err != nil {
		return err
	}
	watch, err := sh.Watch(ctx, prompts[0].ID, prompts[1].ID)
	if err != nil {
		return err
	}
	say("prompted both; the watch returned at once, %d pending", len(watch.Pending))
	for _, c := range watch.Completed { // a fast agent: the notifier is not told of these
		say("settled by then: %s %s\n          %q", c.Agent, c.Status, c.Text+c.Error)
	}

	if err := ownWork(ctx, told, len(watch.Pending)); err != nil {
		return err
	}
	results, err := sh.Wait(ctx, prompts[0].ID, prompts[1].ID)
	if err != nil {
		return err
	}
	for _, r := range results {
		say("waited for %s: %s, %d characters", r.Agent, r.Status, len(r.Text))
	}
	return errors.Join(sh.CloseAgent(ctx, scout), sh.CloseAgent(ctx, planner))
}

// ownWork is what a parent does while its children work: it goes on until it was told of all.
func ownWork(ctx context.Context, told <-chan shepherd.Completion, pending int) error {
	tick := time.NewTicker(400 * time.Millisecond)
	defer tick.Stop()
	for page := 1; pending > 0; {
		select {
		case <-tick.C:
			say("the parent reads page %d of its own work", page)
			page++
		case c := <-told:
			say("notified: %s %s, %d still pending\n          %q", c.Agent, c.Status, c.Pending, c.Text+c.Error)
			pending--
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// announcer is the notifier. A host would hand the completions to its model.
func announcer(told chan<- shepherd.Completion) shepherd.NotifierFunc {
	return func(ctx context.Context, n shepherd.Notification) error {
		for _, c := range n.Completions {
			told <- c // never blocks: there is room for all
		}
		return nil
	}
}

// show prints the note tree and the index.
func show(ctx context.Context, sh *shepherd.Shepherd, project string) error {
	session, err := sh.Session(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe notes in %s:\n\n", project)
	files, err := os.ReadDir(session.Path)
	if err != nil {
		return err
	}
	fmt.Println("  " + session.RelPath + "/")
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") { // locks
			fmt.Println("    " + f.Name())
		}
	}
	index, err := os.ReadFile(filepath.Join(session.Path, "shepherd.md"))
	if err != nil {
		return err
	}
	fmt.Printf("\nshepherd.md:\n\n%s\nLook at them: %s\n", index, session.Path)
	return nil
}

var began = time.Now()

func say(format string, args ...any) {
	fmt.Printf("%6.2f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
