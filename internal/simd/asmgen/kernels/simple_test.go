package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// simple is a kernel whose result f gives, with the magnitude that its error of at most ulp counts against; 0 is that of the
// result.
type simple struct {
	name string
	ulp  float64
	f    func(x, p []float64) (want, magnitude float64)
}

func one(f func(x float64) float64) func(x, p []float64) (float64, float64) {
	return func(x, _ []float64) (float64, float64) { return f(x[0]), 0 }
}

func two(f func(x, y float64) float64) func(x, p []float64) (float64, float64) {
	return func(x, _ []float64) (float64, float64) { return f(x[0], x[1]), 0 }
}

func sumOf(a, b float64) (float64, float64) { return a + b, math.Max(math.Abs(a), math.Abs(b)) }

func maxNaN(x, y float64) float64 {
	if x != x || y != y {
		return math.NaN()
	}
	return math.Max(x, y)
}

func minNaN(x, y float64) float64 { return -maxNaN(-x, -y) }

func signRef(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func truthRef(t bool) float64 {
	if t {
		return 1
	}
	return 0
}

var simples = []simple{
	{"Add", 0.5, two(func(x, y float64) float64 { return x + y })},
	{"Sub", 0.5, two(func(x, y float64) float64 { return x - y })},
	{"Mul", 0.5, two(func(x, y float64) float64 { return x * y })},
	{"Div", 0.5, two(func(x, y float64) float64 { return x / y })},
	{"Maximum", 0, two(maxNaN)},
	{"Minimum", 0, two(minNaN)},
	{"CopySign", 0, two(math.Copysign)},
	{"Pow", 1.3, two(math.Pow)},
	{"AddScalar", 0.5, func(x, p []float64) (float64, float64) { return x[0] + p[0], 0 }},
	{"Scale", 0.5, func(x, p []float64) (float64, float64) { return x[0] * p[0], 0 }},
	{"ScaleAdd", 1.5, func(x, p []float64) (float64, float64) { return sumOf(x[0]*p[0], p[1]) }},
	{"Axpy", 1.5, func(x, p []float64) (float64, float64) { return sumOf(x[1]*p[0], x[0]) }},
	{"MulAdd", 1.5, func(x, _ []float64) (float64, float64) { return sumOf(x[0]*x[1], x[2]) }},
	{"Lerp", 2.5, func(x, _ []float64) (float64, float64) {
		want, m := sumOf(x[0], x[2]*(x[1]-x[0]))
		return want, math.Max(m, math.Abs(x[2])*math.Max(math.Abs(x[0]), math.Abs(x[1])))
	}},
	{"Less", 0, two(func(x, y float64) float64 { return truthRef(x < y) })},
	{"LessEqual", 0, two(func(x, y float64) float64 { return truthRef(x <= y) })},
	{"Equal", 0, two(func(x, y float64) float64 { return truthRef(x == y) })},
	{"Select", 0, func(x, _ []float64) (float64, float64) {
		if x[0] != 0 {
			return x[1], 0
		}
		return x[2], 0
	}},
	{"Neg", 0, one(func(x float64) float64 { return -x })},
	{"Abs", 0, one(math.Abs)},
	{"Sqrt", 0.5, one(math.Sqrt)},
	{"Recip", 0.5, one(func(x float64) float64 { return 1 / x })},
	{"Floor", 0, one(math.Floor)},
	{"Ceil", 0, one(math.Ceil)},
	{"Round", 0, one(math.RoundToEven)},
	{"Trunc", 0, one(math.Trunc)},
	{"Fract", 0, one(func(x float64) float64 { return x - math.Trunc(x) })},
	{"Sign", 0, one(signRef)},
	{"Clip", 0, func(x, p []float64) (float64, float64) { return minNaN(maxNaN(x[0], p[0]), p[1]), 0 }},
	{"ReLU", 0, one(func(x float64) float64 { return maxNaN(x, 0) })},
	{"LeakyReLU", 0.5, func(x, p []float64) (float64, float64) {
		if x[0] < 0 {
			return x[0] * p[0], 0
		}
		return x[0], 0
	}},
	{"HardSwish", 2.5, one(zeroAtMinusInf(func(x float64) float64 { return x * minNaN(maxNaN(x+3, 0), 6) / 6 }))},
	{"Normalize", 1.5, func(x, p []float64) (float64, float64) { return (x[0] - p[0]) * p[1], 0 }},
	{"NormAffine", 3, func(x, p []float64) (float64, float64) { return sumOf((x[0]-p[0])*p[1]*x[1], x[2]) }},
	{"NormScale", 1.5, func(x, p []float64) (float64, float64) { return x[0] * p[0] * x[1], 0 }},
}

// numbers are special values and random ones, half of them of any size and half within ±100.
func numbers(r *rand.Rand, n int) []float32 {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 1.5, 2.5, -2.5, 3, -3, 100, 1 << 23, 1<<23 - 0.5,
		-1 << 24, math.MaxFloat32, -math.MaxFloat32, 0x1p-126, 0x1p-149, -0x1p-149, 0x1.8p-127, inf, -inf, nan}
	x := make([]float32, n)
	for i := range x {
		switch r.IntN(8) {
		case 0:
			x[i] = special[r.IntN(len(special))]
		case 1, 2, 3:
			x[i] = math.Float32frombits(r.Uint32())
		default:
			x[i] = float32(r.NormFloat64() * 10)
		}
	}
	return x
}

func TestSimpleKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	for _, s := range simples {
		t.Run(s.name, func(t *testing.T) {
			k := kernel(t, s.name)
			for _, set := range featureSets {
				p := k.Build(set.Features).Interpreter(block)
				guarded := 0
				for range 40 {
					var in [][]float32
					for range k.Inputs {
						in = append(in, numbers(r, block))
					}
					params := make([]float32, len(k.Params))
					for i := range params {
						params[i] = float32(r.NormFloat64() * 3)
					}
					y, guard := make([]float32, block), make([]bool, block)
					p.Map(y, guard, in, params)
					guarded += s.compare(t, y, guard, in, params)
				}
				require.Less(t, guarded, 40*block*9/10, set.name)
			}
		})
	}
}

func (s simple) compare(t *testing.T, y []float32, guard []bool, in [][]float32, params []float32) (guarded int) {
	p := make([]float64, len(params))
	for i, v := range params {
		p[i] = float64(v)
	}
	x := make([]float64, len(in))
	for i, got := range y {
		for k := range in {
			x[k] = float64(in[k][i])
		}
		if guard[i] {
			guarded++
			continue
		}
		want, magnitude := s.f(x, p)
		if overflows(x, p, want) {
			continue // intermediate results do so in float32 only
		}
		u := ulps(got, want)
		if magnitude > math.Abs(want) {
			u = math.Abs(float64(got)-want) / ulpOf(magnitude)
		}
		if !(u <= s.ulp) {
			require.FailNow(t, "inaccurate", "f(%g, %g) is %g, not %g: %g ULP", x, p, got, want, u)
		}
	}
	return guarded
}

// overflows reports finite operands with a product beyond float32 or in its denormal range, where roundings are not relative.
// Results that are exact or rounded once are right all the same.
func overflows(x, p []float64, want float64) bool {
	if len(x)+len(p) < 3 && math.Abs(want) != 0 || len(x)+len(p) == 1 {
		return false
	}
	all := append(append([]float64{}, x...), p...)
	product, smallest := 1.0, 1.0
	for _, v := range all {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return math.IsNaN(want) || math.IsInf(want, 0)
		}
		product *= math.Max(math.Abs(v), 1) * 2
		smallest *= math.Min(math.Abs(v), 1)
	}
	return product > math.MaxFloat32 || smallest < 0x1p-100
}

func ulpOf(x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e-1, -126)-23)
}
