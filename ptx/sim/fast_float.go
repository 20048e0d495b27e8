package sim

import (
	"math"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// fastFloat has the arithmetic of f32, in round to nearest.
func fastFloat(in *ir.Instr, d int32, s []ref) step {
	sat, ftz, approx, rounds := false, false, false, false
	for _, m := range in.Mods {
		switch m {
		case ir.RN:
			rounds = true
		case ir.Sat:
			sat = true
		case ir.FTZ:
			ftz = true
		case ir.Approx:
			approx = true
		case "f32":
		default:
			return nil
		}
	}
	if approx {
		return fastApproximation(in.Op, ftz && !sat, d, s)
	}
	if ftz {
		return nil
	}
	var f step
	switch in.Op {
	case "mad", "fma":
		if rounds {
			f = loop[uint32, uint32](lanes.FMA).step(d, s[0].i, s[1].i, s[2].i)
		}
	case "add":
		f = vector(lanes.Add, d, s[0].i, s[1].i)
	case "sub":
		f = vector(lanes.Sub, d, s[0].i, s[1].i)
	case "mul":
		f = vector(lanes.Mul, d, s[0].i, s[1].i)
	case "div":
		if rounds {
			f = loop[uint32, uint32](func(r, x, y, _ *[warpSize]uint32) {
				for l := range r {
					r[l] = toBits(fromBits(x[l]) / fromBits(y[l]))
				}
			}).step(d, s[0].i, s[1].i, s[0].i)
		}
	case "min", "max":
		if !sat && len(s) == 2 {
			return extremeFloat(in.Op == "max", d, s[0].i, s[1].i)
		}
	case "abs", "neg":
		if !sat {
			return signed(in.Op == "neg", d, s[0].i)
		}
	}
	if sat && f != nil {
		return saturated(f, d)
	}
	return f
}

// saturated puts what f computed into [0, 1], NaN as +0.
//
//go:noinline
func saturated(f step, d int32) step {
	return func(w *warp, m uint32) {
		f(w, m)
		r := &w.r32[d]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			switch v := r[l]; {
			case v > infinity: // negative or NaN
				r[l] = 0
			case v > one:
				r[l] = one
			}
		}
	}
}

// Bits of float32.
const (
	nan32    = 0x7fffffff
	infinity = 0x7f800000
	one      = 0x3f800000
	sign     = 0x80000000
)

// signed is neg or abs.
//
//go:noinline
func signed(neg bool, d, a int32) step {
	f := loop[uint32, uint32](func(r, x, _, _ *[warpSize]uint32) {
		for l := range r {
			r[l] = x[l] &^ sign
		}
	})
	if neg {
		f = func(r, x, _, _ *[warpSize]uint32) {
			for l := range r {
				r[l] = x[l] ^ sign
			}
		}
	}
	return f.step(d, a, a, a)
}

// extremeFloat is min or max: a number rather than NaN, and −0 is less than +0.
//
//go:noinline
func extremeFloat(most bool, d, a, b int32) step {
	if most {
		return loop[uint32, uint32](func(r, x, y, _ *[warpSize]uint32) {
			for l := range r {
				r[l] = larger(x[l], y[l])
			}
		}).step(d, a, b, a)
	}
	return loop[uint32, uint32](func(r, x, y, _ *[warpSize]uint32) {
		for l := range r {
			switch p, q := fromBits(x[l]), fromBits(y[l]); {
			case p < q || q != q && p == p:
				r[l] = x[l]
			case p > q || p != p && q == q:
				r[l] = y[l]
			case p == q:
				r[l] = x[l] | y[l]
			default:
				r[l] = nan32
			}
		}
	}).step(d, a, b, a)
}

func larger(a, b uint32) uint32 {
	switch p, q := fromBits(a), fromBits(b); {
	case p > q || q != q && p == p:
		return a
	case p < q || p != p && q == q:
		return b
	case p == q:
		return a & b
	}
	return nan32
}

// fastApproximation has ex2 and rcp.
func fastApproximation(op ir.Op, ftz bool, d int32, s []ref) step {
	switch op {
	case "ex2":
		return unary(ftz, d, s[0].i, exp2)
	case "rcp":
		return unary(ftz, d, s[0].i, func(x float32) float32 { return 1 / x })
	}
	return nil
}

// flush makes zeros of subnormal numbers.
func flush(v uint32) uint32 {
	if v&infinity == 0 {
		return v & sign
	}
	return v
}

