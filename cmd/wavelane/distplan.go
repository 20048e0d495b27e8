//go:build !js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/dist/cost"
	"github.com/wavelane/wavelane/llm"
)

type distPlanFlags struct {
	ranks      []int
	check      string
	perMachine int
	latency    time.Duration
	bandwidth  float64
	json       bool
	wait       time.Duration
	time       time.Duration

	model  string
	tokens int
	exact  bool
	device benchFlags

	compute   time.Duration
	gradients int
	bucket    int
	overlap   float64
}

func distPlanCommand() *cobra.Command {
	var f distPlanFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Predict tokens/s or steps/s on more processes than there are",
		Long: `Predict how fast a program runs on a number of ranks: what a rank computes, and what its all-reduces take.

With --model it measures the part of a language model that a rank has, without other ranks: this device computes what one of 8 would.
Without, --compute says how long a rank computes in a step of training, and --gradients how many bytes are added over all.

All-reduces are predicted from those that were measured: under a launcher by this command, else by "dist check --json", whose output --check
names. A latency and a bandwidth are fitted to them, for other numbers of ranks. More than --per-machine ranks are on several machines, with
--latency and --bandwidth between them. Under a launcher, what is predicted for as many ranks as there are is measured beside it.`,
		Example: `  mpirun -np 2 wavelane dist check --json > check.json
  wavelane dist plan --check check.json --model model.gguf --ranks 1,2,4,8
  wavelane dist plan --check check.json --compute 90ms --gradients 540000000 --ranks 8,64 --per-machine 8 --latency 5us --bandwidth 25
  mpirun -np 4 wavelane dist plan --model model.gguf`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.usage(); err != nil {
				return err
			}
			return f.do(c.Context(), c.OutOrStdout())
		},
	}
	c.Flags().IntSliceVar(&f.ranks, "ranks", []int{1, 2, 4, 8}, "`numbers` of ranks to predict for")
	c.Flags().StringVar(&f.check, "check", "", "`file` that dist check --json wrote on one machine")
	c.Flags().IntVar(&f.perMachine, "per-machine", 0, "`ranks` on a machine; 0 for all")
	c.Flags().DurationVar(&f.latency, "latency", 5*time.Microsecond, "`time` of a message between machines")
	c.Flags().Float64Var(&f.bandwidth, "bandwidth", 12.5, "`GB/s` between two machines, in each direction")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	c.Flags().DurationVar(&f.time, "time", 200*time.Millisecond, "how long to measure each size, under a launcher")
	c.Flags().DurationVar(&f.wait, "timeout", time.Minute, "end the job when a rank does not come for so long")
	c.Flags().StringVar(&f.model, "model", "", "GGUF `file`")
	c.Flags().IntVarP(&f.tokens, "tokens", "n", 32, "`tokens` to measure")
	c.Flags().BoolVar(&f.exact, "exact", false, "multiply quantised weights with float32")
	c.Flags().StringVar(&f.device.device, "device", "", "`name` as wavelane info lists them, or gpu for the best adapter")
	c.Flags().BoolVar(&f.device.software, "software", false, "allow software adapters")
	c.Flags().DurationVar(&f.compute, "compute", 0, "`time` that a rank computes in a step of training")
	c.Flags().IntVar(&f.gradients, "gradients", 0, "`bytes` of gradients")
	c.Flags().IntVar(&f.bucket, "bucket", 32<<20, "`bytes` of gradients that are sent together; 0 for all")
	c.Flags().Float64Var(&f.overlap, "overlap", 0.6, "`share` of --compute in which gradients are sent, as the backward pass goes on")
	return c
}

func (f *distPlanFlags) usage() error {
	if (f.model == "") == (f.compute <= 0) {
		return usagef("either --model or --compute with --gradients")
	}
	if f.model == "" && f.gradients < 1 || f.bucket < 0 || !(f.overlap >= 0 && f.overlap <= 1) || f.tokens < 1 || f.perMachine < 0 {
		return usagef("--gradients %d, --bucket %d, --overlap %v, -n %d, --per-machine %d: out of range", f.gradients, f.bucket, f.overlap, f.tokens, f.perMachine)
	}
	if len(f.ranks) == 0 || slices.Min(f.ranks) < 1 || f.latency <= 0 || !(f.bandwidth > 0) || f.time <= 0 || f.wait <= 0 {
		return usagef("--ranks, --latency, --bandwidth, --time and --timeout are positive")
	}
	return nil
}

