//go:build !js

package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/dist/training"
)

var widths = []int{pixels, 128, 64, classes} // of the input and of each layer's result

// layer computes x·weights + bias. All layers but the last are followed by ReLU.
type layer struct{ weights, bias compute.Tensor }

// network is a multi-layer perceptron whose parameters stay on the device.
type network struct {
	dev    *wavelane.Device
	layers []layer
}

// newNetwork draws weights as He et al. (2015) initialise them.
func newNetwork(ctx context.Context, dev *wavelane.Device, random *rand.Rand) (*network, error) {
	var all [][]float32
	for i, in := range widths[:len(widths)-1] {
		weights := make([]float32, in*widths[i+1])
		for j := range weights {
			weights[j] = float32(random.NormFloat64() * math.Sqrt(2/float64(in)))
		}
		all = append(all, weights, make([]float32, widths[i+1]))
	}
	return upload(ctx, dev, all)
}

// upload makes a network of weights and biases in turn.
func upload(ctx context.Context, dev *wavelane.Device, all [][]float32) (_ *network, err error) {
	n := &network{dev: dev}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	for i, in := range widths[:len(widths)-1] {
		n.layers = append(n.layers, layer{})
		l := &n.layers[i]
		if l.weights, err = dev.Upload(ctx, all[2*i], in, widths[i+1]); err != nil {
			return nil, err
		}
		if l.bias, err = dev.Upload(ctx, all[2*i+1], widths[i+1]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// parameters are the weights and biases in turn.
func (n *network) parameters() (all []compute.Tensor) {
	for _, l := range n.layers {
		all = append(all, l.weights, l.bias)
	}
	return all
}

// Close frees the parameters.
func (n *network) Close() (err error) {
	for _, t := range n.parameters() {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// forward records the layers. It returns each layer's input and, before ReLU, its result, the last of which are the logits.
func (n *network) forward(b *batch.Batch, x batch.Value) (inputs, results []batch.Value) {
	x = b.Scale(x, 1.0/full)
	for i, l := range n.layers {
		if i > 0 {
			x = b.ReLU(x)
		}
		inputs = append(inputs, x)
		x = b.MatMulWithBias(x, b.Import(l.weights), b.Import(l.bias))
		results = append(results, x)
	}
	return inputs, results
}

// step is one step of training, compiled: a batch that computes the loss, goes back through the layers and changes every
// parameter in place.
type step struct {
	plan   *batch.Plan
	x      []float32 // the pictures, [rows, pixels]
	labels []int32
	number []int32 // from 1 on
	loss   *batch.Result
}

// compile records a step on so many rows, of which this rank has its share, in so many shards if not 0. The gradients are those of the mean
// over the rows of all ranks.
func (n *network) compile(ctx context.Context, world *dist.World, adam *training.Adam, shards int, options compute.AdamOptions) (*step, error) {
	mine, here := rows/world.Size(), max(1, shards/world.Size())
	t := &step{x: make([]float32, mine*pixels), labels: make([]int32, mine), number: make([]int32, 1)}
	b := batch.New(n.dev)
	x, labels := b.Upload(t.x, mine, pixels), b.Upload(t.labels, mine)
	last, size := len(n.layers)-1, mine/here // of a shard
	smooth := compute.CrossEntropyOptions{LabelSmoothing: 0.1}
	share := b.Fill(1.0/rows, size)
	var losses []batch.Value
	gradients := make([][]batch.Value, here)
	for s := range here {
		labels := b.Slice(labels, compute.SliceOptions{Start: []int{s * size}, Size: []int{size}})
		inputs, results := n.forward(b, b.Slice(x, compute.SliceOptions{Start: []int{s * size, 0}, Size: []int{size, pixels}}))
		losses = append(losses, b.CrossEntropy(results[last], labels, smooth))
		d := b.CrossEntropyBackward(results[last], labels, share, smooth)
		gradients[s] = make([]batch.Value, 2*len(n.layers))
		for i := last; i >= 0; i-- {
			gradients[s][2*i+1] = b.BiasBackward(d)
			d, gradients[s][2*i] = b.MatMulBackward(inputs[i], b.Import(n.layers[i].weights), d)
			if i > 0 {
				d = b.ReLUBackward(results[i-1], d)
			}
		}
	}
	if err := adam.Record(b, gradients, b.Upload(t.number, 1), options); err != nil {
		return nil, err
	}
	loss := b.Concat(0, losses...)
	if world.Size() > 1 {
		loss = b.AllGather(loss, world)
	}
	t.loss = b.Read(b.Mean(loss))
	var err error
	t.plan, err = b.Compile(ctx)
	return t, err
}

// run trains on rows of pictures that set fills in, and returns the mean loss.
func (t *step) run(ctx context.Context) (float32, error) {
	t.number[0]++
	if err := t.plan.Run(ctx); err != nil {
		return 0, err
	}
	return t.loss.Float32s()[0], nil
}

// classify returns what the network takes each digit for.
func (n *network) classify(ctx context.Context, digits []digit) ([]int32, error) {
	x := make([]float32, 0, len(digits)*pixels)
	for _, d := range digits {
		x = append(x, d.picture[:]...)
	}
	b := batch.New(n.dev)
	_, results := n.forward(b, b.Upload(x, len(digits), pixels))
	best := b.Read(b.ArgMax(results[len(results)-1], compute.LastAxis))
	if err := b.Run(ctx); err != nil {
		return nil, err
	}
	return best.Int32s(), nil
}

// accuracy is the share of digits that the network recognises.
func (n *network) accuracy(ctx context.Context, digits []digit) (float64, error) {
	found, err := n.classify(ctx, digits)
	if err != nil {
		return 0, err
	}
	right := 0
	for i, d := range digits {
		if found[i] == d.label {
			right++
		}
	}
	return float64(right) / float64(len(digits)), nil
}
