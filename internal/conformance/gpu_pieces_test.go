package conformance

import (
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// What one binding cannot hold is bound in pieces: matrices by rows, by columns, by depth and by batch, images one by one, boxes
// by halves. Bindings of 16 KiB stand in for those of real devices.
func TestWebGPUPieces(t *testing.T) {
	caps := wgsl.DefaultCaps
	caps.MaxBinding = 1 << 14
	name, dev := openSoftware(t, ", bindings of 16 KiB", gpu.WithLimits(caps))
	d := newDevice(name, program.ExecutorOf(dev))
	defer d.log(t)
	run := func(e *program.Entry, fill func(b *builder)) {
		t.Run(e.Name, func(t *testing.T) {
			b := &builder{Entry: e}
			fill(b)
			d.cases(t, b.cases)
		})
	}
	run(catalogue.MatMul, func(b *builder) {
		matmul := func(o compute.MatMulOptions, bias bool, shapes ...[]int) {
			if bias {
				shapes = append(shapes, []int{shapes[1][len(shapes[1])-1]})
				if o.TransB {
					shapes[2][0] = shapes[1][len(shapes[1])-2]
				}
			}
			b.integers(program.Attr{Options: o}, shapes...)
		}
		nt, tn, tt := compute.MatMulOptions{TransB: true}, compute.MatMulOptions{TransA: true}, compute.MatMulOptions{TransA: true, TransB: true}
		for _, bias := range []bool{false, true} {
			matmul(compute.MatMulOptions{}, bias, []int{300, 40}, []int{40, 36})       // rows of a and of the result
			matmul(compute.MatMulOptions{}, bias, []int{301, 41}, []int{41, 35})       // the same, nothing aligned
			matmul(nt, bias, []int{200, 64}, []int{150, 64})                           // and columns
			matmul(nt, bias, []int{201, 63}, []int{151, 63})                           //
			matmul(tt, bias, []int{20, 150}, []int{300, 20})                           // a transposed fits
			matmul(compute.MatMulOptions{}, bias, []int{5, 700}, []int{700, 36})       // depth of b
			matmul(compute.MatMulOptions{}, bias, []int{6, 601}, []int{601, 37})       //
			matmul(compute.MatMulOptions{}, bias, []int{70, 90}, []int{90, 70})        // rows of a, depth of b
			matmul(compute.MatMulOptions{}, bias, []int{3, 70, 91}, []int{3, 91, 71})  // in each matrix of a batch
			matmul(tt, bias, []int{91, 71}, []int{71, 91})                             // depth of a, columns of b
			matmul(tn, bias, []int{400, 33}, []int{400, 30})                           // depth of both
			matmul(tt, bias, []int{701, 33}, []int{5, 701})                            // depth of a
			matmul(compute.MatMulOptions{}, bias, []int{40, 20, 31}, []int{40, 31, 9}) // matrices of a batch
			matmul(compute.MatMulOptions{}, bias, []int{40, 20, 31}, []int{31, 9})     //
			matmul(nt, bias, []int{20, 31}, []int{40, 9, 31})                          //
			matmul(compute.MatMulOptions{}, bias, []int{3, 80, 70}, []int{3, 70, 20})  // rows in each matrix of a batch
		}
	})
	run(catalogue.MatVec, func(b *builder) {
		b.integers(program.Attr{}, []int{500, 100}, []int{100})
		b.integers(program.Attr{}, []int{5000, 3}, []int{3})
	})
	run(catalogue.Conv2D, func(b *builder) {
		a := program.Attr{Options: compute.Conv2DOptions{Pad: [2]int{1, 1}}}
		b.integers(a, []int{9, 3, 20, 21}, []int{5, 3, 3, 3}, []int{5})
		b.integers(program.Attr{Options: compute.Conv2DOptions{}}, []int{9, 3, 20, 21}, []int{5, 3, 1, 1}, []int{5})
	})
	for _, e := range []*program.Entry{catalogue.MaxPool2D, catalogue.AvgPool2D} {
		run(e, func(b *builder) {
			b.random("", program.Attr{Options: compute.PoolOptions{Size: [2]int{2, 3}}}, []int{31, 20, 21})
			b.random("two passes", program.Attr{Options: compute.PoolOptions{Size: [2]int{16, 17}, Stride: [2]int{1, 2}, Pad: [2]int{3, 4}}}, []int{31, 20, 21})
		})
	}
	run(catalogue.Transpose, func(b *builder) {
		for _, perm := range [][]int{{2, 0, 1}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}} {
			b.words(program.Attr{Options: compute.TransposeOptions{Perm: perm}}, []int{30, 31, 29})
		}
	})
	run(catalogue.Slice, func(b *builder) {
		b.words(program.Attr{Options: compute.SliceOptions{Start: []int{199, 3}, Size: []int{100, 90}, Step: []int{-2, 1}}}, []int{200, 100})
	})
	run(catalogue.Pad, func(b *builder) {
		b.random("", program.Attr{Options: compute.PadOptions{Before: []int{1, 2}, After: []int{3, 0}, Value: -1}}, []int{90, 91})
	})
	run(catalogue.Concat, func(b *builder) {
		b.words(program.Attr{Options: compute.ConcatOptions{Axis: 1}}, []int{100, 60}, []int{100, 1}, []int{100, 41})
	})
	run(catalogue.Fill, func(b *builder) {
		b.add("", program.Attr{Scalars: []float32{1.5}, Options: compute.FillOptions{Shape: []int{10001}}}, func(*source) []operand { return nil })
	})
	run(catalogue.RandomUniform, func(b *builder) { b.seeded("", 1, 10001) })
	run(catalogue.Cast, func(b *builder) {
		b.random("", program.Attr{Options: compute.CastOptions{To: compute.Float16}}, []int{20001})
	})
	run(catalogue.Embedding, func(b *builder) {
		b.shaped("", 1000, 9, []int{12}, 0, 999, -1, 500, 1000, 455, 456, 910, 911, 3, 2147483647, -2147483648)
		b.shaped("", 999, 8, []int{5}, 998, 0, 512, 511, 999)
	})
	run(catalogue.Dequantize, func(b *builder) {
		b.dequantize("", compute.DequantizeOptions{Format: compute.Q5_1}, 70, 1024, nil)
		b.dequantize("", compute.DequantizeOptions{Format: compute.Q6_K, Result: compute.Float16}, 50, 1280, []int{3, 9})
	})
	run(catalogue.QuantMatMulRowMajor, func(b *builder) {
		b.quantised("", q8(compute.Q4_K, false), 1, 768, 151)  // rows of weights
		b.quantised("", q8(compute.Q5_0, true), 3, 256, 1500)  // and rows of x one by one
		b.quantised("", q8(compute.Q3_K, true), 60, 256, 170)  // columns and rows of the result
		b.quantised("", q8(compute.Q8_0, false), 90, 160, 103) // and of x
	})
	run(catalogue.QuantMatMulColMajor, func(b *builder) {
		b.quantised("", q8(compute.Q2_K, false), 1, 501, 256) // depth
		b.quantised("", q8(compute.Q4_1, false), 70, 300, 96) // and rows
	})
	run(catalogue.QuantGateUpSwiGLU, func(b *builder) { b.quantised("", q8(compute.Q5_K, true), 1, 512, 99, 99) })
	run(catalogue.QuantQKV, func(b *builder) {
		b.quantised("", compute.QuantQKVOptions{Q: compute.Q4_K, K: compute.Q8_0, V: compute.Q6_K}, 2, 512, 200, 80, 60)
	})
}

