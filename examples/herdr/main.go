// Herdr starts a scout and a planner as real pi children in panes of a running Herdr, hands
// work to both, is told of each answer as it arrives, and shows the notes that are left.
//
//	go run ./examples/herdr                          in a Herdr pane, or with a Herdr running
//	go run ./examples/herdr -placement right -keep   beside this pane; the agents stay
//
// It needs herdr (0.7.5 or newer) and pi, with a model that pi can use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/herdr"
	"github.com/pi-shepherd/go-shepherd/adapters/pi"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

func main() {
	placement := flag.String("placement", "tab", "where the agents' panes are made: tab, right, down or workspace")
	project := flag.String("project", ".", "the project's directory, which the notes are kept in")
	keep := flag.Bool("keep", false, "leave the agents' panes open at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	dir, err := filepath.Abs(*project)
	if err == nil {
		err = run(ctx, os.Stdout, dir, *keep, herdr.Options{
			Links:       pi.Links(),
			Placement:   herdr.Placement(*placement),
			StartServer: true,
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "herdr:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, project string, keep bool, o herdr.Options) (err error) {
	files := aferofs.OS(project)
	o.Dir, o.Parent = project, "example"
	o.Store = herdr.FileStore(files, ".shepherd/herdr.json") // so that the next run finds what this one leaves

	panes := herdr.New(o)
	end := panes.CloseAll
	if keep {
		end = func(context.Context) error { return panes.Detach() }
	}
	defer func() { err = errors.Join(err, end(context.Background())) }()
	pruned, err := panes.Prune(ctx)
	if err != nil {
		fmt.Fprintln(out, "not all of what an earlier run left could be tidied up:", err)
	}
	for _, r := range pruned {
		fmt.Fprintf(out, "closed %s, which an earlier run had left\n", r.Key)
	}

	told := make(chan shepherd.Completion, 2)
	sh, err := shepherd.New(shepherd.Config{
		Herdr:  panes,
		FS:     files,
		Parent: shepherd.Parent("example"),
		Notifier: shepherd.NotifierFunc(func(_ context.Context, n shepherd.Notification) error {
			for _, c := range n.Completions {
				told <- c // never blocks: there is room for all
			}
			return nil
		}),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close(context.Background())) }()
	return work(ctx, out, sh, told)
}

// work is the parent's part: start, prompt, watch, be told.
func work(ctx context.Context, out io.Writer, sh *shepherd.Shepherd, told <-chan shepherd.Completion) error {
	scout, err := sh.Start(ctx, shepherd.Spec{Name: "scout", Label: "retry policy"})
	if err != nil {
		return err
	}
	planner, err := sh.Start(ctx, shepherd.Spec{Name: "planner"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "started a scout and a planner; look at their panes")

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
	completed := watch.Completed
	for range watch.Pending {
		select {
		case c := <-told:
			completed = append(completed, c)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, c := range completed {
		fmt.Fprintf(out, "%s %s: %q\n  its note: %s\n", c.Agent, c.Status, c.Text+c.Error, c.NotePath)
	}
	return nil
}
