// Shepherd-pi is the host of the bridge into a parent pi. pi's extension starts it at the
// first need and talks to it on stdio; nobody else has to.
//
//	go install github.com/pi-shepherd/go-shepherd/examples/shepherd-pi@latest
//	shepherd-pi -install
//
// What it looks at, all in the environment and all optional:
//
//	SHEPHERD_CHILDREN   where agents live: panes (of Herdr), headless, or auto (the default:
//	                    panes inside Herdr, headless elsewhere)
//	SHEPHERD_CHILD_PI   the pi that headless agents run; default: the parent's own
//	SHEPHERD_AGENTS     whose agent definitions are looked for: user (the default), project
//	                    or both; a project's are used only after the user has agreed
//
// With -socket it serves one pi after another on a unix socket instead; then the extension
// needs SHEPHERD_PI_SOCKET and, as this program does, SHEPHERD_PI_TOKEN.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/pi-shepherd/go-shepherd/adapters/pi"
)

func main() {
	socket := flag.String("socket", "", "serve on this unix socket instead of stdio")
	version := flag.Bool("version", false, "print the version and exit")
	install := flag.Bool("install", false, "put the extension into pi's agent directory and exit")
	flag.Parse()
	if *version {
		fmt.Printf("shepherd-pi %s, bridge protocol %d\n", buildVersion(), pi.BridgeProtocol)
		return
	}
	if *install {
		dir, err := pi.InstallExtension("")
		if err != nil {
			fmt.Fprintln(os.Stderr, "shepherd-pi:", err)
			os.Exit(1)
		}
		fmt.Printf("installed into %s; a pi that runs already finds it after /reload\n", dir)
		return
	}
	// pi's terminal takes its whole group along with SIGHUP, and pi may be gone when we
	// write: what remains to be done is done all the same.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *socket); err != nil {
		fmt.Fprintln(os.Stderr, "shepherd-pi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, socket string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	place, err := childrenFrom(os.Getenv)
	if err != nil {
		return err
	}
	o := pi.ServeOptions{Open: place.open(log), Version: buildVersion(), Logger: log}
	if socket != "" {
		return pi.ServeSocket(ctx, socket, os.Getenv("SHEPHERD_PI_TOKEN"), o)
	}
	return pi.Serve(ctx, o)
}

func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
