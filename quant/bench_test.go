package quant_test

import (
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/quant"
)

const benchmarked = 1 << 14 // values

func benchmarkInput(b *testing.B, t quant.Type) ([]float32, []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, benchmarked)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	size, err := t.RowSize(len(x))
	if err != nil {
		b.Fatal(err)
	}
	blocks := make([]byte, size)
	if err := quant.Quantize(blocks, t, x); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(4 * benchmarked)
	b.ReportAllocs()
	return x, blocks
}

// The bytes per second are those of the float32 values.
func BenchmarkDequantize(b *testing.B) {
	for _, t := range quant.Types() {
		b.Run(t.String(), func(b *testing.B) {
			x, blocks := benchmarkInput(b, t)
			for b.Loop() {
				_ = quant.Dequantize(x, t, blocks)
			}
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	for _, t := range quant.Types() {
		b.Run(t.String(), func(b *testing.B) {
			x, blocks := benchmarkInput(b, t)
			for b.Loop() {
				_ = quant.Quantize(blocks, t, x)
			}
		})
	}
}
