package headless_test

import (
	"context"
	"fmt"

	"github.com/pi-shepherd/go-shepherd/adapters/headless"
	"github.com/pi-shepherd/go-shepherd/adapters/headless/headlesstest"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

// Without package shepherd around it: one agent, one prompt, its answer. The agent is this
// test program, started again as a scripted one; headless.Options{} would run pi.
func Example() {
	ctx := context.Background()
	h := headless.New(headless.Options{Command: headlesstest.Command()})
	defer h.CloseAll(ctx)

	scout, err := h.Launch(ctx, lifecycle.Spec{Name: "scout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = h.Submit(ctx, scout, lifecycle.Submission{Prompt: "p1", Text: "tool ls\nsay it is in retry.go"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		o, changed := h.Observe(scout)
		if o.Signal.Final() {
			fmt.Println(o.Signal.Kind, o.Signal.Text)
			break
		}
		<-changed
	}
	// Output: finished it is in retry.go
}
