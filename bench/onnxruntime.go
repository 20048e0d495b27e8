package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/simd"
)

//go:embed onnxruntime/peer.py
var onnxPeer string

// startONNX starts a Python with ONNX Runtime where there is one.
func startONNX() ([]*worker, map[string]string, error) {
	// Names of the packages, not the packages: to Python, folders of this module that are called as they are would be empty ones.
	if exec.Command(python(), "-c", "import numpy; from onnx import helper; from onnxruntime import InferenceSession").Run() != nil {
		return nil, nil, nil
	}
	w, err := start(onnx, nil, python(), "-c", onnxPeer)
	if err != nil {
		return nil, nil, err
	}
	version, err := w.version()
	w.only, w.spins = func(c Case) bool { return c.layer }, true
	return []*worker{w}, map[string]string{onnx: version}, err
}

// layers are parts of networks, which ONNX Runtime has too; onnxruntime/peer.py reads their names.
func layers() []Case {
	all := []Case{
		convolution([3]int{64, 56, 56}, 64, 3, 1, 1),
		convolution([3]int{256, 56, 56}, 64, 1, 1, 1),
		convolution([3]int{128, 56, 56}, 128, 3, 2, 1),
		convolution([3]int{3, 224, 224}, 64, 7, 2, 1),
		convolution([3]int{512, 7, 7}, 512, 3, 1, 1),
		convolution([3]int{144, 56, 56}, 144, 3, 1, 144),
	}
	for _, s := range [][4]int{{128, 128, 12, 64}, {512, 512, 12, 64}, {2048, 2048, 8, 64}, {1, 2048, 12, 64}} {
		q, keys, heads, d := s[0], s[1], s[2], s[3]
		all = append(all, layer(fmt.Sprintf("attention/%dx%dx%dx%d", q, keys, heads, d), 4*float64(q*keys*heads*d), 0,
			func(b *batch.Batch, in func(shape ...int) batch.Value) batch.Value {
				return b.Attention(in(1, q, heads, d), in(1, keys, heads, d), in(1, keys, heads, d))
			}))
	}
	for _, s := range [][2]int{{512, 128}, {512, 512}, {4096, 1024}} {
		rows, n := s[0], s[1]
		all = append(all, layer(fmt.Sprintf("softmax_rows/%dx%d", rows, n), 0, float64(rows*n),
			func(b *batch.Batch, in func(shape ...int) batch.Value) batch.Value { return b.Softmax(in(rows, n)) }))
	}
	for _, s := range [][2]int{{128, 768}, {512, 768}, {2048, 4096}} {
		rows, n := s[0], s[1]
		all = append(all, layer(fmt.Sprintf("layer_norm/%dx%d", rows, n), 0, float64(rows*n),
			func(b *batch.Batch, in func(shape ...int) batch.Value) batch.Value {
				return b.LayerNorm(in(rows, n), in(n), in(n), 1e-5)
			}))
	}
	for _, n := range []int{1 << 16, 1 << 20} {
		all = append(all, layer(fmt.Sprintf("gelu_erf/%d", n), 0, float64(n),
			func(b *batch.Batch, in func(shape ...int) batch.Value) batch.Value { return b.GELUErf(in(n)) }))
	}
	return all
}

// layer is a case of one operation on a compiled batch; in makes its operands.
func layer(name string, flops, elems float64, record func(b *batch.Batch, in func(shape ...int) batch.Value) batch.Value) Case {
	return Case{Name: name, Flops: flops, Elems: elems, layer: true, Claims: []Claim{{onnx, 1, 1.2}},
		Make: func(int) map[string]func() {
			ctx := context.Background()
			d, err := cpu.Open(ctx)
			must(err)
			b := batch.New(d)
			b.Read(record(b, func(shape ...int) batch.Value {
				n := 1
				for _, s := range shape {
					n *= s
				}
				t, err := d.Upload(ctx, random(n), shape...)
				must(err)
				return b.Import(t)
			}))
			p, err := b.Compile(ctx)
			must(err)
			return map[string]func(){ours: func() { must(p.Run(ctx)) }}
		}}
}

// convolution is of one image, padded by half a window; beside it is the matrix product of the same size, whose second matrix would
// be the image's windows.
func convolution(in [3]int, out, side, stride, groups int) Case {
	weights := [4]int{out, in[0] / groups, side, side}
	o := compute.Conv2DOptions{Pad: [2]int{side / 2, side / 2}, Stride: [2]int{stride, stride}, Groups: groups}
	x := [4]int{1, in[0], in[1], in[2]}
	y, err := simd.Conv2DShape(x, weights, o)
	must(err)
	pixels, taps := y[2]*y[3], weights[1]*side*side
	name := fmt.Sprintf("conv2d/%dx%dx%d-%dx%dx%d", in[0], in[1], in[2], out, side, side)
	if stride > 1 {
		name += fmt.Sprintf("s%d", stride)
	}
	if groups > 1 {
		name += fmt.Sprintf("g%d", groups)
	}
	c := Case{Name: name, Flops: 2 * float64(out*pixels*taps), layer: true, Claims: []Claim{{onnx, 1, 1.2}}}
	if groups == 1 {
		c.Claims = append(c.Claims, Claim{"wavelane sgemm", 0.6, 0.8})
	}
	c.Make = func(int) map[string]func() {
		from, w, to := random(in[0]*in[1]*in[2]), random(out*taps), make([]float32, out*pixels)
		subjects := map[string]func(){ours: func() { simd.Conv2D(to, from, w, nil, x, weights, o) }}
		if groups == 1 {
			b, c := random(taps*pixels), make([]float32, out*pixels)
			subjects["wavelane sgemm"] = func() { simd.MatMul(c, w, b, out, taps, pixels) }
		}
		return subjects
	}
	return c
}
