//go:build !js

// Digits trains a small network to recognise handwritten digits: forward pass, loss, gradients and Adam are one batch,
// compiled once and replayed for each handful of digits, and the weights never leave the device. It then says how many
// digits it recognises of those that it has not seen.
//
//	go run ./examples/digits
//	go run ./examples/digits -o wasm/site/digits.json     # the weights of the demo site
//
// Several processes train together when a launcher of MPI starts them: each on its share of every handful, with gradients added over all.
//
//	go build ./examples/digits && mpirun -np 2 ./digits -seed 1
//
// Started again with the same folder for checkpoints, it goes on from the newest one, on as many processes as there are now. In a fixed
// number of shards the result has the same bits on any number of processes that divides it.
//
//	mpirun -np 4 ./digits -seed 1 -shards 4 -checkpoint checkpoints
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
	"github.com/wavelane/wavelane/dist/training"
)

type options struct {
	epochs int
	seed   uint64
	out    string
	shards int
	zero   bool
	folder string // of checkpoints
	every  int    // epochs
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
	flag.IntVar(&o.shards, "shards", 0, "compute in this `number` of shards of each 32 digits, for the same bits on any number of processes that divides it")
	flag.BoolVar(&o.zero, "zero", false, "have each process keep the optimiser's state of its part of the weights only")
	flag.StringVar(&o.folder, "checkpoint", "", "`folder` to write checkpoints to, and to go on from the newest of")
	flag.IntVar(&o.every, "every", 10, "`epochs` between checkpoints")
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
	if o.every < 1 {
		return fmt.Errorf("-every must be at least 1, not %d", o.every)
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
	if o.shards < 0 || o.shards > 0 && (rows%o.shards != 0 || o.shards%world.Size() != 0) {
		return fmt.Errorf("%d shards: they must divide %d rows, and %d ranks the shards", o.shards, rows, world.Size())
	}
	if world.Rank() != 0 {
		w, o.out = io.Discard, ""
	}
	found, err := findCheckpoint(ctx, w, world, o)
	if err != nil {
		return err
	}
	if o.seed, err = agreeOnSeed(ctx, world, o.seed, found); err != nil {
		return err
	}
	source := rand.NewPCG(o.seed, 0)
	random := rand.New(source)
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

	var n *network
	var state *training.State
	done := int32(0)
	if found != nil {
		n, err = upload(ctx, dev, found.all)
		done, state, *source = found.step, found.state, found.source
	} else {
		n, err = newNetwork(ctx, dev, random)
	}
	if err != nil {
		return err
	}
	defer n.Close()
	adam, err := training.NewAdam(ctx, dev, world.Group, n.parameters(), state, training.Options{Sharded: o.zero, Shards: o.shards})
	if err != nil {
		return err
	}
	defer adam.Close()
	start := time.Now()
	err = n.train(ctx, w, world, adam, train, o, done, random, func(done int32) error {
		if o.folder == "" {
			return nil
		}
		return n.checkpoint(ctx, world, adam, o, done, source)
	})
	if err != nil {
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

// agreeOnSeed returns the seed from which all ranks draw the same weights and pictures.
func agreeOnSeed(ctx context.Context, world *dist.World, seed uint64, found *checkpoint) (uint64, error) {
	if found != nil {
		return found.seed, nil
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	bytes := binary.LittleEndian.AppendUint64(nil, seed)
	err := world.Broadcast(ctx, bytes, 0)
	return binary.LittleEndian.Uint64(bytes), err
}

// train goes through the digits several times, in a new order and with new distortions each time. The learning rate falls in
// three stages. Each rank takes its share of the rows. So many steps are done, up to the end of an epoch. It calls save after every few
// epochs and the last one.
func (n *network) train(ctx context.Context, w io.Writer, world *dist.World, adam *training.Adam, digits []digit, o options, done int32, random *rand.Rand, save func(done int32) error) error {
	epochs, perEpoch := o.epochs, int32(len(digits)/rows)
	for _, stage := range []struct {
		until int // epoch
		rate  float32
	}{{epochs * 5 / 8, 2e-3}, {epochs * 7 / 8, 5e-4}, {epochs, 1e-4}} {
		last := perEpoch * int32(stage.until)
		if done >= last {
			continue
		}
		t, err := n.compile(ctx, world, adam, o.shards, compute.AdamOptions{LR: stage.rate, WeightDecay: 0.1})
		if err != nil {
			return err
		}
		defer t.plan.Close()
		t.number[0] = done
		for done < last {
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
			done = t.number[0]
			epoch := int(done / perEpoch)
			if epoch%20 == 0 || epoch <= 3 {
				fmt.Fprintf(w, "epoch %3d: loss %.4f\n", epoch, sum/float32(perEpoch))
			}
			if epoch%o.every == 0 || epoch == epochs {
				if err := save(done); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
