//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/wavelane/wavelane"
)

// compare runs the pipeline in all three ways, alternating so that a busy moment of the machine hits all alike, checks that
// they agree and prints their median times.
func compare(ctx context.Context, w io.Writer, dev, cpu *wavelane.Device, p planes, want []uint8, runs int) error {
	got := make([]uint8, len(want))
	ways := []struct {
		name  string
		run   func() error
		times []time.Duration
	}{
		{name: "one batch", run: func() error { return oneBatch(ctx, dev, p, got) }},
		{name: "one submit per operation", run: func() error { return separately(ctx, dev, p, got) }},
		{name: "CPU", run: func() error { return oneBatch(ctx, cpu, p, got) }},
	}
	worst := 0
	for turn := range runs + 1 {
		for i := range ways {
			clear(got)
			start := time.Now()
			if err := ways[i].run(); err != nil {
				return fmt.Errorf("%s: %w", ways[i].name, err)
			}
			took := time.Since(start)
			if turn > 0 { // the first warms caches up
				ways[i].times = append(ways[i].times, took)
				continue
			}
			for j, v := range want {
				worst = max(worst, int(got[j])-int(v), int(v)-int(got[j]))
			}
		}
	}

	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "device")
	for i := range ways {
		fmt.Fprint(table, "\t", ways[i].name)
	}
	fmt.Fprintf(table, "\n%s", title(dev.Info()))
	first := median(ways[0].times)
	for i := range ways {
		m := median(ways[i].times)
		fmt.Fprintf(table, "\t%s (%.2f×)", m.Round(10*time.Microsecond), float64(m)/float64(first))
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nmedians of %d runs, ratios to one batch; results differ by at most %d of 255 grey levels\n", runs, worst)
	if worst > 1 { // devices may round a level that is nearly halfway to either side
		return fmt.Errorf("results differ by %d grey levels", worst)
	}
	return nil
}

func title(i wavelane.Info) string {
	if i.Software {
		return fmt.Sprintf("%s (%s, software)", i.Name, i.Backend)
	}
	return fmt.Sprintf("%s (%s)", i.Name, i.Backend)
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}
