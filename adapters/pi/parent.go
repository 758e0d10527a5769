package pi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/pi-shepherd/go-shepherd/shepherd"
)

// ServeOptions say whom a host serves, and with what.
type ServeOptions struct {
	// Open makes what one parent session works with; required. It is called once for each
	// session and project that pi shows, never twice at once. An error is told to the model,
	// and the next call tries again.
	Open func(ctx context.Context, p *Parent) (Parts, error)

	// In and Out connect with the extension; the defaults are os.Stdin and os.Stdout. When
	// In ends, pi is gone.
	In  io.ReadCloser
	Out io.WriteCloser

	// Version is shown to the user. Default: "devel".
	Version string
	// Logger gets what was survived. Default: discards. Never on Out.
	Logger *slog.Logger
	// CloseTimeout bounds the end: detaching prompts, finishing notes, closing what Open
	// has made. Default 10 s.
	CloseTimeout time.Duration
}

// Parts are what one parent session works with.
type Parts struct {
	// Config needs Herdr and FS, the latter rooted at Parent.Dir. Serve sets Parent and
	// Notifier, and Logger if it is nil.
	Config shepherd.Config
	// Place says to people and models where children live: "panes of Herdr".
	Place string
	// Agents lists the definitions that shepherd_start knows. nil: none are known.
	Agents func(ctx context.Context) ([]Definition, error)
	// Prune tidies up what dead hosts of this parent have left behind, and says what. nil:
	// nothing can be left behind.
	Prune func(ctx context.Context) ([]string, error)
	// Close ends what Open has made, after the Shepherd was closed. May be nil.
	Close func(ctx context.Context) error
}

// Definition is an agent that can be started, as it is shown.
type Definition struct {
	Name        string
	Description string
	Source      string // where it was found
	Model       string // "": the parent's
}

func (o ServeOptions) withDefaults() (ServeOptions, error) {
	if o.Open == nil {
		return o, errors.New("pi: ServeOptions.Open is missing")
	}
	if (o.In == nil) != (o.Out == nil) {
		return o, errors.New("pi: of ServeOptions.In and Out only one is set")
	}
	if o.In == nil {
		o.In, o.Out = os.Stdin, os.Stdout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Version = cmp.Or(o.Version, "devel")
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 10*time.Second)
	return o, nil
}

// Serve is the host of one parent pi: it talks to pi's extension (extension/parent.ts) until
// the extension hangs up or ctx ends, and then closes everything as ruling R13 says. It
// returns nil in both cases, an error if something could not be closed. A program that calls
// it ignores SIGHUP and SIGPIPE, since it outlives pi's terminal by a moment.
func Serve(ctx context.Context, o ServeOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	return serve(ctx, o, "")
}

// serve serves one connection. A token has to be said in the hello, if there is one.
func serve(ctx context.Context, o ServeOptions, token string) error {
	h := newHost(o, token)
	channel := newLineChannel(o.In, o.Out)
	h.server = jrpc2.NewServer(h.methods(), &jrpc2.ServerOptions{
		AllowPush: true, DisableBuiltin: true, Concurrency: maxCalls,
		NewContext: func() context.Context { return h.life },
	})
	h.server.Start(channel)
	ended := make(chan struct{})
	go func() {
		if err := h.server.Wait(); err != nil {
			o.Logger.Warn("the connection with pi failed", "err", err)
		}
		close(ended)
	}()
	if token != "" {
		silent := time.AfterFunc(greeting, func() {
			if !h.hasGreeted() {
				h.refuse()
			}
		})
		defer silent.Stop()
	}
	select {
	case <-ended:
	case <-h.refused:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.CloseTimeout)
	defer cancel()
	h.hangUp()
	select { // a reader of stdin may stay behind: not every system can interrupt it
	case <-ended:
	case <-time.After(time.Second):
	}
	if err := h.close(closing); err != nil {
		return fmt.Errorf("pi: close the host: %w", err)
	}
	return nil
}

// maxCalls is how many calls of the extension may be under way: waits take long.
const maxCalls = 4096