// distPlan is what is predicted.
type distPlan struct {
	Inside cost.Link     `json:"inside"` // a machine, as fitted; zero where nothing needs it
	Rows   []distPlanRow `json:"rows"`
}

// distPlanRow is for a number of ranks.
type distPlanRow struct {
	Ranks       int     `json:"ranks"`
	Impossible  string  `json:"impossible,omitempty"` // why the model cannot be divided so
	Compute     float64 `json:"compute_us,omitempty"`
	Collectives int     `json:"collectives,omitempty"`   // of a step, with a model
	Traffic     float64 `json:"all_reduce_us,omitempty"` // of a step; with gradients, what is not hidden
	Rate        float64 `json:"per_s,omitempty"`         // tokens or steps
	Measured    float64 `json:"measured_per_s,omitempty"`
	Weights     int64   `json:"weights_bytes,omitempty"` // of the rank with the most
}

func (f *distPlanFlags) do(ctx context.Context, out io.Writer) error {
	w, err := dist.Init(ctx, dist.WithTimeout(f.wait))
	if err != nil {
		return err
	}
	network, err := f.network(ctx, w)
	if err != nil {
		return err
	}
	p := &distPlan{Inside: network.Inside}
	if f.model == "" {
		for _, n := range f.ranks {
			s := cost.Step{Compute: f.compute, Gradients: f.gradients, Bucket: f.bucket, Overlap: f.overlap}
			t := network.Time(s, n)
			p.Rows = append(p.Rows, distPlanRow{Ranks: n, Compute: us(f.compute), Traffic: us(t - f.compute), Rate: 1 / t.Seconds()})
		}
	} else if err := f.models(ctx, w, network, p); err != nil {
		return err
	}
	if w.Rank() == 0 {
		if f.json {
			err = writeJSON(out, p)
		} else {
			err = p.write(out, f.model != "")
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

func us(t time.Duration) float64 { return t.Seconds() * 1e6 }

// network finds out what all-reduces take, on as many of the world's ranks as there are, or from a file.
func (f *distPlanFlags) network(ctx context.Context, w *dist.World) (*cost.Network, error) {
	n := &cost.Network{PerMachine: f.perMachine, Between: cost.Link{Latency: f.latency, Bandwidth: f.bandwidth * 1e9}, Measured: map[int][]cost.Sample{}}
	most := w.Size()
	for ranks := 2; ranks <= w.Size(); ranks++ {
		if err := subgroup(ctx, w, ranks, func(g *dist.Group) error {
			for bytes := 4; bytes <= 4<<20; bytes *= 8 {
				x := make([]float32, bytes/4)
				median, err := timeCollective(ctx, g, func() error { return g.AllReduce(ctx, x, x, dist.Sum) }, f.time)
				if err != nil {
					return err
				}
				n.Measured[ranks] = append(n.Measured[ranks], cost.Sample{Bytes: bytes, Time: median})
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if f.check != "" {
		var r distReport
		data, err := os.ReadFile(f.check)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", f.check, err)
		}
		most = len(r.Ranks)
		for _, m := range r.Measured {
			if m.Collective == allReduceName {
				n.Measured[most] = append(n.Measured[most], cost.Sample{Bytes: m.Bytes, Time: time.Duration(m.Median * 1e3)})
			}
		}
	}
	inside := slices.Max(f.ranks) // on a machine
	if f.perMachine > 0 {
		inside = min(inside, f.perMachine)
	}
	if inside == 1 || w.Rank() != 0 { // the others have not measured all
		return n, nil
	}
	if most < 2 {
		return nil, usagef("nothing says what an all-reduce takes: start this with mpirun, or give --check the output of dist check --json on two or more ranks")
	}
	var err error
	n.Inside, err = cost.Fit(most, n.Measured[most])
	return n, err
}

// subgroup has the first ranks of a world do something, while the others wait.
func subgroup(ctx context.Context, w *dist.World, ranks int, do func(g *dist.Group) error) error {
	color := 0
	if w.Rank() >= ranks {
		color = 1
	}
	g, err := w.Split(ctx, color, w.Rank())
	if err != nil {
		return err
	}
	if color == 0 {
		if err := do(g); err != nil {
			return err
		}
	}
	return w.Barrier(ctx)
}

// models predicts and measures a model for numbers of ranks. The ranks that there are measure parts at the same time, as ranks on one
// machine compute at the same time.
func (f *distPlanFlags) models(ctx context.Context, w *dist.World, network *cost.Network, p *distPlan) error {
	m, err := llm.Open(f.model)
	if err != nil {
		return err
	}
	defer m.Close()
	dev, err := wavelane.Open(ctx, f.device.options()...)
	if err != nil {
		return err
	}
	defer dev.Close()
	for _, n := range f.ranks {
		row := distPlanRow{Ranks: n}
		err := subgroup(ctx, w, n, func(g *dist.Group) error {
			part := n - g.Size() + g.Rank() // the last ones, which have the most
			var traffic []int
			alone, err := dist.Alone(part, n, func(_ string, bytes int) { traffic = append(traffic, bytes) })
			if err != nil {
				return err
			}
			t, bytes, err := f.measure(ctx, m, dev, alone, func() { traffic = nil })
			if errors.Is(err, compute.ErrShape) { // on all ranks
				row.Impossible = err.Error()
				return nil
			}
			if err != nil {
				return err
			}
			most := []float32{float32(us(t)), float32(bytes)}
			if err := g.AllReduce(ctx, most, most, dist.Max); err != nil {
				return err
			}
			row.Compute, row.Weights, row.Collectives = float64(most[0]), int64(most[1]), len(traffic)/f.tokens
			for _, b := range traffic {
				row.Traffic += us(network.AllReduce(n, b)) / float64(f.tokens)
			}
			row.Rate = 1e6 / (row.Compute + row.Traffic)
			if g.Size() < n || n == 1 {
				return nil
			}
			if t, _, err = f.measure(ctx, m, dev, g, func() {}); err == nil {
				row.Measured = 1 / t.Seconds()
			}
			return err
		})
		if err != nil {
			return err
		}
		p.Rows = append(p.Rows, row)
	}
	return nil
}

// measure returns what a token takes a member, and the bytes of its weights. It calls begin before what it measures.
func (f *distPlanFlags) measure(ctx context.Context, m *llm.Model, dev *wavelane.Device, g batch.Group, begin func()) (time.Duration, int64, error) {
	w, err := m.Load(ctx, dev, llm.WithGroup(g))
	if err != nil {
		return 0, 0, err
	}
	defer w.Close()
	opts := []llm.SessionOption{llm.WithContext(min(f.tokens+2, m.Info().Context)), llm.WithChunk(1)}
	if f.exact {
		opts = append(opts, llm.WithExact())
	}
	s, err := w.NewSession(ctx, opts...)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	if got := s.Context() - 2; got < f.tokens {
		return 0, 0, usagef("-n %d: the model has a context of %d", f.tokens, s.Context())
	}
	var times []time.Duration
	last := time.Now()
	for _, err := range s.GenerateTokens(ctx, []int32{1}, llm.WithMaxTokens(f.tokens+1), llm.WithIgnoreEnd()) {
		if err != nil {
			return 0, 0, err
		}
		now := time.Now()
		if times = append(times, now.Sub(last)); len(times) == 1 { // the prompt's
			begin()
		}
		last = now
	}
	times = times[1:]
	slices.Sort(times)
	return times[len(times)/2], w.Bytes(), nil
}

func (p *distPlan) write(out io.Writer, model bool) error {
	if p.Inside.Bandwidth > 0 {
		fmt.Fprintf(out, "all-reduces on one machine are as with a latency of %v and %.2f GB/s\n\n", p.Inside.Latency, p.Inside.Bandwidth/1e9)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if model {
		fmt.Fprintf(table, "ranks\tMB of weights\tcompute µs\tall-reduces\tµs\ttokens/s\tmeasured\t\n")
	} else {
		fmt.Fprintf(table, "ranks\tcompute µs\twaiting µs\tsteps/s\tof all ranks\t\n")
	}
	for _, r := range p.Rows {
		measured := "-"
		if r.Measured > 0 {
			measured = fmt.Sprintf("%.1f", r.Measured)
		}
		switch {
		case r.Impossible != "":
			fmt.Fprintf(table, "%d\t-\t-\t-\t-\t-\t-\t\n", r.Ranks)
		case model:
			fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%d\t%.1f\t%.1f\t%s\t\n", r.Ranks, float64(r.Weights)/1e6, r.Compute, r.Collectives, r.Traffic, r.Rate, measured)
		default:
			fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.2f\t%.2f\t\n", r.Ranks, r.Compute, r.Traffic, r.Rate, r.Rate*float64(r.Ranks))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range p.Rows {
		if r.Impossible != "" {
			fmt.Fprintf(out, "%d ranks: %s\n", r.Ranks, r.Impossible)
		}
	}
	return nil
}
