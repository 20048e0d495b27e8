//go:build !js

package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
)

var widths = []int{pixels, 128, 64, classes} // of the input and of each layer's result

// parameter is a matrix of weights or a bias on the device, and what Adam knows of its gradients.
type parameter struct{ value, mean, square compute.Tensor }

// values are a parameter's elements.
type values struct{ value, mean, square []float32 }

// fresh is a parameter of which Adam knows nothing yet.
func fresh(value []float32) values {
	return values{value, make([]float32, len(value)), make([]float32, len(value))}
}

// layer computes x·weights + bias. All layers but the last are followed by ReLU.
type layer struct{ weights, bias parameter }

// network is a multi-layer perceptron whose parameters stay on the device.
type network struct {
	dev    *wavelane.Device
	layers []layer
}

// newNetwork draws weights as He et al. (2015) initialise them.
func newNetwork(ctx context.Context, dev *wavelane.Device, random *rand.Rand) (*network, error) {
	var all []values
	for i, in := range widths[:len(widths)-1] {
		weights := make([]float32, in*widths[i+1])
		for j := range weights {
			weights[j] = float32(random.NormFloat64() * math.Sqrt(2/float64(in)))
		}
		all = append(all, fresh(weights), fresh(make([]float32, widths[i+1])))
	}
	return upload(ctx, dev, all)
}

// upload makes a network of weights and biases in turn.
func upload(ctx context.Context, dev *wavelane.Device, all []values) (_ *network, err error) {
	n := &network{dev: dev}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	for i, in := range widths[:len(widths)-1] {
		n.layers = append(n.layers, layer{})
		l := &n.layers[i]
		if err := l.weights.upload(ctx, dev, all[2*i], in, widths[i+1]); err != nil {
			return nil, err
		}
		if err := l.bias.upload(ctx, dev, all[2*i+1], widths[i+1]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (p *parameter) upload(ctx context.Context, dev *wavelane.Device, v values, shape ...int) (err error) {
	if p.value, err = dev.Upload(ctx, v.value, shape...); err != nil {
		return err
	}
	if p.mean, err = dev.Upload(ctx, v.mean, shape...); err != nil {
		return err
	}
	p.square, err = dev.Upload(ctx, v.square, shape...)
	return err
}

// parameters are the weights and biases in turn.
func (n *network) parameters() (all []parameter) {
	for _, l := range n.layers {
		all = append(all, l.weights, l.bias)
	}
	return all
}

// Close frees the parameters.
func (n *network) Close() (err error) {
	for _, p := range n.parameters() {
		for _, t := range []compute.Tensor{p.value, p.mean, p.square} {
			if t != nil {
				err = errors.Join(err, t.Close())
			}
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
		x = b.MatMulWithBias(x, b.Import(l.weights.value), b.Import(l.bias.value))
		results = append(results, x)
	}
	return inputs, results
}

// training is one step of training, compiled: a batch that computes the loss, goes back through the layers and changes every
// parameter in place.
type training struct {
	plan   *batch.Plan
	x      []float32 // the pictures, [rows, pixels]
	labels []int32
	step   []int32 // its number, from 1 on
	loss   *batch.Result
}

// compile records a step on so many rows, of which this rank has its share. Gradients are sums over all rows; with several ranks they are
// added while the layers before go on.
//
// In shards, 0 or a multiple of the number of ranks, the rows of each shard are computed with by themselves, wherever that is done, and
// what comes of all shards is added in one order: the result then does not depend on the number of ranks.
func (n *network) compile(ctx context.Context, world *dist.World, shards int, options compute.AdamOptions) (*training, error) {
	mine, here := rows/world.Size(), max(1, shards/world.Size())
	t := &training{x: make([]float32, mine*pixels), labels: make([]int32, mine), step: make([]int32, 1)}
	b := batch.New(n.dev)
	x, labels, step := b.Upload(t.x, mine, pixels), b.Upload(t.labels, mine), b.Upload(t.step, 1)
	total := func(parts []batch.Value, shape ...int) batch.Value { // of this rank's shards
		if shards == 0 {
			if world.Size() == 1 {
				return parts[0]
			}
			return b.AllReduce(parts[0], world, dist.Sum)
		}
		if world.Size() > 1 {
			all, start := b.AllGather(b.Concat(0, parts...), world), make([]int, len(shape))
			parts = nil
			for range shards {
				parts = append(parts, b.Slice(all, compute.SliceOptions{Start: slices.Clone(start), Size: shape}))
				start[0] += shape[0]
			}
		}
		sum := parts[0]
		for _, part := range parts[1:] {
			sum = b.Add(sum, part)
		}
		return sum
	}
	last, size := len(n.layers)-1, mine/here // of a shard
	smooth := compute.CrossEntropyOptions{LabelSmoothing: 0.1}
	share := b.Fill(1.0/rows, size)

	type shard struct {
		inputs, results []batch.Value
		d               batch.Value
	}
	parts := make([]shard, here)
	losses := make([]batch.Value, here)
	for i := range parts {
		p, labels := &parts[i], b.Slice(labels, compute.SliceOptions{Start: []int{i * size}, Size: []int{size}})
		p.inputs, p.results = n.forward(b, b.Slice(x, compute.SliceOptions{Start: []int{i * size, 0}, Size: []int{size, pixels}}))
		losses[i] = b.Reshape(b.Sum(b.Mul(share, b.CrossEntropy(p.results[last], labels, smooth))), 1)
		p.d = b.CrossEntropyBackward(p.results[last], labels, share, smooth)
	}
	for i := last; i >= 0; i-- {
		l := n.layers[i]
		weights, bias := make([]batch.Value, here), make([]batch.Value, here)
		for j := range parts {
			p := &parts[j]
			bias[j] = b.BiasBackward(p.d)
			p.d, weights[j] = b.MatMulBackward(p.inputs[i], b.Import(l.weights.value), p.d)
			if i > 0 {
				p.d = b.ReLUBackward(p.results[i-1], p.d)
			}
		}
		l.weights.update(b, total(weights, widths[i], widths[i+1]), step, options)
		l.bias.update(b, total(bias, widths[i+1]), step, options)
	}
	t.loss = b.Read(total(losses, 1))
	var err error
	t.plan, err = b.Compile(ctx)
	return t, err
}

func (p *parameter) update(b *batch.Batch, gradient, step batch.Value, options compute.AdamOptions) {
	b.AdamWithStep(b.Import(p.value), b.Import(p.mean), b.Import(p.square), gradient, step, options)
}

// run trains on rows of pictures that set fills in, and returns the mean loss.
func (t *training) run(ctx context.Context) (float32, error) {
	t.step[0]++
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
