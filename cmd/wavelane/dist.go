//go:build !js

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/dist"
)

func distCommand() *cobra.Command {
	c := &cobra.Command{Use: "dist", Short: "Several processes: what they talk through, how fast, and how fast more would be"}
	c.AddCommand(distCheckCommand(), distPlanCommand())
	return c
}

type distFlags struct {
	json     bool
	sizes    []int
	time     time.Duration
	wait     time.Duration
	device   string
	software bool
}

func distCheckCommand() *cobra.Command {
	var f distFlags
	c := &cobra.Command{
		Use:   "check",
		Short: "Join the processes started together and measure each collective",
		Long: `Join the processes that a launcher has started together, and measure each collective over sizes of data. Rank 0
prints engine, library, launcher, ranks and their devices, and for each collective and size the median time and the bandwidth: bytes of
one rank's data by time, beside the rate at which this machine copies as many bytes in memory. A rank's device is NVIDIA's GPU of its number on the
machine, else the best one; data are in the host's memory.`,
		Example: `  mpirun -np 2 wavelane dist check
  srun -n 4 wavelane dist check --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return distCheck(c.Context(), c.OutOrStdout(), f)
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	c.Flags().IntSliceVar(&f.sizes, "bytes", []int{4, 1 << 10, 64 << 10, 1 << 20, 16 << 20}, "sizes of a rank's data, in bytes, multiples of 4")
	c.Flags().DurationVar(&f.time, "time", 200*time.Millisecond, "how long to measure each collective and size")
	c.Flags().DurationVar(&f.wait, "timeout", time.Minute, "end the job when a rank does not come for so long")
	c.Flags().StringVar(&f.device, "device", "", "`name` as wavelane info lists them, for all ranks")
	c.Flags().BoolVar(&f.software, "software", false, "allow software adapters")
	return c
}

// open opens the device of this rank.
func (f *distFlags) open(ctx context.Context) (*wavelane.Device, error) {
	var options []wavelane.Option
	if f.software {
		options = append(options, wavelane.WithSoftware())
	}
	if f.device != "" {
		return wavelane.Open(ctx, append(options, wavelane.WithDevice(f.device))...)
	}
	d, err := wavelane.Open(ctx, wavelane.WithDevice(fmt.Sprintf("cuda:%d", dist.LocalRank())))
	if err != nil {
		d, err = wavelane.Open(ctx, options...)
	}
	return d, err
}

// distReport is what dist check knows.
type distReport struct {
	World    dist.Info         `json:"world"`
	Ranks    []distRank        `json:"ranks"`
	Measured []distMeasurement `json:"measured"`
}

type distRank struct {
	Host      string `json:"host"`
	LocalRank int32  `json:"local_rank"`
	Device    string `json:"device"`
}

const allReduceName = "all-reduce"

type distMeasurement struct {
	Collective string  `json:"collective"`
	Bytes      int     `json:"bytes"`           // of one rank's data
	Median     float64 `json:"median_us"`       // of rank 0
	Bandwidth  float64 `json:"gb_per_s"`        // Bytes by Median
	Memory     float64 `json:"memory_gb_per_s"` // of a copy of as many bytes on rank 0's machine
}

func distCheck(ctx context.Context, out io.Writer, f distFlags) error {
	for _, n := range f.sizes {
		if n < 4 || n%4 != 0 {
			return usagef("--bytes %d: a positive multiple of 4", n)
		}
	}
	if f.time <= 0 || f.wait <= 0 {
		return usagef("--time and --timeout are positive")
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	w, err := dist.Init(ctx, dist.WithTimeout(f.wait), dist.WithDevice(d))
	if err != nil {
		return err
	}
	r := &distReport{World: w.Info()}
	i := d.Info()
	if err := r.gather(ctx, w, fmt.Sprintf("%s: %s (%s)", i.Kind, i.Name, i.Backend)); err != nil {
		return err
	}
	for _, n := range f.sizes {
		if err := r.measure(ctx, w, n/4, f.time); err != nil {
			return err
		}
	}
	if w.Rank() == 0 { // before Close, after which some launchers lose what is printed
		if f.json {
			err = writeJSON(out, r)
		} else {
			err = r.write(out)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// gather collects what is known of each rank.
func (r *distReport) gather(ctx context.Context, w *dist.World, device string) error {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	hosts, err := texts(ctx, w, name)
	if err != nil {
		return err
	}
	devices, err := texts(ctx, w, device)
	if err != nil {
		return err
	}
	locals := make([]int32, w.Size())
	if err := w.AllGather(ctx, locals, []int32{int32(w.LocalRank())}); err != nil {
		return err
	}
	for i, local := range locals {
		r.Ranks = append(r.Ranks, distRank{hosts[i], local, devices[i]})
	}
	return nil
}

// texts gathers a text of each rank, cut where it is long.
func texts(ctx context.Context, w *dist.World, mine string) ([]string, error) {
	const length = 128
	own, all := make([]byte, length), make([]byte, length*w.Size())
	copy(own, mine)
	if err := w.AllGather(ctx, all, own); err != nil {
		return nil, err
	}
	list := make([]string, w.Size())
	for i := range list {
		list[i] = string(bytes.TrimRight(all[i*length:(i+1)*length], "\x00"))
	}
	return list, nil
}

// measure times every collective with n float32 of each rank.
func (r *distReport) measure(ctx context.Context, w *dist.World, n int, budget time.Duration) error {
	size := w.Size()
	x, y, all := make([]float32, n), make([]float32, n), make([]float32, n*size)
	start, copies := time.Now(), 0
	for ; copies < 3 || time.Since(start) < 10*time.Millisecond; copies++ {
		copy(y, x)
	}
	memory := float64(copies) * float64(4*n) / time.Since(start).Seconds() / 1e9
	divided := n / size * size // of what is cut into parts
	type collective struct {
		name string
		call func() error
	}
	list := []collective{
		{allReduceName, func() error { return w.AllReduce(ctx, y, x, dist.Sum) }},
		{"all-gather", func() error { return w.AllGather(ctx, all, x) }},
		{"broadcast", func() error { return w.Broadcast(ctx, x, 0) }},
	}
	if divided > 0 {
		list = append(list,
			collective{"reduce-scatter", func() error { return w.ReduceScatter(ctx, y[:n/size], x[:divided], dist.Sum) }},
			collective{"all-to-all", func() error { return w.AllToAll(ctx, y[:divided], x[:divided]) }})
	}
	if size > 1 {
		list = append(list, collective{"send and back", func() error {
			switch w.Rank() {
			case 0:
				if err := w.Send(ctx, x, 1); err != nil {
					return err
				}
				return w.Recv(ctx, x, 1)
			case 1:
				if err := w.Recv(ctx, x, 0); err != nil {
					return err
				}
				return w.Send(ctx, x, 0)
			}
			return nil
		}})
	}
	if 4*n == 4 {
		list = append(list, collective{"barrier", func() error { return w.Barrier(ctx) }})
	}
	for _, c := range list {
		median, err := timeCollective(ctx, w.Group, c.call, budget)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		m := distMeasurement{Collective: c.name, Bytes: 4 * n, Median: median.Seconds() * 1e6, Memory: memory}
		m.Bandwidth = float64(4*n) / median.Seconds() / 1e9
		r.Measured = append(r.Measured, m)
	}
	return nil
}

// timeCollective makes a call as often on every rank, which rank 0 decides by the time that a few take.
func timeCollective(ctx context.Context, w *dist.Group, call func() error, budget time.Duration) (time.Duration, error) {
	times := make([]time.Duration, 0, 1000)
	repeat := func(n int) error {
		times = times[:0]
		for range n {
			start := time.Now()
			if err := call(); err != nil {
				return err
			}
			times = append(times, max(time.Since(start), 1))
		}
		return nil
	}
	start := time.Now()
	if err := repeat(3); err != nil {
		return 0, err
	}
	n := []int32{int32(min(max(3*budget/max(time.Since(start), 1), 3), 1000))}
	if err := w.Broadcast(ctx, n, 0); err != nil {
		return 0, err
	}
	if err := w.Barrier(ctx); err != nil {
		return 0, err
	}
	if err := repeat(int(n[0])); err != nil {
		return 0, err
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func (r *distReport) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	launcher := r.World.Launcher
	if launcher == "" {
		launcher = "none"
	}
	fmt.Fprintf(table, "engine\t%s\nlauncher\t%s\n", r.World.Engine, launcher)
	if r.World.Library != "" {
		fmt.Fprintf(table, "library\t%s\n\t%s\n", strings.TrimSuffix(fmt.Sprintf("%s (%s)", r.World.Library, r.World.Family), " ()"), r.World.Version)
	}
	for i, rank := range r.Ranks {
		fmt.Fprintf(table, "rank %d of %d\t%s, local rank %d, %s\n", i, len(r.Ranks), rank.Host, rank.LocalRank, rank.Device)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "collective\tbytes\tµs\tGB/s\tcopy GB/s\t\n")
	for _, m := range r.Measured {
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.3f\t%.3f\t\n", m.Collective, m.Bytes, m.Median, m.Bandwidth, m.Memory)
	}
	return table.Flush()
}
