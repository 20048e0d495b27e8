//go:build !js

package main

import (
	"context"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// Convolution weights, [out, in, rows, columns].
var (
	luma     = []float32{0.299, 0.587, 0.114} // ITU-R BT.601
	gaussian = binomial5()
	sobelX   = []float32{-1, 0, 1, -2, 0, 2, -1, 0, 1}
	sobelY   = []float32{-1, -2, -1, 0, 0, 0, 1, 2, 1}
)

// black keeps the division defined for a picture without any edge.
const black = 1e-6

// operations of the pipeline below.
const operations = 10

// binomial5 is the 5×5 binomial filter, the usual small Gaussian.
func binomial5() []float32 {
	row := [5]float32{1, 4, 6, 4, 1}
	k := make([]float32, 0, 25)
	for _, a := range row {
		for _, b := range row {
			k = append(k, a*b/256)
		}
	}
	return k
}

// oneBatch finds the edges of p in one submission and one readback, into dst.
func oneBatch(ctx context.Context, dev *wavelane.Device, p planes, dst []float32) error {
	b := batch.New(dev)
	rgb := b.Upload(p.pix, 1, 3, p.h+2*margin, p.w+2*margin)
	grey := b.Conv2D(rgb, b.Upload(luma, 1, 3, 1, 1))
	smooth := b.Conv2D(grey, b.Upload(gaussian, 1, 1, 5, 5))
	dx := b.Conv2D(smooth, b.Upload(sobelX, 1, 1, 3, 3))
	dy := b.Conv2D(smooth, b.Upload(sobelY, 1, 1, 3, 3))
	magnitude := b.Sqrt(b.Add(b.Mul(dx, dx), b.Mul(dy, dy)))
	brightest := b.Clip(b.Max(magnitude), black, 1e6)
	b.ReadInto(b.Div(magnitude, brightest), dst)
	return b.Run(ctx)
}

// separately does the same as single calls: each uploads its operands, submits one operation and reads its result back.
func separately(ctx context.Context, dev *wavelane.Device, p planes, dst []float32) error {
	w, h := p.w+2*margin, p.h+2*margin
	grey, smooth := make([]float32, w*h), make([]float32, (w-4)*(h-4))
	dx, dy := make([]float32, p.w*p.h), make([]float32, p.w*p.h)
	brightest := make([]float32, 1)
	for _, call := range []func() error{
		func() error {
			return dev.Conv2D(ctx, grey, compute.Of(p.pix, 1, 3, h, w), compute.Of(luma, 1, 3, 1, 1))
		},
		func() error { return dev.Conv2D(ctx, smooth, compute.Of(grey, h, w), compute.Of(gaussian, 5, 5)) },
		func() error { return dev.Conv2D(ctx, dx, compute.Of(smooth, h-4, w-4), compute.Of(sobelX, 3, 3)) },
		func() error { return dev.Conv2D(ctx, dy, compute.Of(smooth, h-4, w-4), compute.Of(sobelY, 3, 3)) },
		func() error { return dev.Mul(ctx, dx, dx, dx) },
		func() error { return dev.Mul(ctx, dy, dy, dy) },
		func() error { return dev.Add(ctx, dst, dx, dy) },
		func() error { return dev.Sqrt(ctx, dst, dst) },
		func() error { return dev.Max(ctx, brightest, dst) },
		func() error { return dev.Div(ctx, dst, dst, []float32{max(brightest[0], black)}) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}
