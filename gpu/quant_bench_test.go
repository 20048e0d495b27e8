package gpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// Products with weights 4096 × 4096 that lie on the device: float32, and formats. Bytes are those of the weights.
func BenchmarkQuantised(b *testing.B) {
	const n = 4096
	for _, m := range []int{1, 8, 64} {
		for _, f := range []compute.BlockFormat{0, compute.Q4_0, compute.Q8_0, compute.Q2_K, compute.Q3_K, compute.Q4_K, compute.Q5_K, compute.Q6_K} {
			name, e, a := "f32", catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{TransB: true}}
			var w any = make([]float32, n*n)
			shape := []int{n, n}
			if f != 0 {
				words, err := quant.PackedWords(quant.Type(f), n)
				require.NoError(b, err)
				name, e, a = f.String(), catalogue.QuantMatMulRowMajor, program.Attr{Options: compute.QuantOptions{Format: f}}
				w, shape = make([]uint32, n*words), []int{n, words}
			}
			b.Run(fmt.Sprintf("m=%d/weights=%s", m, name), func(b *testing.B) {
				d := open(b)
				p, io := &program.Program{}, &program.IO{}
				var in []program.Slot
				upload := func(data any, shape ...int) {
					t, err := d.Upload(ctx, data, shape...)
					require.NoError(b, err)
					io.Tensors = append(io.Tensors, t)
					in = append(in, p.Add(program.Type{DType: t.DType(), Shape: shape}, program.FromTensor))
				}
				upload(make([]float32, m*n), m, n)
				upload(w, shape...)
				y, err := p.Apply(e, a, in...)
				require.NoError(b, err)
				p.Keep = []program.Slot{y}
				ex, err := program.ExecutorOf(d).Compile(b.Context(), p)
				require.NoError(b, err)
				defer ex.Close()
				run := func() {
					io.Keep = nil
					require.NoError(b, ex.Start(io).Await(ctx))
					require.NoError(b, io.Keep[0].Close())
				}
				run()
				b.SetBytes(4 * int64(program.Len(shape)))
				for b.Loop() {
					run()
				}
			})
		}
	}
}
