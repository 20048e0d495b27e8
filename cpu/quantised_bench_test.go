package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// replay compiles one operation on tensors that stay on the device, and returns what runs it.
func replay(t testing.TB, d *cpu.Device, e *program.Entry, a program.Attr, in ...compute.Tensor) func() time.Duration {
	p, io := &program.Program{}, &program.IO{Tensors: in}
	var slots []program.Slot
	for _, x := range in {
		slots = append(slots, p.Add(program.Type{DType: x.DType(), Shape: x.Shape()}, program.FromTensor))
	}
	y, err := p.Apply(e, a, slots...)
	require.NoError(t, err)
	p.Read = []program.Slot{y}
	io.Read = []any{program.MakeSlice(p.Values[y].Type)}
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	return func() time.Duration {
		start := time.Now()
		if err := wait(x.Start(io)); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
}

// Products of few rows with quantised weights read the weights once; of-read is how near they come to a sum over as many
// bytes as float32, which only reads. The two alternate.
func BenchmarkQuantised(b *testing.B) {
	const n, k = 4096, 14336
	d := open(b)
	upload := func(data any, shape ...int) compute.Tensor {
		t, err := d.Upload(b.Context(), data, shape...)
		require.NoError(b, err)
		return t
	}
	for _, format := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q2_K, quant.Q3_K,
		quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		words, err := quant.PackedWords(format, k)
		require.NoError(b, err)
		data := make([]uint32, n*words)
		for i := range data {
			data[i] = rand.Uint32() & 0x3bff3bff // halves below 1
		}
		w := upload(data, n, words)
		plain := make([]float32, len(data))
		for i := range plain {
			plain[i] = rand.Float32()
		}
		read := replay(b, d, catalogue.Sum, program.Attr{Options: compute.AllAxes}, upload(plain, len(plain)))
		for _, m := range []int{1, 8} {
			x := make([]float32, m*k)
			for i := range x {
				x[i] = rand.Float32() - 0.5
			}
			in := upload(x, m, k)
			for _, q8 := range []bool{true, false} {
				b.Run(fmt.Sprintf("format=%v/m=%d/q8=%v", format, m, q8), func(b *testing.B) {
					o := compute.QuantOptions{Format: compute.BlockFormat(format), Q8: q8}
					run := replay(b, d, catalogue.QuantMatMulRowMajor, program.Attr{Options: o}, in, w)
					var reads, runs []time.Duration
					run()
					for b.Loop() {
						reads, runs = append(reads, read()), append(runs, run())
					}
					slices.Sort(reads)
					slices.Sort(runs)
					took, reading := runs[len(runs)/2].Seconds(), reads[len(reads)/2].Seconds()
					b.ReportMetric(float64(4*len(data))/took/1e9, "GB/s")
					b.ReportMetric(reading/took, "of-read")
				})
			}
		}
		require.NoError(b, w.Close())
	}
}
