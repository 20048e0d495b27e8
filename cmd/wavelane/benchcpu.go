//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/wavelane/wavelane/internal/benchmarks"
)

// benchCPU prints what the CPU's kernels take, and which share that is of what bounds them.
func benchCPU(ctx context.Context, out, errOut io.Writer, filter *regexp.Regexp, f benchFlags) error {
	if f.device != "" || f.software || f.peer != "" || f.baseline != "" || f.history != "" || f.html != "" {
		return usagef("--cpu goes with --filter, --runs, --json and --list only")
	}
	names := benchmarks.CPUKernels(filter)
	if len(names) == 0 {
		return usagef("no kernel matches %q; --cpu --list names them", f.filter)
	}
	if f.list {
		for _, name := range names {
			fmt.Fprintln(out, name)
		}
		return nil
	}
	threads := runtime.GOMAXPROCS(0)
	bar := newBar(errOut, len(names)*min(2, threads))
	kernels := []benchmarks.CPUKernel{}
	err := benchmarks.CPU(ctx, filter, threads, f.runs, func(k benchmarks.CPUKernel) {
		kernels = append(kernels, k)
		bar.describe(k.Kernel)
		bar.add(1)
	})
	bar.clear()
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(out, kernels)
	}
	fmt.Fprintf(out, "%s, %d threads\n", kernels[0].Tier, threads)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "kernel\tthreads\ttime\trate\tbound\tits rate\tshare")
	for _, k := range kernels {
		fmt.Fprintf(table, "%s\t%d\t%s\t%.4g %s\t%s\t%.4g\t%.0f %%\n", k.Kernel, k.Threads, benchmarks.Short(time.Duration(k.NS)), k.Rate, k.Unit,
			k.Bound, k.Peak, 100*k.Share)
	}
	return table.Flush()
}
