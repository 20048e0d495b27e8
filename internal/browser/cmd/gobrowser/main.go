// Gobrowser runs a Go program compiled to GOOS=js GOARCH=wasm in a headless Chromium, as `go test` and `go run` want it:
//
//	go build -o /tmp/gobrowser ./cmd/gobrowser
//	GOOS=js GOARCH=wasm go test -exec "/tmp/gobrowser -worker" ./...
//
// Output, arguments and exit code pass through, and so do environment variables whose names begin with GO or WAVELANE_.
// With -worker the program runs in a Web Worker. Without a browser or a WebGPU adapter it fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/wavelane/wavelane/internal/browser"
)

func main() {
	worker := flag.Bool("worker", false, "run in a Web Worker instead of the page")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: gobrowser [-worker] program.wasm [arguments]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := run(&browser.Program{
		Path: flag.Arg(0), Args: arguments(flag.Args()[1:]), Env: environment(), Worker: *worker, NeedsAdapter: true,
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gobrowser:", err)
		code = max(code, 2)
	}
	os.Exit(code)
}

func run(p *browser.Program) (int, error) {
	// SIGQUIT is what go test sends to a test that takes too long.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer stop()
	b, err := browser.Launch(ctx)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	code, err := b.RunGo(ctx, p)
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped by a signal")
	}
	return code, err
}

// arguments leaves out flags of go test that name files: a page has none.
func arguments(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return strings.HasPrefix(a, "-test.testlogfile=") || strings.HasPrefix(a, "-test.gocoverdir=")
	})
}

func environment() map[string]string {
	env := map[string]string{}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "WAVELANE_") {
			env[name] = value
		}
	}
	return env
}