// unary computes a function, with subnormal operands and results as zeros if ftz is set.
//
//go:noinline
func unary(ftz bool, d, a int32, f func(float32) float32) step {
	return func(w *warp, m uint32) {
		x, r := &w.r32[a], &w.r32[d]
		if m == full && !ftz {
			for l := range r {
				r[l] = toBits(f(fromBits(x[l])))
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			if ftz {
				r[l] = flush(toBits(f(fromBits(flush(x[l])))))
			} else {
				r[l] = toBits(f(fromBits(x[l])))
			}
		}
	}
}

// exp2 is 2^x as float32(math.Exp2(x)) rounds it.
//
// With n/512 nearest to x, 2^x is 2^(n/512), from a table, by 2^r with |r| ≤ 1/1024, a polynomial of degree 3: in float64 with
// an error below 100 units in the last place. Where that is too near to the middle between two float32 to tell, and outside
// normal numbers, math.Exp2 decides.
func exp2(x float32) float32 {
	if !(x > -126 && x < 128) {
		return float32(math.Exp2(float64(x)))
	}
	v := float64(x) * 512
	const shift = 1 << 17 // a conversion to an integer rounds towards zero
	n := int64(v+(shift+0.5)) - shift
	r := (v - float64(n)) * (math.Ln2 / 512)
	p := 1 + r + r*r*(1.0/2+r*(1.0/6))
	y := math.Float64bits(roots[n&511]*p) + uint64(n>>9)<<52
	const middle, doubt = 1 << 28, 256
	if low := y & (2*middle - 1); low-(middle-doubt) <= 2*doubt {
		return float32(math.Exp2(float64(x)))
	}
	return float32(math.Float64frombits(y))
}

// roots are 2^(i/512).
var roots = func() (t [512]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 512)
	}
	return t
}()

// fastConvert has conversions between numbers of up to 32 bits.
//
//go:noinline
func fastConvert(in *ir.Instr, d, s ref) step {
	to, from := in.Type(0), in.Type(1)
	if s.bank != bank32 || int(s.bits) != from.Bits() || int(d.bits) != to.Bits() {
		return nil
	}
	mode, ftz := ir.Mod(""), false
	for _, m := range in.Mods[:len(in.Mods)-2] {
		switch {
		case m == ir.FTZ:
			ftz = true
		case mode == "":
			mode = m
		default:
			return nil
		}
	}
	nearest := mode == ir.RN && !ftz
	switch {
	case to == ir.F32 && from == ir.F32 && roundings[mode] != nil:
		round := roundings[mode]
		return unary(ftz, d.i, s.i, func(x float32) float32 { return float32(round(float64(x))) })
	case to == ir.F32 && from == ir.S32 && nearest:
		return loop[uint32, uint32](func(r, x, _, _ *[warpSize]uint32) {
			for l := range r {
				r[l] = math.Float32bits(float32(int32(x[l])))
			}
		}).step(d.i, s.i, s.i, d.i)
	case to == ir.F32 && from == ir.U32 && nearest:
		return loop[uint32, uint32](func(r, x, _, _ *[warpSize]uint32) {
			for l := range r {
				r[l] = math.Float32bits(float32(x[l]))
			}
		}).step(d.i, s.i, s.i, d.i)
	case to == ir.S32 && from == ir.F32 && roundings[mode] != nil && !ftz:
		return toInteger(roundings[mode], d.i, s.i, math.MinInt32, math.MaxInt32)
	case to == ir.U32 && from == ir.F32 && roundings[mode] != nil && !ftz:
		return toInteger(roundings[mode], d.i, s.i, 0, math.MaxUint32)
	case to == ir.F32 && from == ir.F16 && mode == "" && !ftz:
		return mapped(d.i, s.i, func(v uint32) uint32 { return math.Float32bits(eval.F16ToF32(uint16(v))) })
	case to == ir.F16 && from == ir.F32 && nearest:
		return mapped(d.i, s.i, func(v uint32) uint32 { return uint32(eval.F32ToF16(fromBits(v))) })
	}
	return nil
}

// roundings are those to integers, which are exact in float64.
var roundings = map[ir.Mod]func(float64) float64{
	ir.RNI: math.RoundToEven, ir.RZI: math.Trunc, ir.RMI: math.Floor, ir.RPI: math.Ceil,
}

// mapped computes a function of bits.
//
//go:noinline
func mapped(d, a int32, f func(uint32) uint32) step {
	return func(w *warp, m uint32) {
		x, r := &w.r32[a], &w.r32[d]
		for ; m != 0; m &= m - 1 {
			r[first(m)&31] = f(x[first(m)&31])
		}
	}
}

// toInteger rounds to an integer between low and high; NaN gives 0.
//
//go:noinline
func toInteger(round func(float64) float64, d, a int32, low, high float64) step {
	return mapped(d, a, func(v uint32) uint32 {
		x := round(float64(fromBits(v)))
		if x != x {
			return 0
		}
		return uint32(int64(max(low, min(high, x))))
	})
}
