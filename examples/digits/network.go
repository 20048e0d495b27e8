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
)

var widths = []int{pixels, 128, 64, classes} // of the input and of each layer's result

// parameter is a matrix of weights or a bias on the device, and what adam knows of its gradients.
type parameter struct{ value, mean, square compute.Tensor }

// layer computes x·weights + bias. All layers but the last are followed by ReLU.
type layer struct{ weights, bias parameter }

// network is a multi-layer perceptron whose parameters stay on the device.
type network struct {
	dev    *wavelane.Device
	layers []layer
}

// newNetwork draws weights as He et al. (2015) initialise them.
func newNetwork(ctx context.Context, dev *wavelane.Device, random *rand.Rand) (*network, error) {
	var values [][]float32
	for i, in := range widths[:len(widths)-1] {
		weights := make([]float32, in*widths[i+1])
		for j := range weights {
			weights[j] = float32(random.NormFloat64() * math.Sqrt(2/float64(in)))
		}
		values = append(values, weights, make([]float32, widths[i+1]))
	}
	return upload(ctx, dev, values)
}

// upload makes a network of weights and biases in turn.
func upload(ctx context.Context, dev *wavelane.Device, values [][]float32) (_ *network, err error) {
	n := &network{dev: dev}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	for i, in := range widths[:len(widths)-1] {
		n.layers = append(n.layers, layer{})
		l := &n.layers[i]
		if err := l.weights.upload(ctx, dev, values[2*i], in, widths[i+1]); err != nil {
			return nil, err
		}
		if err := l.bias.upload(ctx, dev, values[2*i+1], widths[i+1]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (p *parameter) upload(ctx context.Context, dev *wavelane.Device, value []float32, shape ...int) (err error) {
	if p.value, err = dev.Upload(ctx, value, shape...); err != nil {
		return err
	}
	if p.mean, err = dev.Upload(ctx, make([]float32, len(value)), shape...); err != nil {
		return err
	}
	p.square, err = dev.Upload(ctx, make([]float32, len(value)), shape...)
	return err
}

// Close frees the parameters.
func (n *network) Close() (err error) {
	for _, l := range n.layers {
		for _, t := range []compute.Tensor{l.weights.value, l.weights.mean, l.weights.square, l.bias.value, l.bias.mean, l.bias.square} {
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

// compile records a step on so many rows. With several ranks, loss and gradients are averaged over all, while the layers before go on.
func (n *network) compile(ctx context.Context, world *dist.World, rows int, options compute.AdamOptions) (*training, error) {
	t := &training{x: make([]float32, rows*pixels), labels: make([]int32, rows), step: make([]int32, 1)}
	b := batch.New(n.dev)
	inputs, results := n.forward(b, b.Upload(t.x, rows, pixels))
	labels, step := b.Upload(t.labels, rows), b.Upload(t.step, 1)
	last := len(n.layers) - 1
	smooth := compute.CrossEntropyOptions{LabelSmoothing: 0.1}
	average := func(v batch.Value) batch.Value {
		if world.Size() == 1 {
			return v
		}
		return b.AllReduce(v, world, dist.Mean)
	}
	loss := b.Mean(b.CrossEntropy(results[last], labels, smooth))

	d := b.CrossEntropyBackward(results[last], labels, b.Fill(1/float32(rows), rows), smooth)
	for i := last; i >= 0; i-- {
		l := n.layers[i]
		dx, dw := b.MatMulBackward(inputs[i], b.Import(l.weights.value), d)
		l.weights.update(b, average(dw), step, options)
		l.bias.update(b, average(b.BiasBackward(d)), step, options)
		if i > 0 {
			d = b.ReLUBackward(results[i-1], dx)
		}
	}
	t.loss = b.Read(average(loss))
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
