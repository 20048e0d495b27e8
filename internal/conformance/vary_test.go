package conformance

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
)

// fusing is steps that become one, or few. The first scalars of the values that it returns vary.
type fusing struct {
	name   string
	steps  int // that are left
	record func(b *batch.Batch, x, w batch.Value, p []float32) (y batch.Value, varying []batch.Value)
}

var fusings = []fusing{
	{"a chain", 1, func(b *batch.Batch, x, w batch.Value, p []float32) (batch.Value, []batch.Value) {
		s := b.Vary(b.Scale(x, p[0]))
		l := b.Vary(b.LeakyReLU(b.Add(s, w), p[1]))
		e := b.Vary(b.ELU(b.Mul(l, w), p[2]))
		return b.Clip(e, -1, 7), []batch.Value{s, l, e}
	}},
	{"a number that several use", 2, func(b *batch.Batch, x, w batch.Value, p []float32) (batch.Value, []batch.Value) {
		rate := b.Vary(b.Scalar(p[0]))
		s := b.Vary(b.Scale(b.Mul(x, rate), p[1]))
		l := b.Vary(b.LeakyReLU(b.Sub(w, b.Mul(s, rate)), p[2]))
		return b.Add(b.Scale(s, 3), l), []batch.Value{rate, s, l}
	}},
	{"before a norm", 1, func(b *batch.Batch, x, w batch.Value, p []float32) (batch.Value, []batch.Value) {
		s := b.Vary(b.Scale(x, p[0]))
		l := b.Vary(b.LeakyReLU(b.Mul(s, w), p[1]))
		y := b.Vary(b.RMSNorm(l, w, p[2]*p[2]))
		return y, []batch.Value{s, l}
	}},
	{"before a sum", 1, func(b *batch.Batch, x, w batch.Value, p []float32) (batch.Value, []batch.Value) {
		s := b.Vary(b.Scale(x, p[0]))
		l := b.Vary(b.LeakyReLU(b.Add(s, w), p[1]))
		return b.Sum(l, 1), []batch.Value{s, l}
	}},
	{"after a product of transposed matrices", 2, func(b *batch.Batch, x, _ batch.Value, p []float32) (batch.Value, []batch.Value) {
		s := b.Vary(b.Scale(b.MatMul(x, b.Transpose(x)), p[0]))
		e := b.Vary(b.ELU(s, p[1]))
		return e, []batch.Value{s, e}
	}},
	{"after a norm", 1, func(b *batch.Batch, x, w batch.Value, p []float32) (batch.Value, []batch.Value) {
		n := b.Vary(b.L2Normalize(x, p[1]*p[1]))
		s := b.Vary(b.Scale(n, p[0]))
		return b.Add(s, w), []batch.Value{s}
	}},
	{"after a mean", 1, func(b *batch.Batch, x, _ batch.Value, p []float32) (batch.Value, []batch.Value) {
		s := b.Vary(b.Scale(b.Mean(x, 1), p[0]))
		e := b.Vary(b.ELU(s, p[1]))
		return e, []batch.Value{s, e}
	}},
}

// testVaryFused changes scalars of steps that have become one, be it a step of its own, a prologue or an epilogue. The
// results are bit by bit those of a plan that was recorded with these scalars, and nearly those of steps that are not fused.
// The device does not fuse the named ones.
func testVaryFused(t *testing.T, name string, d batch.Device, apart ...string) {
	const rows, cols = 6, 40
	r := newSource(Seed(), "varying and fused", 0)
	data, weights := r.floats(-2, 2, rows, cols).data, r.floats(0.5, 2, cols).data
	between := func() float32 { return float32(r.between(-2, 2)) }
	values := [][]float32{{1, 1, 1}, {0.5, 2, 0.25}, {1.25, 1.5, 1.75}, {-2, 0, 1}, {between(), between(), between()}} // devices try 1.25 …
	for _, f := range fusings {
		compile := func(p []float32, options ...batch.Option) (*batch.Plan, *batch.Result, []batch.Value) {
			b := batch.New(d, options...)
			y, varying := f.record(b, b.Upload(data, rows, cols), b.Upload(weights, cols), p)
			out := b.Read(y)
			plan, err := b.Compile(t.Context())
			require.NoError(t, err, f.name)
			return plan, out, varying
		}
		run := func(plan *batch.Plan, out *batch.Result) []float32 {
			require.NoError(t, plan.Start().Await(t.Context()))
			return out.Float32s()
		}
		// What no step varies is as it was recorded.
		first := []float32{3, -0.5, 0.25}
		plan, out, varying := compile(first)
		steps := f.steps
		if slices.Contains(apart, f.name) {
			steps++
		}
		require.Contains(t, plan.String(), fmt.Sprintf("plan of %d steps", steps), "%s: %s", name, f.name)
		for i := range len(values) + 1 { // at the third run a device may begin to replay what it has recorded
			p := append(append([]float32{}, values[i%len(values)][:len(varying)]...), first[len(varying):]...)
			for k, v := range varying {
				require.NoError(t, plan.SetScalar(v, 0, p[k]))
			}
			got := run(plan, out)
			fresh, same, _ := compile(p)
			require.Equal(t, run(fresh, same), got, "%s: %s, run %d with %v\nrepeat with WAVELANE_SEED=%d", name, f.name, i, p, Seed())
			require.NoError(t, fresh.Close())
			apart, want, _ := compile(p, batch.WithoutFusion())
			for k, w := range run(apart, want) {
				require.InDelta(t, w, got[k], 1e-5*(1+math.Abs(float64(w))), "%s: %s, element %d of run %d with %v\nrepeat with WAVELANE_SEED=%d",
					name, f.name, k, i, p, Seed())
			}
			require.NoError(t, apart.Close())
		}
		require.NoError(t, plan.Close())
	}
}
