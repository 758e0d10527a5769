package shepherd_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
	"github.com/pi-shepherd/go-shepherd/adapters/headless"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The README's program: one agent, one prompt, watched and waited for.
func Example() {
	ctx := context.Background()
	project, err := os.MkdirTemp("", "project-") // or where your project is
	check(err)
	herd := headless.New(headless.Options{}) // agents are `pi` processes
	defer herd.CloseAll(ctx)
	told := make(chan shepherd.Completion, 1)
	sh, err := shepherd.New(shepherd.Config{
		Herdr:  herd,
		FS:     aferofs.OS(project),
		Parent: shepherd.Parent("nightly-review"), // whoever gives the orders
		Notifier: shepherd.NotifierFunc(func(_ context.Context, n shepherd.Notification) error {
			told <- n.Completions[0]
			return nil
		}),
	})
	check(err)
	defer sh.Close(ctx)

	scout, err := sh.Start(ctx, shepherd.Spec{Name: "scout"})
	check(err)
	prompt, err := sh.Prompt(ctx, scout, "Where is the retry policy decided?")
	check(err)
	watch, err := sh.Watch(ctx, prompt.ID) // returns at once, as Prompt did
	check(err)
	for _, c := range watch.Completed { // it was that fast: the notifier is not told
		told <- c
	}
	c := <-told // your own work goes here; the notifier is called when it is done
	fmt.Println("told:", c.Agent, c.Status)
	results, err := sh.Wait(ctx, prompt.ID) // or block, at any time, as often as you like
	check(err)
	fmt.Println("waited:", results[0].Text)
	check(sh.CloseAgent(ctx, scout))
	// Output:
	// told: scout done
	// waited: It is decided in retry.go.
}
