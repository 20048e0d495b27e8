//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/benchmarks"
)

type benchFlags struct {
	json, software, list bool
	cpu                  bool
	device, filter, peer string
	runs                 int
	budget               time.Duration

	baseline, history, html string
	threshold               float64
}

func benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine's devices",
		Long: `Measure this machine's devices. Each benchmark does the same work in several ways, alternating; times are
medians, and each way is compared with the first.

Without --device it measures the default device and the CPU.

With --cpu it measures the CPU's kernels instead, on one thread and on all, each in turns with what bounds it: as many multiply-adds as a
core can do, as many bytes read, or copied, from where the kernel has its operands. Figures are the least of --runs; share is how near
the kernel comes to its bound.

With --baseline the results are compared with those of an earlier run (--json) or, better on a busy machine, with another build of this
command that alternates with this one. The command fails if a median is more than the threshold larger and the 95 % intervals of
both medians do not overlap.`,
		Example: `  wavelane bench
  wavelane bench --device cpu --filter 'matmul|chain'
  wavelane bench --cpu --filter 'matmul|dot'
  wavelane bench --device cuda --peer scripts/gpu/peer.py   # beside PyTorch
  wavelane bench --software --json > results.json   # no GPU in this machine: measure a software adapter
  wavelane bench --software --baseline results.json --threshold 0.2
  wavelane bench --baseline ./wavelane-before --filter chain --runs 40
  wavelane bench --history bench.jsonl --html bench.html`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return bench(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), f)
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	c.Flags().BoolVar(&f.cpu, "cpu", false, "measure the CPU's kernels beside the rates of its cores and memory")
	c.Flags().BoolVar(&f.list, "list", false, "list the benchmarks, run none")
	c.Flags().StringVar(&f.device, "device", "", "`name` as wavelane info lists them, or gpu for the best adapter")
	c.Flags().BoolVar(&f.software, "software", false, "take a software adapter where there is no GPU")
	c.Flags().StringVar(&f.filter, "filter", "", "run only benchmarks whose name matches this `regexp`")
	c.Flags().StringVar(&f.peer, "peer", "", "`program` that measures the same work, alternating with this one: scripts/gpu/peer.py")
	c.Flags().IntVar(&f.runs, "runs", 10, "how often to run each way, at most")
	c.Flags().DurationVar(&f.budget, "time", 10*time.Second, "start no further runs of a benchmark after this `duration`")
	c.Flags().StringVar(&f.baseline, "baseline", "", "compare with the results in this `file`, or with this other build of wavelane")
	c.Flags().Float64Var(&f.threshold, "threshold", 0.1, "`part` of its time by which a result may be slower than the baseline")
	c.Flags().StringVar(&f.history, "history", "", "add the results to this `file`, a line of JSON for each run")
	c.Flags().StringVar(&f.html, "html", "", "write a page with plots of the history, or of this run, to this `file`")
	return c
}

