//go:build !js

// Graphreplay lets heat spread over a plate, many small steps of one kernel each: as a launch for every step, and as a graph of
// a hundred steps that is captured once and replayed. The driver then has one call to make instead of a hundred.
//
//	go run ./examples/graphreplay            # needs an NVIDIA GPU
//	go run ./examples/graphreplay -software  # on the software GPU, on any machine
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

func main() {
	software := flag.Bool("software", false, "run on the software GPU instead of NVIDIA's driver")
	steps := flag.Int("steps", 1000, "steps, a multiple of 100")
	flag.Parse()
	var opts []cuda.Option
	if *software {
		opts = append(opts, cuda.WithSoftware())
	}
	if err := run(context.Background(), os.Stdout, *steps, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "graphreplay:", err)
		if errors.Is(err, compute.ErrUnavailable) {
			fmt.Fprintln(os.Stderr, "With -software it runs without a GPU.")
		}
		os.Exit(1)
	}
}

const (
	width, height = 64, 32
	perGraph      = 100 // steps of a graph
)

// spread is a step of the heat equation: each point moves a part, rate, towards the mean of its neighbours. The edge stays.
func spread() (*ir.Module, error) {
	m := ptx.NewModule()
	k := m.Kernel("spread")
	k.RequireThreads(32, 8, 1)
	rate := ptx.Param[float32](k, "rate")
	from := ptx.PointerParam[float32](k, "from")
	to := ptx.PointerParam[float32](k, "to")
	x, y := k.GlobalID(ptx.X), k.GlobalID(ptx.Y)
	i := y.Mad(width, x)
	at := from.At(i)
	old := at.Load()
	// Unsigned: what is left of 0 is far to the right.
	inside := func(v ptx.Reg[uint32], n int) ptx.Reg[bool] {
		return v.Sub(1).Lt(uint32(n - 2))
	}
	value := ptx.VarOf(k, old)
	k.If(inside(x, width).And(inside(y, height)), func() {
		vertical := at.At(-width).Load().Add(at.At(width).Load())
		horizontal := at.At(-1).Load().Add(at.At(1).Load())
		mean := vertical.Add(horizontal).Mul(0.25)
		value.Set(rate.Fma(mean.Sub(old), old))
	})
	to.At(i).Store(value.Get())
	return m.Build()
}

// plate is the state, in two buffers that swap.
type plate struct {
	kernel *cuda.Kernel
	stream *cuda.Stream
	heat   [2]*cuda.Buffer[float32]
}

var grid = cuda.Launch{Grid: [3]uint32{width / 32, height / 8}}

// step is the arguments of a step from buffer i%2 to the other.
func (p *plate) step(i int, rate float32) []cuda.Arg {
	return []cuda.Arg{args.F32(rate), p.heat[i%2].Arg(), p.heat[(i+1)%2].Arg()}
}

func run(ctx context.Context, w io.Writer, steps int, opts ...cuda.Option) error {
	if steps < perGraph || steps%perGraph != 0 {
		return fmt.Errorf("-steps %d: has to be a multiple of %d", steps, perGraph)
	}
	dev, err := cuda.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintln(w, dev.Info())
	p, err := prepare(dev)
	if err != nil {
		return err
	}

	// The graph has the launches, not their results: replaying it goes on from what the buffers hold.
	var first cuda.Node
	graph, err := p.stream.Capture(func(c *cuda.Capture) error {
		for i := range perGraph {
			node, err := c.Launch(p.kernel, grid, p.step(i, 0.9)...)
			if err != nil {
				return err
			}
			if i == 0 {
				first = node
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer graph.Close()

	launched, err := p.time(ctx, func(r *cuda.Recording) error {
		for i := range steps {
			if err := r.Launch(p.kernel, grid, p.step(i, 0.9)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	want := make([]float32, width*height)
	if err := p.heat[0].Download(ctx, want); err != nil {
		return err
	}
	replayed, err := p.time(ctx, func(r *cuda.Recording) error {
		for range steps / perGraph {
			if err := r.Replay(graph); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	got := make([]float32, width*height)
	if err := p.heat[0].Download(ctx, got); err != nil {
		return err
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("point %d is %v by replays, %v by launches", i, got[i], want[i])
		}
	}
	draw(w, got)
	fmt.Fprintf(w, "%d steps: %v as launches, %v as %d replays of a graph of %d; the same bits\n", steps,
		launched.Round(time.Microsecond), replayed.Round(time.Microsecond), steps/perGraph, graph.Nodes())

	// Arguments of a graph's launches can be changed: here the first step of each replay goes half as far.
	if err := graph.SetArgs(first, p.step(0, 0.45)...); err != nil {
		return err
	}
	if _, err := p.time(ctx, func(r *cuda.Recording) error { return r.Replay(graph) }); err != nil {
		return err
	}
	fmt.Fprintln(w, "and once more, the first step with another rate")
	return nil
}

// prepare loads the kernel and makes stream and buffers; the device closes them.
func prepare(dev *cuda.Device) (*plate, error) {
	module, err := spread()
	if err != nil {
		return nil, err
	}
	loaded, err := dev.LoadModule(module)
	if err != nil {
		return nil, err
	}
	p := &plate{}
	if p.kernel, err = loaded.Kernel("spread"); err != nil {
		return nil, err
	}
	if p.stream, err = dev.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	for i := range p.heat {
		if p.heat[i], err = cuda.Alloc[float32](dev, width*height); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// time begins with a plate whose upper edge is hot, and returns how long the work takes.
func (p *plate) time(ctx context.Context, work func(r *cuda.Recording) error) (time.Duration, error) {
	start := make([]float32, width*height)
	for x := range width {
		start[x] = 1
	}
	if err := p.heat[0].Upload(ctx, start); err != nil {
		return 0, err
	}
	begin := time.Now()
	r, err := p.stream.Begin()
	if err != nil {
		return 0, err
	}
	if err := work(r); err != nil {
		return 0, err
	}
	submitted, err := r.Submit()
	if err != nil {
		return 0, err
	}
	_, err = submitted.Wait(ctx)
	return time.Since(begin), err
}

// draw shows the plate, two rows a line.
func draw(w io.Writer, heat []float32) {
	const shades = " .:-=+*#%@"
	for y := 0; y < height; y += 2 {
		var line strings.Builder
		for x := range width {
			v := (heat[y*width+x] + heat[(y+1)*width+x]) / 2
			line.WriteByte(shades[min(int(v*float32(len(shades))), len(shades)-1)])
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
