package cpu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// measure replays one operation; work is in the unit per run.
func measure(b *testing.B, work float64, unit string, e *program.Entry, a program.Attr, in ...program.Type) {
	for _, workers := range []int{1, 0} {
		name := "workers=all"
		var opts []cpu.Option
		if workers > 0 {
			name = fmt.Sprintf("workers=%d", workers)
			opts = append(opts, cpu.WithWorkers(workers))
		}
		b.Run(name, func(b *testing.B) {
			d := open(b, opts...)
			p, io := &program.Program{}, &program.IO{}
			var slots []program.Slot
			for _, t := range in {
				slots = append(slots, p.Add(t, program.FromHost))
				x := make([]float32, t.Len())
				for i := range x {
					x[i] = float32(i*7919%2001)/1000 - 1
				}
				io.Host = append(io.Host, inType(t.DType, x))
			}
			y, err := p.Apply(e, a, slots...)
			require.NoError(b, err)
			p.Read = []program.Slot{y}
			io.Read = []any{program.MakeSlice(p.Values[y].Type)}
			x, err := program.ExecutorOf(d).Compile(b.Context(), p)
			require.NoError(b, err)
			require.NoError(b, wait(x.Start(io)))
			b.ReportAllocs()
			for b.Loop() {
				if err := wait(x.Start(io)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
		})
	}
}

func BenchmarkElementwise(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 16, 1 << 22} {
		for _, e := range []*program.Entry{catalogue.Add, catalogue.Mul, catalogue.ReLU, catalogue.Exp, catalogue.Tanh, catalogue.GELU, catalogue.GELUErf} {
			b.Run(fmt.Sprintf("op=%s/n=%d", e.Name, n), func(b *testing.B) {
				in := []program.Type{program.F32(n), program.F32(n)}[:len(e.Inputs)]
				measure(b, float64(4*n*(1+len(in))), "GB/s", e, program.Attr{}, in...)
			})
		}
	}
	b.Run("op=add/shape=4096x1024+1024", func(b *testing.B) {
		measure(b, 8*4096*1024, "GB/s", catalogue.Add, program.Attr{}, program.F32(4096, 1024), program.F32(1024))
	})
	b.Run("op=add/shape=4096x1024+4096x1", func(b *testing.B) {
		measure(b, 8*4096*1024, "GB/s", catalogue.Add, program.Attr{}, program.F32(4096, 1024), program.F32(4096, 1))
	})
}

func BenchmarkReduce(b *testing.B) {
	const n = 1 << 22
	for _, e := range []*program.Entry{catalogue.Sum, catalogue.Max, catalogue.ArgMax, catalogue.NormL2} {
		b.Run("op="+e.Name, func(b *testing.B) {
			measure(b, 4*n, "GB/s", e, program.Attr{Options: compute.AllAxes}, program.F32(n))
		})
	}
	b.Run("op=dot", func(b *testing.B) {
		measure(b, 8*n, "GB/s", catalogue.DotProduct, program.Attr{Options: compute.AllAxes}, program.F32(n), program.F32(n))
	})
}

func BenchmarkRows(b *testing.B) {
	for _, shape := range [][]int{{4096, 128}, {1, 1_000_000}} {
		b.Run(fmt.Sprintf("op=softmax/shape=%dx%d", shape[0], shape[1]), func(b *testing.B) {
			measure(b, float64(8*program.Len(shape)), "GB/s", catalogue.Softmax, program.Attr{}, program.F32(shape...))
		})
		b.Run(fmt.Sprintf("op=layer_norm/shape=%dx%d", shape[0], shape[1]), func(b *testing.B) {
			measure(b, float64(8*program.Len(shape)), "GB/s", catalogue.LayerNorm, program.Attr{Scalars: []float32{1e-5}}, program.F32(shape...), program.F32(shape[1]), program.F32(shape[1]))
		})
	}
}

// inType are the bits of x in an element type.
func inType(d compute.DType, x []float32) any {
	switch d {
	case compute.Float16:
		y := make([]compute.F16, len(x))
		for i, v := range x {
			y[i] = compute.F16Of(v)
		}
		return y
	case compute.BFloat16:
		y := make([]compute.BF16, len(x))
		for i, v := range x {
			y[i] = compute.BF16Of(v)
		}
		return y
	}
	return x
}

func BenchmarkMatMul(b *testing.B) {
	for _, d := range [][3]int{{16, 16, 16}, {64, 64, 64}, {256, 256, 256}, {1024, 1024, 1024}, {1, 4096, 4096}, {4096, 4096, 1}, {32, 65536, 32}} {
		m, k, n := d[0], d[1], d[2]
		b.Run(fmt.Sprintf("shape=%dx%dx%d", m, k, n), func(b *testing.B) {
			measure(b, 2*float64(m*k)*float64(n), "GFLOPS", catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}}, program.F32(m, k), program.F32(k, n))
		})
	}
	for _, d := range []compute.DType{compute.Float16, compute.BFloat16} {
		for _, s := range [][3]int{{256, 256, 256}, {1024, 1024, 1024}, {1, 4096, 4096}, {4096, 4096, 1}} {
			b.Run(fmt.Sprintf("shape=%dx%dx%d/%v", s[0], s[1], s[2], d), func(b *testing.B) {
				measure(b, 2*float64(s[0]*s[1])*float64(s[2]), "GFLOPS", catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}},
					program.Type{DType: d, Shape: []int{s[0], s[1]}}, program.Type{DType: d, Shape: []int{s[1], s[2]}})
			})
		}
	}
	b.Run("shape=512x512x512/transposed", func(b *testing.B) {
		measure(b, 2*512*512*512, "GFLOPS", catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{TransA: true, TransB: true}}, program.F32(512, 512), program.F32(512, 512))
	})
}

func BenchmarkConv2D(b *testing.B) {
	pad := compute.Conv2DOptions{Pad: [2]int{1, 1}}
	b.Run("channels=64to64/size=56/filter=3", func(b *testing.B) {
		measure(b, 2*64*64*9*56*56, "GFLOPS", catalogue.Conv2D, program.Attr{Options: pad}, program.F32(1, 64, 56, 56), program.F32(64, 64, 3, 3))
	})
	b.Run("channels=1to1/size=1080x1920/filter=3", func(b *testing.B) {
		measure(b, 2*9*1080*1920, "GFLOPS", catalogue.Conv2D, program.Attr{Options: pad}, program.F32(1080, 1920), program.F32(3, 3))
	})
	pad.Groups = 64
	b.Run("channels=64/size=56/filter=3/depthwise", func(b *testing.B) {
		measure(b, 2*64*9*56*56, "GFLOPS", catalogue.Conv2D, program.Attr{Options: pad}, program.F32(1, 64, 56, 56), program.F32(64, 1, 3, 3))
	})
}

func BenchmarkMove(b *testing.B) {
	b.Run("op=transpose", func(b *testing.B) {
		measure(b, 8*2048*2048, "GB/s", catalogue.Transpose, program.Attr{Options: compute.TransposeOptions{}}, program.F32(2048, 2048))
	})
	b.Run("op=copy", func(b *testing.B) { measure(b, 8<<22, "GB/s", catalogue.Copy, program.Attr{}, program.F32(1<<22)) })
}

// BenchmarkCall is a single small operation through the slice methods: compiling, running and delivering.
func BenchmarkCall(b *testing.B) {
	d := open(b)
	x, y := make([]float32, 1000), make([]float32, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := wait(d.AddAsync(y, x, x)); err != nil {
			b.Fatal(err)
		}
	}
}
