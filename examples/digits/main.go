//go:build !js

// Digits trains a small network to recognise handwritten digits: forward pass, loss, gradients and Adam are one batch,
// compiled once and replayed for each handful of digits, and the weights never leave the device. It then says how many
// digits it recognises of those that it has not seen.
//
//	go run ./examples/digits
//	go run ./examples/digits -o wasm/site/digits.json     # the weights of the demo site
//
// Several processes train together when a launcher of MPI starts them: each on its share of every handful, with gradients averaged over all.
//
//	go build ./examples/digits && mpirun -np 2 ./digits -seed 1
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
)

type options struct {
	epochs int
	seed   uint64
	out    string
}

// rows are trained on at a time.
const rows = 32

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	software := flag.Bool("software", false, "where there is no GPU, run WebGPU on a software adapter")
	flag.IntVar(&o.epochs, "epochs", 160, "how often to see each digit, each time distorted in another way")
	flag.Uint64Var(&o.seed, "seed", 0, "of everything random; 0 draws one")
	flag.StringVar(&o.out, "o", "", "`file` to write the weights to, as JSON")
	flag.Parse()
	var opts []wavelane.Option
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	if err := run(ctx, os.Stdout, o, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options, opts ...wavelane.Option) error {
	if o.epochs < 1 {
		return fmt.Errorf("-epochs must be at least 1, not %d", o.epochs)
	}
	world, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	if err := runIn(ctx, w, world, o, opts...); err != nil {
		return err // the launcher ends the other processes
	}
	return world.Close()
}

// runIn trains with the other ranks of a world. Rank 0 prints and writes the weights, which are the same for all.
func runIn(ctx context.Context, w io.Writer, world *dist.World, o options, opts ...wavelane.Option) error {
	if rows%world.Size() != 0 {
		return fmt.Errorf("%d ranks do not divide %d rows", world.Size(), rows)
	}
	if world.Rank() != 0 {
		w, o.out = io.Discard, ""
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	seed := binary.LittleEndian.AppendUint64(nil, o.seed)
	if err := world.Broadcast(ctx, seed, 0); err != nil {
		return err
	}
	o.seed = binary.LittleEndian.Uint64(seed) // all ranks draw the same weights and pictures
	random := rand.New(rand.NewPCG(o.seed, 0))
	train, held, err := load()
	if err != nil {
		return err
	}
	dev, err := wavelane.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintf(w, "%s\n%d digits to train on, %d held out, seed %d\n", dev.Explain(), len(train), len(held), o.seed)
	if world.Size() > 1 {
		fmt.Fprintf(w, "%d ranks take part\n", world.Size())
	}

	n, err := newNetwork(ctx, dev, random)
	if err != nil {
		return err
	}
	defer n.Close()
	start := time.Now()
	if err := n.train(ctx, w, world, train, o.epochs, random); err != nil {
		return err
	}
	accuracy, err := n.accuracy(ctx, held)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "trained in %v; recognises %.2f %% of the digits held out\n", time.Since(start).Round(time.Millisecond), 100*accuracy)
	if o.out == "" {
		return nil
	}
	return n.save(ctx, o.out, held)
}

// train goes through the digits several times, in a new order and with new distortions each time. The learning rate falls in
// three stages. Each rank takes its share of the rows.
func (n *network) train(ctx context.Context, w io.Writer, world *dist.World, digits []digit, epochs int, random *rand.Rand) error {
	step := int32(0)
	for _, stage := range []struct {
		until int // epoch
		rate  float32
	}{{epochs * 5 / 8, 2e-3}, {epochs * 7 / 8, 5e-4}, {epochs, 1e-4}} {
		t, err := n.compile(ctx, world, rows/world.Size(), compute.AdamOptions{LR: stage.rate, WeightDecay: 0.1})
		if err != nil {
			return err
		}
		defer t.plan.Close()
		t.step[0] = step
		for perEpoch := int32(len(digits) / rows); step < perEpoch*int32(stage.until); {
			order := random.Perm(len(digits))
			sum := float32(0)
			for i := range perEpoch {
				for r := range rows {
					d := &digits[order[int(i)*rows+r]]
					picture := d.distort(random)
					if mine := r - world.Rank()*len(t.labels); mine >= 0 && mine < len(t.labels) {
						copy(t.x[mine*pixels:], picture[:])
						t.labels[mine] = d.label
					}
				}
				loss, err := t.run(ctx)
				if err != nil {
					return err
				}
				sum += loss
			}
			step = t.step[0]
			if epoch := step / perEpoch; epoch%20 == 0 || epoch <= 3 {
				fmt.Fprintf(w, "epoch %3d: loss %.4f\n", epoch, sum/float32(perEpoch))
			}
		}
	}
	return nil
}
