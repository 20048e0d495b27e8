//go:build !js

package benchmarks

import (
	"context"
	"math/rand/v2"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

// quantised is one vector's product with weights, beside a sum over as many bytes, which only reads, and beside weights that become
// float32 first.
func quantised(format compute.BlockFormat) prepareFunc {
	return func(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
		const k = 14336
		n := fitting(dev, 4096)
		words, err := quant.PackedWords(quant.Type(format), k)
		if err != nil {
			return nil, err
		}
		data := make([]uint32, n*words)
		for i := range data {
			data[i] = rand.Uint32() & 0x3bff3bff // halves below 1
		}
		w, err := dev.Upload(ctx, data, n, words)
		if err != nil {
			return nil, err
		}
		c.add(w.Close)
		x, err := upload(ctx, dev, c, k)
		if err != nil {
			return nil, err
		}
		bytes, err := upload(ctx, dev, c, len(data))
		if err != nil {
			return nil, err
		}
		work := 4 * float64(len(data)) / 1e9
		var ways []Way
		for _, s := range []struct {
			name   string
			record func(b *batch.Batch, in []batch.Value) batch.Value
			in     []compute.Tensor
		}{
			{"read", func(b *batch.Batch, in []batch.Value) batch.Value { return b.Sum(in[0]) }, []compute.Tensor{bytes}},
			{"8 bits", func(b *batch.Batch, in []batch.Value) batch.Value {
				return b.QuantMatMulRowMajor(in[0], in[1], compute.QuantOptions{Format: format, Q8: true})
			}, []compute.Tensor{x, w}},
			{"float32", func(b *batch.Batch, in []batch.Value) batch.Value {
				return b.QuantMatMulRowMajor(in[0], in[1], compute.QuantOptions{Format: format})
			}, []compute.Tensor{x, w}},
			{"dequantised first", func(b *batch.Batch, in []batch.Value) batch.Value {
				return b.MatVec(b.Dequantize(in[1], compute.DequantizeOptions{Format: format}), in[0])
			}, []compute.Tensor{x, w}},
		} {
			way, err := resident(ctx, dev, c, s.name, work, s.record, s.in...)
			if err != nil {
				return nil, err
			}
			ways = append(ways, way)
		}
		return ways, nil
	}
}