func bench(ctx context.Context, out, errOut io.Writer, f benchFlags) error {
	filter, err := regexp.Compile(f.filter)
	if err != nil {
		return usagef("--filter: %w", err)
	}
	if f.runs < 1 || f.budget <= 0 {
		return usagef("--runs and --time must be positive")
	}
	if !(f.threshold >= 0) {
		return usagef("--threshold must not be negative")
	}
	if f.cpu {
		return benchCPU(ctx, out, errOut, filter, f)
	}
	before, err := openBaseline(f.baseline)
	if err != nil {
		return err
	}
	var chosen []benchmarks.Benchmark
	for _, b := range benchmarks.All() {
		if filter.MatchString(b.Name) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return usagef("no benchmark matches %q; --list names them", f.filter)
	}
	if f.list {
		return listBenchmarks(out, chosen)
	}
	devices, err := openDevices(ctx, f)
	if err != nil {
		return err
	}
	routes := func(b benchmarks.Benchmark) bool { return b.Routing() }
	if f.device == "" && devices[0].Info().Kind != "cpu" && slices.ContainsFunc(chosen, routes) {
		routing, err := wavelane.Open(ctx, f.options()...)
		if err != nil {
			return err
		}
		devices = append(devices, routing)
	}
	o := benchmarks.Options{Runs: f.runs, Budget: f.budget}
	if f.peer != "" {
		if o.Peer, err = benchmarks.StartPeer(ctx, f.peer); err != nil {
			return err
		}
		defer o.Peer.Close()
	}
	results := []benchmarks.Result{}
	failed := []error{}
	total := 0
	for _, dev := range devices {
		defer dev.Close()
		for _, b := range chosen {
			if b.For(dev.Info()) {
				total += f.runs + 1
			}
		}
	}
	bar := newBar(errOut, total)
	for _, dev := range devices {
		for _, b := range chosen {
			if !b.For(dev.Info()) {
				continue
			}
			bar.describe(dev.Info().Kind + " " + b.Name)
			ticks := 0
			o.Tick = func() { ticks++; bar.add(1) }
			r, err := before.measure(ctx, &b, dev, o, f)
			if err != nil { // the others are worth having
				failed = append(failed, err)
				r = []benchmarks.Result{b.Failed(dev, err)}
			}
			if ctx.Err() != nil {
				break
			}
			bar.add(f.runs + 1 - ticks) // the time was up before, or it failed
			results = append(results, r...)
		}
	}
	bar.clear()
	if len(results) > 0 {
		write := writeResults
		if f.json {
			write = func(w io.Writer, r []benchmarks.Result) error { return writeJSON(w, r) }
		}
		failed = append(failed, write(out, results))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if before != nil {
		table := out
		if f.json {
			table = errOut // results alone are on out
		}
		failed = append(failed, before.judge(table, results, f.threshold))
	}
	failed = append(failed, keep(results, f))
	return errors.Join(failed...)
}

// options are those of the requested device.
func (f *benchFlags) options() (opts []wavelane.Option) {
	if f.software {
		opts = append(opts, wavelane.WithSoftware())
	}
	if f.device != "" {
		opts = append(opts, wavelane.WithDevice(f.device))
	}
	return opts
}

// openDevices opens the requested device, or the default one and the CPU separately.
func openDevices(ctx context.Context, f benchFlags) ([]*wavelane.Device, error) {
	dev, err := wavelane.Open(ctx, append(f.options(), wavelane.WithoutRouting())...)
	if err != nil {
		switch {
		case errors.Is(err, wavelane.ErrArgument):
			err = usageError{err}
		case errors.Is(err, wavelane.ErrUnavailable) && !f.software:
			err = fmt.Errorf("%w; --software takes a software adapter where there is one", err)
		}
		return nil, err
	}
	devices := []*wavelane.Device{dev}
	if f.device == "" && dev.Info().Kind != "cpu" {
		cpu, err := wavelane.Open(ctx, wavelane.WithDevice("cpu"))
		if err != nil {
			dev.Close()
			return nil, err
		}
		devices = append(devices, cpu)
	}
	return devices, nil
}

func listBenchmarks(w io.Writer, list []benchmarks.Benchmark) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range list {
		fmt.Fprintf(table, "%s\t%s\n", b.Name, b.Doc)
	}
	return table.Flush()
}

func writeResults(w io.Writer, results []benchmarks.Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	device, previous := "", ""
	for _, r := range results {
		if d := title(r); d != device {
			if device != "" {
				fmt.Fprintln(table)
			}
			device, previous = d, ""
			fmt.Fprintf(table, "%s\nbenchmark\tway\tmedian\trate\ttime relative to first\truns\n", d)
		}
		name, rate := r.Benchmark, ""
		if name == previous {
			name = ""
		}
		previous = r.Benchmark
		if r.Error != "" {
			fmt.Fprintf(table, "%s\tnot measured: %s\n", name, strings.ReplaceAll(r.Error, "\n", " "))
			continue
		}
		if r.Unit != "" {
			rate = fmt.Sprintf("%.3g %s", r.Rate, r.Unit)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.2f×\t%d\n", name, r.Way, benchmarks.Short(r.Median), rate, r.Relative, r.Runs)
	}
	return table.Flush()
}

func title(r benchmarks.Result) string {
	if r.Software {
		return r.Kind + ": " + r.Device + " (software adapter: compare ratios, not times)"
	}
	return r.Kind + ": " + r.Device
}

// bar shows progress on a terminal and nothing elsewhere.
type bar struct{ *progressbar.ProgressBar }

func newBar(w io.Writer, total int) bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return bar{progressbar.DefaultSilent(int64(total))}
	}
	return bar{progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(50*time.Millisecond))}
}

// The bar's own errors are those of writing to a terminal.
func (b bar) add(n int)         { _ = b.Add(n) }
func (b bar) clear()            { _ = b.Clear() }
func (b bar) describe(s string) { b.Describe(s) }
