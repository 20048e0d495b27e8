package ptxkernels

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// evaluate runs one operation on vectors of one length.
func evaluate(t *testing.T, r *kerneltest.Rig, e *program.Entry, scalars []float32, in ...[]float32) []float32 {
	p := &program.Program{}
	io := &program.IO{}
	var slots []program.Slot
	for _, x := range in {
		slots = append(slots, p.Add(program.F32(len(x)), program.FromHost))
		io.Host = append(io.Host, x)
	}
	out, err := p.Apply(e, program.Attr{Scalars: scalars}, slots...)
	require.NoError(t, err)
	p.Read = append(p.Read, out)
	y := make([]float32, len(in[0]))
	io.Read = append(io.Read, y)
	x, err := r.Compile(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, x.Start(io).Await(context.Background()))
	return y
}

// between draws numbers from an interval, half of them by magnitude.
func between(rng *rand.Rand, low, high float64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		v := low + (high-low)*rng.Float64()
		switch {
		case i%2 == 0:
		case low > 0:
			v = low * math.Pow(high/low, rng.Float64())
		default:
			v *= math.Exp2(-30 * rng.Float64())
		}
		x[i] = float32(v)
	}
	return x
}

// What is said of the errors of functions is more than the catalogue asks for: small results are as exact as others, and small
// arguments do not lose digits.
func TestFunctionErrors(t *testing.T) {
	rng := ptxtest.Random(t)
	r := NewRig(t, sim.Config{Seed: rng.Uint64(), Perturb: true})
	for _, c := range []struct {
		e         *program.Entry
		low, high float64
		tol       program.Tolerance
	}{
		{catalogue.Exp, -87, 88, program.Tolerance{Rel: 6e-6}},
		{catalogue.Exp, -1, 1, program.Tolerance{Rel: 4e-7}},
		{catalogue.Log, 0.5, 2, program.Tolerance{Rel: 1.2e-7}},
		{catalogue.Log, 0.999, 1.001, program.Tolerance{Rel: 1.2e-7}},
		{catalogue.Log, 1e-44, 1e-38, program.Tolerance{Rel: 1.2e-7}},
		{catalogue.Log, 1e-44, 1e38, program.Tolerance{Rel: 1.2e-7}},
		{catalogue.Log2, 0.5, 2, program.Tolerance{Rel: 2e-7}},
		{catalogue.Log2, 1e-44, 1e38, program.Tolerance{Rel: 2e-7}},
		{catalogue.Tanh, -1, 1, program.Tolerance{Rel: 6e-7}},
		{catalogue.Sin, -1e6, 1e6, program.Tolerance{Abs: 1e-7}},
		{catalogue.Cos, -1e6, 1e6, program.Tolerance{Abs: 1e-7}},
		{catalogue.Sin, -0.7, 0.7, program.Tolerance{Rel: 1.2e-7}},
		{catalogue.SELU, -1, 0, program.Tolerance{Rel: 7e-7}},
		{catalogue.Softplus, -80, 80, program.Tolerance{Rel: 7e-6}},
		{catalogue.Mish, -80, 80, program.Tolerance{Rel: 7e-6}},
		{catalogue.SiLU, -80, 80, program.Tolerance{Rel: 7e-6}},
		{catalogue.Sigmoid, -80, 80, program.Tolerance{Rel: 7e-6}},
		{catalogue.GELU, -3, 3, program.Tolerance{Rel: 1.2e-6}},
		{catalogue.GELUErf, -30, 30, program.Tolerance{Abs: 4e-7, Rel: 2e-7}},
	} {
		x := between(rng, c.low, c.high, 16384)
		worst, at := 0.0, float32(0)
		for i, y := range evaluate(t, r, c.e, nil, x) {
			want := c.e.F([]float64{float64(x[i])}, nil)
			if e := math.Abs(float64(y)-want) / (c.tol.Abs + c.tol.Rel*math.Abs(want) + 0x1p-149); !(e <= worst) {
				worst, at = e, x[i]
			}
		}
		t.Logf("%s [%v, %v]: %.2f of %v", c.e.Name, c.low, c.high, worst, c.tol)
		require.LessOrEqual(t, worst, 1.0, "%s of %v: error in units of %v", c.e.Name, at, c.tol)
	}
}

// The error of a power grows with the exponent of its result, and exponents are even or odd up to the last of them that is odd.
func TestPow(t *testing.T) {
	rng := ptxtest.Random(t)
	r := NewRig(t, sim.Config{Seed: rng.Uint64(), Perturb: true})
	a, b := between(rng, 1e-3, 1000, 8192), between(rng, -12, 12, 8192)
	for i, y := range evaluate(t, r, catalogue.Pow, nil, a, b) {
		x, e := float64(a[i]), float64(b[i])
		want := math.Pow(x, e)
		if want > math.MaxFloat32 || want < 0x1p-126 {
			continue
		}
		require.InEpsilon(t, want, float64(y), 4e-7+3e-7*math.Abs(math.Log2(want)), "%v to the power %v", x, e)
	}

	const odd, even = 1<<24 - 1, 1 << 24
	tiny := float32(math.SmallestNonzeroFloat32)
	exponents := []float32{odd, -odd, odd - 1, even, -even, 1<<23 + 1, 1<<23 - 0.5, 3, -3, 2.5, tiny, -tiny,
		float32(math.Inf(1)), math.MaxFloat32}
	for _, base := range []float32{-1, -2, -tiny, float32(math.Copysign(0, -1)), float32(math.Inf(-1))} {
		bases := make([]float32, len(exponents))
		for i := range bases {
			bases[i] = base
		}
		for i, y := range evaluate(t, r, catalogue.Pow, nil, bases, exponents) {
			want := float32(math.Pow(float64(base), float64(exponents[i])))
			if want != want {
				require.True(t, y != y, "%v to the power %v is %v", base, exponents[i], y)
				continue
			}
			require.Equal(t, math.Signbit(float64(want)), math.Signbit(float64(y)), "%v to the power %v is %v", base, exponents[i], y)
			if want == y || math.Abs(float64(want)) < 0x1p-126 && math.Abs(float64(y)) < 0x1p-126 {
				continue
			}
			require.InEpsilon(t, want, y, 1e-4, "%v to the power %v", base, exponents[i])
		}
	}
}
