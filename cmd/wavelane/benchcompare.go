//go:build !js

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/benchmarks"
)

// baseline is what results are compared with: those in a file, or those of another build of this command. Then both builds
// are run as programs, alternating, so that they meet the same conditions.
type baseline struct {
	program string // the other build
	results []benchmarks.Result
}

// ownProgram is this build; tests have another.
var ownProgram = os.Executable

// openBaseline returns nil if there is to be none.
func openBaseline(path string) (*baseline, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--baseline: %w", err)
	}
	b := &baseline{}
	if bad := json.Unmarshal(text, &b.results); bad == nil {
		return b, nil
	} else if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
		return nil, usagef("--baseline: %s holds no results of wavelane bench --json, and is no program: %w", path, bad)
	}
	b.program = path
	return b, nil
}

// rounds is in how many pieces the runs of a benchmark are measured, alternating with those of the other program.
const rounds = 4

// measure measures a benchmark.
func (b *baseline) measure(ctx context.Context, bench *benchmarks.Benchmark, dev *wavelane.Device, o benchmarks.Options,
	f benchFlags) ([]benchmarks.Result, error) {
	if b == nil || b.program == "" {
		return bench.Measure(ctx, dev, o)
	}
	own, err := ownProgram()
	if err != nil {
		return nil, err
	}
	n := min(rounds, o.Runs)
	results := map[bool][][]benchmarks.Result{} // by whether they are our own
	for i := range n {
		part := o
		part.Runs = o.Runs*(i+1)/n - o.Runs*i/n
		part.Budget = o.Budget / time.Duration(2*n)
		for turn := range 2 {
			ours, program := (i+turn)%2 == 0, b.program
			if ours {
				program = own
			}
			r, err := measureBy(ctx, program, bench, dev.Info(), part, f)
			if err != nil {
				return nil, err
			}
			results[ours] = append(results[ours], r)
		}
		if o.Tick != nil {
			o.Tick()
		}
	}
	b.results = append(b.results, benchmarks.Pool(results[false]...)...)
	return benchmarks.Pool(results[true]...), nil
}

// measureBy has a program measure a benchmark on the device of that kind.
func measureBy(ctx context.Context, program string, bench *benchmarks.Benchmark, i wavelane.Info, o benchmarks.Options,
	f benchFlags) ([]benchmarks.Result, error) {
	args := []string{"bench", "--json", "--filter", "^" + regexp.QuoteMeta(bench.Name) + "$", "--runs", strconv.Itoa(o.Runs),
		"--time", o.Budget.String()}
	if f.device != "" {
		args = append(args, "--device", f.device)
	} else if !i.Routed {
		args = append(args, "--device", i.Kind)
	}
	if f.software {
		args = append(args, "--software")
	}
	var out, errOut bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(errOut.Bytes()))
	}
	var all, of []benchmarks.Result
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return nil, fmt.Errorf("%s: results: %w", program, err)
	}
	for _, r := range all { // a routed device is measured beside the CPU
		if r.Kind == i.Kind {
			of = append(of, r)
		}
	}
	return of, nil
}

// judge writes how results compare with the baseline. It is an error if some are slower than they may be, or cannot be measured
// any more.
func (b *baseline) judge(w io.Writer, now []benchmarks.Result, threshold float64) error {
	list := benchmarks.Compare(b.results, now, threshold)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "device\tbenchmark\tway\tbefore\tnow\ttime relative to before\t")
	bad := 0
	for _, c := range list {
		r := c.Now
		if r == nil {
			r = c.Before
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t", r.Kind, r.Benchmark, r.Way, spread(c.Before), spread(c.Now))
		if c.Ratio > 0 {
			fmt.Fprintf(table, "%.2f×", c.Ratio)
		}
		fmt.Fprintf(table, "\t%s\n", c.Verdict)
		if c.Verdict == benchmarks.Slower || c.Verdict == benchmarks.Failed {
			bad++
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d results are more than %.3g %% slower than the baseline, or cannot be measured any more", bad, len(list),
			100*threshold)
	}
	return nil
}

// spread is a median and how far the ends of its interval are from it.
func spread(r *benchmarks.Result) string {
	switch {
	case r == nil:
		return ""
	case r.Error != "":
		return "not measured"
	}
	m := float64(r.Median)
	return fmt.Sprintf("%v −%.0f%% +%.0f%%", benchmarks.Short(r.Median), 100*(1-r.Interval[0]/m), 100*(r.Interval[1]/m-1))
}

// keep adds results to the history and writes its page, if requested.
func keep(results []benchmarks.Result, f benchFlags) error {
	host, _ := os.Hostname() // for readers only
	run := benchmarks.Run{Time: time.Now().UTC().Truncate(time.Second), Version: version(), Host: host, Results: results}
	runs := []benchmarks.Run{run}
	if f.history != "" {
		if err := benchmarks.AppendHistory(f.history, run); err != nil {
			return fmt.Errorf("history: %w", err)
		}
		var err error
		if runs, err = benchmarks.ReadHistory(f.history); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	if f.html == "" {
		return nil
	}
	file, err := os.Create(f.html)
	if err != nil {
		return err
	}
	return errors.Join(benchmarks.WritePage(file, runs), file.Close())
}
