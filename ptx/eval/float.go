package eval

import (
	"math"

	"github.com/wavelane/wavelane/ptx/ir"
)

const (
	rounds = "rn rz rm rp"
	halfTs = "f16 f16x2 bf16 bf16x2"
)

func addFloat(add adder) {
	for op, n := range map[string]int{"add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3} {
		add(op, row{"f32 f32x2", rounds + " ftz sat", n, n, arithmetic}, row{"f64", rounds, n, n, arithmetic})
	}
	add("add sub mul", row{"f16 f16x2", "rn ftz sat", 2, 2, arithmetic}, row{"bf16 bf16x2", "rn", 2, 2, arithmetic})
	add("fma", row{"f16 f16x2", "rn ftz sat", 3, 3, arithmetic}, row{halfTs, "rn ftz relu", 3, 3, arithmetic})
	add("div rcp sqrt", row{"f32", rounds + " ftz", 1, 2, arithmetic}, row{"f64", rounds, 1, 2, arithmetic})
	add("neg abs", row{"f32 f16 f16x2", "ftz", 1, 1, signOnly}, row{"f64 bf16 bf16x2", "", 1, 1, signOnly})
	add("copysign", row{"f32 f64", "", 2, 2, func(_ *ir.Instr, t ir.Type) (Func, error) {
		s := formatOf(t).sign()
		return func(a, b, _, _ uint64) uint64 { return a&s | b&(s-1) }, nil
	}})
}

// FMA32 is a·b + c, rounded once to nearest even, with any NaN for NaN.
//
// The product is exact in float64. Their sum rounded to float64 rounds on to the right float32 unless it lies on a boundary between two,
// which has its 28 low bits zero; then the error of the sum says to which side to lean (Boldo and Melquiond, round to odd).
func FMA32(a, b, c float32) float32 {
	p := float64(a) * float64(b) // no rounding, so that a fused instruction would be as good
	s := p + float64(c)
	if math.Float64bits(s)<<36 != 0 {
		return float32(s)
	}
	return float32(oddSum(p, float64(c)))
}

// bits32 are the bits of a result in f32.
func bits32(v float32) uint64 {
	if v != v {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(v))
}

func from32(v uint64) float32 { return math.Float32frombits(uint32(v)) }

// bits64 are the bits of a result in f64, of which a, b and c were the operands.
func bits64(v float64, a, b, c uint64) uint64 {
	if v != v {
		return f64.nanOf(a, b, c)
	}
	return math.Float64bits(v)
}

// nearest32 and nearest64 are the operations that the processor can do.
var nearest32 = map[ir.Op]Func{
	"add":  func(a, b, _, _ uint64) uint64 { return bits32(from32(a) + from32(b)) },
	"sub":  func(a, b, _, _ uint64) uint64 { return bits32(from32(a) - from32(b)) },
	"mul":  func(a, b, _, _ uint64) uint64 { return bits32(from32(a) * from32(b)) },
	"fma":  func(a, b, c, _ uint64) uint64 { return bits32(FMA32(from32(a), from32(b), from32(c))) },
	"div":  func(a, b, _, _ uint64) uint64 { return bits32(from32(a) / from32(b)) },
	"rcp":  func(a, _, _, _ uint64) uint64 { return bits32(1 / from32(a)) },
	"sqrt": func(a, _, _, _ uint64) uint64 { return bits32(float32(math.Sqrt(float64(from32(a))))) },
}

var nearest64 = map[ir.Op]Func{
	"add": func(a, b, _, _ uint64) uint64 {
		return bits64(math.Float64frombits(a)+math.Float64frombits(b), a, b, 0)
	},
	"sub": func(a, b, _, _ uint64) uint64 {
		return bits64(math.Float64frombits(a)-math.Float64frombits(b), a, b, 0)
	},
	"mul": func(a, b, _, _ uint64) uint64 {
		return bits64(math.Float64frombits(a)*math.Float64frombits(b), a, b, 0)
	},
	"fma": func(a, b, c, _ uint64) uint64 {
		return bits64(math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)), a, b, c)
	},
	"div": func(a, b, _, _ uint64) uint64 {
		return bits64(math.Float64frombits(a)/math.Float64frombits(b), a, b, 0)
	},
	"rcp":  func(a, _, _, _ uint64) uint64 { return bits64(1/math.Float64frombits(a), a, 0, 0) },
	"sqrt": func(a, _, _, _ uint64) uint64 { return bits64(math.Sqrt(math.Float64frombits(a)), a, 0, 0) },
}

