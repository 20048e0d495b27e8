package eval

import (
	"math"
	"math/rand/v2"

	"github.com/wavelane/wavelane/ptx/ir"
)

func addApprox(add adder) {
	add("ex2", row{"f32", "approx ftz", 1, 1, approximate}, row{"f16 f16x2", "approx", 1, 1, approximate},
		row{"bf16 bf16x2", "approx ftz", 1, 1, approximate})
	add("tanh", row{"f32 f16 f16x2 bf16 bf16x2", "approx", 1, 1, approximate})
	add("lg2 sin cos sqrt", row{"f32", "approx ftz", 1, 1, approximate})
	add("rcp rsqrt", row{"f32 f64", "approx ftz", 1, 1, approximate})
	add("div", row{"f32", "approx full ftz", 2, 2, approximate})
}

// bound is how far a result may be from the exact one: by a fraction of it, by units in the last place, or absolutely.
type bound struct{ relative, ulps, absolute float64 }

// approximation is a function that PTX only approximates, with the bound that its manual documents.
type approximation struct {
	exact func(a, b float64) float64
	bound func(a, exact float64) bound
}

func always(b bound) func(a, exact float64) bound { return func(_, _ float64) bound { return b } }

// approximations are those of f32 by their opcode's root; half-width formats have the functions with other bounds.
var approximations = map[ir.Op]approximation{
	"ex2":   {one(math.Exp2), always(bound{ulps: 2})},
	"lg2":   {one(log2), lg2Bound},
	"sin":   {one(math.Sin), circleBound},
	"cos":   {one(math.Cos), circleBound},
	"tanh":  {one(math.Tanh), always(bound{relative: 0x1p-11})},
	"sqrt":  {one(math.Sqrt), always(bound{relative: 0x1p-23})},
	"rsqrt": {one(func(a float64) float64 { return 1 / math.Sqrt(a) }), always(bound{relative: 1.2663e-7})}, // 2^-22.9
	"rcp":   {one(func(a float64) float64 { return 1 / a }), always(bound{ulps: 1})},
	"div":   {func(a, b float64) float64 { return a / b }, always(bound{ulps: 2})},
}

var halfBounds = map[ir.Op]map[*format]bound{
	"ex2":  {f16: {relative: 0.0010465}, bf16: {relative: 0x1p-7}},  // 2^-9.9
	"tanh": {f16: {absolute: 0.00049269}, bf16: {absolute: 0x1p-8}}, // 2^-10.987
}

func one(f func(float64) float64) func(a, b float64) float64 {
	return func(a, _ float64) float64 { return f(a) }
}

// log2 is accurate to the last bits near 1 too, which math.Log2 is not.
func log2(a float64) float64 { return math.Log(a) * (1 / math.Ln2) }

func lg2Bound(a, _ float64) bound {
	if a > 0.5 && a < 2 {
		return bound{absolute: 0x1p-22}
	}
	return bound{relative: 0x1p-22}
}

// circleBound is that of sin and cos: documented up to 100π, assumed to go on so beyond.
func circleBound(a, _ float64) bound {
	if math.Abs(a) <= 2*math.Pi {
		return bound{absolute: 6.7435e-7} // 2^-20.5
	}
	return bound{absolute: 3.7572e-5} // 2^-14.7
}

func approximate(in *ir.Instr, t ir.Type) (Func, error) { return approximation32(in, t, nil) }

// Perturbed is Of, but approximate operations err at random within the bound that PTX documents. Results of zero,
// infinity and NaN, and such as are zero, infinity or NaN, stay as they are. The function uses rng, and is no safer for
// concurrent use.
func Perturbed(in *ir.Instr, rng *rand.Rand) (Func, error) {
	f, err := Of(in) // checks the form
	if err != nil || in.First(ir.Approx, ir.Full) == "" {
		return f, err
	}
	return approximation32(in, in.Type(0), rng)
}

// approximation32 is of f32 and narrower formats; rng is nil for the correctly rounded one.
func approximation32(in *ir.Instr, t ir.Type, rng *rand.Rand) (Func, error) {
	if in.First(ir.Approx, ir.Full) == "" {
		return nil, errForm
	}
	if t == ir.F64 {
		return upperHalf(in, rng)
	}
	f := formatOf(t)
	ap := approximations[in.Op]
	if b, ok := halfBounds[in.Op][f]; ok {
		ap.bound = always(b)
	}
	g := func(a, b, _, _ uint64) uint64 {
		x, y := f.float64(a), f.float64(b)
		v := ap.exact(x, y)
		r := f.from64(v)
		if rng == nil || v == 0 || x == 0 || math.IsInf(x, 0) || r&(f.sign()-1) >= f.inf() {
			return r
		}
		return f.err(r, v, ap.bound(x, v), rng)
	}
	if in.Op == "div" && in.Has(ir.Approx) {
		g = farDivisors(g)
	}
	if in.Has(ir.FTZ) {
		g = flushed(f, g)
	}
	return spread(t, g), nil
}

// farDivisors is what PTX documents of div.approx: by more than 2^126 everything gives zero, but infinity NaN.
func farDivisors(g Func) Func {
	return func(a, b, c, d uint64) uint64 {
		x, y := from32(a), math.Abs(float64(from32(b)))
		if y > 0x1p126 && !math.IsInf(y, 0) && x == x {
			if math.IsInf(float64(x), 0) {
				return f32.nan
			}
			return (a ^ b) & f32.sign()
		}
		return g(a, b, c, d)
	}
}

// from64 rounds a float64 to the format, NaN to the canonical one.
func (f *format) from64(v float64) uint64 {
	if f == f32 {
		return bits32(float32(v))
	}
	if v != v {
		return f.nan
	}
	return f.round(f64.unpack(math.Float64bits(v)), ir.RN)
}

// err moves the result r of the exact value v at random within the bound, as far as another number of the format lies within.
func (f *format) err(r uint64, v float64, b bound, rng *rand.Rand) uint64 {
	ulp := math.Abs(f.float64(r^1) - f.float64(r)) // of neighbours whose last bits differ
	reach := max(b.relative*math.Abs(v), b.ulps*ulp, b.absolute)
	e := f.from64(v + (2*rng.Float64()-1)*reach)
	if w := f.float64(e); math.Abs(w-v) > reach || math.IsInf(w, 0) {
		return r
	}
	return e
}

// upperHalf is rcp.approx.ftz.f64 and rsqrt.approx(.ftz).f64: rcp and the flushing rsqrt look at the upper 32 bits only and give
// no others.
func upperHalf(in *ir.Instr, rng *rand.Rand) (Func, error) {
	const upper = ^uint64(1<<32 - 1)
	ap := approximations[in.Op]
	cut := func(v uint64) uint64 { return f64.flush(v) & upper }
	if !in.Has(ir.FTZ) {
		if in.Op == "rcp" {
			return nil, errForm
		}
		cut = func(v uint64) uint64 { return v }
	}
	return func(a, _, _, _ uint64) uint64 {
		x := math.Float64frombits(cut(a))
		v := ap.exact(x, 0)
		switch {
		case x != x || v != v:
			return f32.nan << 32 // the canonical one of these instructions
		case rng != nil && v != 0 && !math.IsInf(v, 0):
			v *= 1 + (2*rng.Float64()-1)*0x1p-22 // PTX promises no bound in figures for the 20 bits that are left
		}
		return cut(math.Float64bits(v))
	}, nil
}
