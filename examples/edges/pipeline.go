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
	luma     = []float32{0.299 / 255, 0.587 / 255, 0.114 / 255} // ITU-R BT.601, of bytes
	gaussian = binomial5()
	sobelX   = []float32{-1, 0, 1, -2, 0, 2, -1, 0, 1}
	sobelY   = []float32{-1, -2, -1, 0, 0, 0, 1, 2, 1}
)

// black keeps the division defined for a picture without any edge.
const black = 1e-6

// operations of the pipeline below.
const operations = 13

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

// oneBatch finds the edges of p in one submission and one readback, into dst. Pictures are bytes on their way to the device and back.
func oneBatch(ctx context.Context, dev *wavelane.Device, p planes, dst []uint8) error {
	b := batch.New(dev)
	rgb := b.Cast(b.Upload(p.pix, 1, 3, p.h+2*margin, p.w+2*margin), compute.Float32)
	grey := b.Conv2D(rgb, b.Upload(luma, 1, 3, 1, 1))
	smooth := b.Conv2D(grey, b.Upload(gaussian, 1, 1, 5, 5))
	dx := b.Conv2D(smooth, b.Upload(sobelX, 1, 1, 3, 3))
	dy := b.Conv2D(smooth, b.Upload(sobelY, 1, 1, 3, 3))
	magnitude := b.Sqrt(b.Add(b.Mul(dx, dx), b.Mul(dy, dy)))
	brightest := b.Clip(b.Max(magnitude), black, 1e6)
	b.ReadInto(b.Cast(b.Scale(b.Div(magnitude, brightest), 255), compute.Uint8), dst)
	return b.Run(ctx)
}

// separately does the same as single calls: each uploads its operands, submits one operation and reads its result back.
func separately(ctx context.Context, dev *wavelane.Device, p planes, dst []uint8) error {
	w, h := p.w+2*margin, p.h+2*margin
	rgb, grey, smooth := make([]float32, 3*w*h), make([]float32, w*h), make([]float32, (w-4)*(h-4))
	dx, dy, edges := make([]float32, p.w*p.h), make([]float32, p.w*p.h), make([]float32, p.w*p.h)
	brightest := make([]float32, 1)
	for _, call := range []func() error{
		func() error { return dev.Cast(ctx, rgb, compute.Of(p.pix), compute.CastOptions{To: compute.Float32}) },
		func() error {
			return dev.Conv2D(ctx, grey, compute.Of(rgb, 1, 3, h, w), compute.Of(luma, 1, 3, 1, 1))
		},
		func() error { return dev.Conv2D(ctx, smooth, compute.Of(grey, h, w), compute.Of(gaussian, 5, 5)) },
		func() error { return dev.Conv2D(ctx, dx, compute.Of(smooth, h-4, w-4), compute.Of(sobelX, 3, 3)) },
		func() error { return dev.Conv2D(ctx, dy, compute.Of(smooth, h-4, w-4), compute.Of(sobelY, 3, 3)) },
		func() error { return dev.Mul(ctx, dx, dx, dx) },
		func() error { return dev.Mul(ctx, dy, dy, dy) },
		func() error { return dev.Add(ctx, edges, dx, dy) },
		func() error { return dev.Sqrt(ctx, edges, edges) },
		func() error { return dev.Max(ctx, brightest, edges) },
		func() error { return dev.Div(ctx, edges, edges, []float32{max(brightest[0], black)}) },
		func() error { return dev.Scale(ctx, edges, edges, 255) },
		func() error { return dev.Cast(ctx, dst, compute.Of(edges), compute.CastOptions{To: compute.Uint8}) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}