// exact does an operation in any format and rounding.
func exact(op ir.Op, f *format, mode ir.Mod) Func {
	compute := map[ir.Op]func(a, b, c uint64) number{
		"add": func(a, b, _ uint64) number { return sum(f.unpack(a), f.unpack(b), mode) },
		"sub": func(a, b, _ uint64) number { return sum(f.unpack(a), f.unpack(b^f.sign()), mode) },
		"mul": func(a, b, _ uint64) number { return multiply(f.unpack(a), f.unpack(b)) },
		"fma": func(a, b, c uint64) number { return sum(multiply(f.unpack(a), f.unpack(b)), f.unpack(c), mode) },
		"div": func(a, b, _ uint64) number { return quotient(f.unpack(a), f.unpack(b)) },
		"rcp": func(a, _, _ uint64) number { return quotient(f.unpack(f.one()), f.unpack(a)) },
		"sqrt": func(a, _, _ uint64) number {
			return root(f.unpack(a))
		},
	}[op]
	return func(a, b, c, _ uint64) uint64 {
		n := compute(a, b, c)
		if n.kind == notANumber {
			return f.nanOf(a, b, c)
		}
		return f.round(n, mode)
	}
}

// operands is the number of operands of an operation.
var operands = map[ir.Op]int{"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}

func arithmetic(in *ir.Instr, t ir.Type) (Func, error) {
	op := in.Op
	if op == "mad" { // mad of floats is fma since sm_20
		op = "fma"
	}
	if len(in.Args)-1 != operands[op] {
		return nil, errForm
	}
	mode := in.Rounding()
	if mode == "" {
		mode = ir.RN
	}
	f := formatOf(t)
	var g Func
	switch {
	case f == f32 && mode == ir.RN:
		g = nearest32[op]
	case f == f64 && mode == ir.RN:
		g = nearest64[op]
	case f == f16 || f == bf16:
		g = halfArithmetic(op, f) // to nearest always
	default:
		g = exact(op, f, mode)
	}
	if in.Has(ir.FTZ) {
		g = flushed(f, g)
	}
	if in.Has(ir.Sat) {
		g = saturated(f, g)
	}
	if in.Has(ir.Relu) {
		g = relu(f, g)
	}
	return spread(t, g), nil
}

// spread applies a function of scalars to all parts of t.
func spread(t ir.Type, g Func) Func {
	switch _, two := part(t); {
	case two && t == ir.F32x2:
		return func(a, b, c, d uint64) uint64 {
			return g(a&0xffffffff, b&0xffffffff, c&0xffffffff, 0) | g(a>>32, b>>32, c>>32, 0)<<32
		}
	case two:
		return halves(g)
	}
	return g
}

// flushed is .ftz: no subnormal goes in or out.
func flushed(f *format, g Func) Func {
	return func(a, b, c, d uint64) uint64 { return f.flush(g(f.flush(a), f.flush(b), f.flush(c), d)) }
}

// saturated is .sat: the result in [0, 1], NaN as +0.
func saturated(f *format, g Func) Func {
	return func(a, b, c, d uint64) uint64 { return f.saturate(g(a, b, c, d)) }
}

func (f *format) saturate(v uint64) uint64 {
	if v&f.sign() != 0 || f.isNaN(v) {
		return 0
	}
	return min(v, f.one())
}

// relu is .relu: negative numbers as +0, NaN as the canonical one.
func relu(f *format, g Func) Func {
	return func(a, b, c, d uint64) uint64 { return f.relu(g(a, b, c, d)) }
}

func (f *format) relu(v uint64) uint64 {
	switch {
	case f.isNaN(v):
		return f.nan
	case v&f.sign() != 0:
		return 0
	}
	return v
}

// signOnly is neg and abs.
func signOnly(in *ir.Instr, t ir.Type) (Func, error) {
	f := formatOf(t)
	s := f.sign()
	g := func(a, _, _, _ uint64) uint64 { return a & (s - 1) }
	if in.Op == "neg" {
		g = func(a, _, _, _ uint64) uint64 { return a ^ s }
	}
	if in.Has(ir.FTZ) {
		bare := g
		g = func(a, b, c, d uint64) uint64 { return bare(f.flush(a), b, c, d) }
	}
	return spread(t, g), nil
}
