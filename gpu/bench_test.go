package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func BenchmarkOpen(b *testing.B) {
	open(b)
	for b.Loop() {
		d, err := Open(ctx, WithSoftware(), WithAutotune(compute.TuneOff))
		require.NoError(b, err)
		d.Close()
	}
}

// A pipeline that is in the cache against one that has to be compiled.
func BenchmarkPipeline(b *testing.B) {
	d := open(b)
	desc := affineDesc()
	b.Run("case=hit", func(b *testing.B) {
		affine(b, d)
		for b.Loop() {
			_, err := NewKernel(ctx, d, desc)
			require.NoError(b, err)
		}
	})
	b.Run("case=miss", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			desc.WGSL = fmt.Sprintf("const run_%d_%d = 1;\n%s", time.Now().UnixNano(), i, affineWGSL)
			_, err := NewKernel(ctx, d, desc)
			require.NoError(b, err)
		}
	})
}

// Upload, one dispatch, readback.
func BenchmarkRoundTrip(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 16, 1 << 20} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			d := open(b)
			k := affine(b, d)
			x, y := make([]float32, n), make([]float32, n)
			l := affineLaunch(n, 2, 1)
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				require.NoError(b, k.Run(ctx, l, y, x))
			}
		})
	}
}

// 16 operations on 1M elements: one submission against sixteen.
func BenchmarkChain(b *testing.B) {
	const n, steps = 1 << 20, 16
	d := open(b)
	k := affine(b, d)
	in, out := make([]float32, n), make([]float32, n)
	b.Run("submits=1", func(b *testing.B) {
		x, err := program.ExecutorOf(d).Compile(b.Context(), chain(b, k, n, steps))
		require.NoError(b, err)
		defer x.Close()
		for b.Loop() {
			require.NoError(b, runOnce(x, in, out))
		}
	})
	b.Run("submits=16", func(b *testing.B) {
		for b.Loop() {
			copy(out, in)
			for i := range steps {
				require.NoError(b, k.Run(ctx, affineLaunch(n, 1, float32(i+1)), out, out))
			}
		}
	})
}

func BenchmarkReadback(b *testing.B) {
	for _, n := range []int{1, 1 << 20} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			d := open(b)
			x, err := d.Upload(ctx, make([]float32, n))
			require.NoError(b, err)
			y := make([]float32, n)
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				require.NoError(b, fetch(ctx, x, y))
			}
		})
	}
}
