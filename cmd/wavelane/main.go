//go:build !js

// Wavelane shows what this machine computes with, measures it, and tunes kernels for it.
//
//	wavelane info
//	wavelane bench --device gpu
//	wavelane tune
//	wavelane monitor
//	wavelane gguf model.gguf
//	wavelane onnx model.onnx
//	wavelane llm model.gguf
//	wavelane wgpu
//	wavelane dist check
//
// It exits with 0, with 1 when the work failed, with 2 when it was called wrongly, and with 130 when it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command and returns its exit status.
func execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	started := false // past the parsing of the command line
	var exit exitError
	root := &cobra.Command{
		Use:               "wavelane",
		Short:             "GPU compute for Go: devices, benchmarks, tuning",
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { started = true },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(infoCommand(), benchCommand(), tuneCommand(), monitorCommand(), kernelsCommand(), ptxCommand(),
		quantCommand(), ggufCommand(), onnxCommand(), llmCommand(), wgpuCommand(), distCommand())
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		fmt.Fprintln(errOut, "wavelane: interrupted")
		return 130
	case errors.As(err, &exit):
		return exit.status
	case started && !errors.As(err, new(usageError)):
		fmt.Fprintln(errOut, "wavelane:", err)
		return 1
	}
	fmt.Fprintf(errOut, "wavelane: %v\nSee '%s --help'.\n", err, command.CommandPath())
	return 2
}

// usageError marks flags whose values make no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// version is that of the module when the command was installed with go install, else of the working copy.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