// Pieces of rows whose depth is cut as well.
func TestWebGPUDeepPieces(t *testing.T) {
	caps := wgsl.DefaultCaps
	caps.MaxBinding = 1 << 20
	name, dev := openSoftware(t, ", bindings of 1 MiB", gpu.WithLimits(caps))
	d := newDevice(name, program.ExecutorOf(dev))
	defer d.log(t)
	b := &builder{Entry: catalogue.MatMul}
	for _, bias := range [][][]int{nil, {{5}}} {
		b.integers(program.Attr{Options: compute.MatMulOptions{TransB: true}}, append([][]int{{21, 40000}, {5, 40000}}, bias...)...)
		b.integers(program.Attr{Options: compute.MatMulOptions{TransB: true}}, append([][]int{{21, 40001}, {5, 40001}}, bias...)...)
		b.integers(program.Attr{Options: compute.MatMulOptions{}}, append([][]int{{9, 70003}, {70003, 5}}, bias...)...)
	}
	b.integers(program.Attr{Options: compute.MatMulOptions{TransB: true}}, []int{19, 40000}, []int{17, 40000}, []int{17})
	d.cases(t, b.cases)
	b = &builder{Entry: catalogue.QuantMatMulRowMajor}
	b.quantised("too long to look for Inf", q8(compute.Q4_0, true), 1, 245_760, 3)
	d.cases(t, b.cases)
}
