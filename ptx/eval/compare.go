package eval

import (
	"math"

	"github.com/wavelane/wavelane/ptx/ir"
)

const (
	floatCompares = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
	intCompares   = "eq ne lt le gt ge lo ls hi hs"
	boolOps       = " and or xor"
	extremes      = "ftz NaN xorsign abs"
)

func addCompare(add adder) {
	add("setp",
		row{"b16 b32 b64 " + allInts, intCompares + boolOps, 2, 3, setp},
		row{"f32 f16 f16x2", floatCompares + boolOps + " ftz", 2, 3, setp},
		row{"f64 bf16 bf16x2", floatCompares + boolOps, 2, 3, setp})
	add("set", row{"u32 s32 f32 u16 s16 f16 bf16 f16x2 bf16x2", floatCompares + " lo ls hi hs" + boolOps + " ftz", 2, 3, set})
	add("min max", row{"f32", extremes, 2, 3, extreme}, row{"f64", "", 2, 2, extreme}, row{"f16 f16x2", extremes, 2, 2, extreme},
		row{"bf16 bf16x2", "NaN xorsign abs", 2, 2, extreme})
	add("selp", row{"b16 b32 b64 f32 f64 " + allInts, "", 3, 3, same(selp)})
	add("slct", row{"b16 b32 b64 f32 f64 " + allInts, "ftz", 3, 3, slct})
	add("testp", row{"f32 f64", "finite infinite number notanumber normal subnormal", 1, 1, testp})
	add("mov", row{"pred b16 b32 b64 f32 f64 " + allInts, "", 1, 1, func(in *ir.Instr, t ir.Type) (Func, error) {
		if in.Args[0].Kind == ir.VecOperand || in.Args[1].Kind == ir.VecOperand {
			return nil, errForm
		}
		m := mask(uint(t.Bits()))
		return func(a, _, _, _ uint64) uint64 { return a & m }, nil
	}})
}

func selp(w uint, _ bool) Func {
	m := mask(w)
	return func(a, b, c, _ uint64) uint64 {
		if c&1 == 0 {
			a = b
		}
		return a & m
	}
}

// slct takes a where c is not negative; NaN and no −0 counts as negative.
func slct(in *ir.Instr, t ir.Type) (Func, error) {
	m := mask(uint(t.Bits()))
	var first func(c uint64) bool
	switch in.Type(1) {
	case ir.S32:
		first = func(c uint64) bool { return int32(c) >= 0 }
	case ir.F32:
		first = func(c uint64) bool { return from32(c) >= 0 }
		if in.Has(ir.FTZ) {
			first = func(c uint64) bool { return from32(f32.flush(c)) >= 0 }
		}
	default:
		return nil, errForm
	}
	return func(a, b, c, _ uint64) uint64 {
		if !first(c) {
			a = b
		}
		return a & m
	}, nil
}

func testp(in *ir.Instr, t ir.Type) (Func, error) {
	f := formatOf(t)
	of := func(test func(v uint64) bool) (Func, error) {
		return func(a, _, _, _ uint64) uint64 { return truth(test(a & (f.sign() - 1))) }, nil
	}
	switch in.First("finite", "infinite", "number", "notanumber", "normal", "subnormal") {
	case "finite":
		return of(func(v uint64) bool { return v < f.inf() })
	case "infinite":
		return of(func(v uint64) bool { return v == f.inf() })
	case "number":
		return of(func(v uint64) bool { return v <= f.inf() })
	case "notanumber":
		return of(func(v uint64) bool { return v > f.inf() })
	case "normal":
		return of(func(v uint64) bool { return v >= f.normal() && v < f.inf() })
	case "subnormal":
		return of(func(v uint64) bool { return v > 0 && v < f.normal() })
	}
	return nil, errForm
}

// float64 is the value of a number of at most 53 bits.
func (f *format) float64(v uint64) float64 {
	switch f {
	case f32:
		return float64(from32(v))
	case f64:
		return math.Float64frombits(v)
	}
	return math.Float64frombits(f64.round(f.unpack(v), ir.RN))
}

// relations tells for a comparison which of a < b, a = b, a > b and unordered fulfil it.
const (
	less = 1 << iota
	equal
	greater
	unordered
)

var relations = map[ir.Mod]int{
	"eq": equal, "ne": less | greater, "lt": less, "le": less | equal, "gt": greater, "ge": greater | equal,
	"lo": less, "ls": less | equal, "hi": greater, "hs": greater | equal,
	"equ": equal | unordered, "neu": less | greater | unordered, "ltu": less | unordered, "leu": less | equal | unordered,
	"gtu": greater | unordered, "geu": greater | equal | unordered, "num": less | equal | greater, "nan": unordered,
}

// comparison is the one in the opcode, of two scalars of type t.
func comparison(in *ir.Instr, t ir.Type) (func(a, b uint64) bool, error) {
	var want int
	var name ir.Mod
	for _, m := range in.Mods {
		if r, ok := relations[m]; ok {
			want, name = r, m
			break
		}
	}
	unsignedOnly := name == "lo" || name == "ls" || name == "hi" || name == "hs"
	if want == 0 || t.Class() == ir.Bits && name != "eq" && name != "ne" || unsignedOnly && t.Class() != ir.Unsigned {
		return nil, errForm
	}
	f := formatOf(t)
	if f == nil {
		if want&unordered != 0 || name == "num" {
			return nil, errForm
		}
		return compareInts(want, uint(t.Bits()), t.IsSigned()), nil
	}
	g := func(a, b uint64) bool {
		x, y := f.float64(a), f.float64(b)
		switch {
		case x < y:
			return want&less != 0
		case x > y:
			return want&greater != 0
		case x == y:
			return want&equal != 0
		}
		return want&unordered != 0
	}
	if fast := compareFloats32(want); fast != nil && f == f32 {
		g = fast
	}
	if in.Has(ir.FTZ) {
		return func(a, b uint64) bool { return g(f.flush(a), f.flush(b)) }, nil
	}
	return g, nil
}

func compareInts(want int, w uint, signed bool) func(a, b uint64) bool {
	before := order(w, signed)
	m := mask(w)
	switch want {
	case equal:
		return func(a, b uint64) bool { return (a^b)&m == 0 }
	case less | greater:
		return func(a, b uint64) bool { return (a^b)&m != 0 }
	case less:
		return before
	case less | equal:
		return func(a, b uint64) bool { return !before(b, a) }
	case greater:
		return func(a, b uint64) bool { return before(b, a) }
	}
	return func(a, b uint64) bool { return !before(a, b) }
}

// combine is the and, or, xor in the opcode with a further predicate, if there is one.
func combine(in *ir.Instr) (func(p, c uint64) uint64, error) {
	op := in.First("and", "or", "xor")
	if (op != "") != (len(in.Args) == 4) {
		return nil, errForm
	}
	switch op {
	case "and":
		return func(p, c uint64) uint64 { return p & c }, nil
	case "or":
		return func(p, c uint64) uint64 { return p | c }, nil
	case "xor":
		return func(p, c uint64) uint64 { return p ^ c }, nil
	}
	return func(p, _ uint64) uint64 { return p }, nil
}

// predicate is the comparison of an instruction, and what combines its result with a further predicate.
func predicate(in *ir.Instr, t ir.Type) (cmp func(a, b uint64) bool, with func(p, c uint64) uint64, err error) {
	if cmp, err = comparison(in, t); err == nil {
		with, err = combine(in)
	}
	return cmp, with, err
}

// setp: a second destination gets the opposite of the comparison, combined likewise; of packed types, that of the upper halves.
func setp(in *ir.Instr, t ir.Type) (Func, error) {
	elem, two := part(t)
	cmp, with, err := predicate(in, elem)
	if err != nil {
		return nil, err
	}
	switch pair := in.Args[0].Kind == ir.PairOperand; {
	case two:
		return func(a, b, c, _ uint64) uint64 {
			return with(truth(cmp(a&0xffff, b&0xffff)), c&1) | with(truth(cmp(a>>16&0xffff, b>>16&0xffff)), c&1)<<32
		}, nil
	case pair:
		return func(a, b, c, _ uint64) uint64 {
			p := truth(cmp(a, b))
			return with(p, c&1) | with(1-p, c&1)<<32
		}, nil
	case len(in.Args) == 3:
		return func(a, b, _, _ uint64) uint64 { return truth(cmp(a, b)) }, nil
	}
	return func(a, b, c, _ uint64) uint64 { return with(truth(cmp(a, b)), c&1) }, nil
}

// set gives 1.0 in floating-point types and all ones in integers.
func set(in *ir.Instr, t ir.Type) (Func, error) {
	source := in.Type(1)
	elem, two := part(source)
	if source == ir.NoType {
		return nil, errForm
	}
	cmp, with, err := predicate(in, elem)
	if err != nil {
		return nil, err
	}
	result, _ := part(t)
	one := mask(uint(result.Bits()))
	if f := formatOf(result); f != nil {
		one = f.one()
	}
	if two { // into a packed type, or an integer of 32 bits as two halves
		if f := formatOf(result); f == nil {
			one = 0xffff
		}
		return func(a, b, c, _ uint64) uint64 {
			lo, hi := with(truth(cmp(a&0xffff, b&0xffff)), c&1), with(truth(cmp(a>>16&0xffff, b>>16&0xffff)), c&1)
			return one*lo | one*hi<<16
		}, nil
	}
	return func(a, b, c, _ uint64) uint64 { return one * with(truth(cmp(a, b)), c&1) }, nil
}

// extreme is min and max of floats: −0 is less than +0, NaN loses against numbers, or with .NaN wins. With .xorsign.abs the magnitudes
// are compared and the result has the product's sign.
func extreme(in *ir.Instr, t ir.Type) (Func, error) {
	f := formatOf(t)
	most := in.Op == "max"
	three := len(in.Args) == 4
	if in.Has(ir.XorSg) != in.Has(ir.Abs) && (!three || in.Has(ir.XorSg)) {
		return nil, errForm
	}
	s := f.sign()
	key := func(v uint64) uint64 { // ordered as the numbers are
		if v&s != 0 {
			return ^v & (s - 1)
		}
		return v | s
	}
	wins, magnitudes := in.Has(ir.NaN), in.Has(ir.Abs)
	if wins && t == ir.F64 {
		return nil, errForm
	}
	pick := func(a, b uint64) uint64 {
		switch na, nb := f.isNaN(a), f.isNaN(b); {
		case na && nb || wins && (na || nb):
			return f.nanOf(a, b, 0)
		case na:
			return b
		case nb:
			return a
		}
		if (key(b) < key(a)) != most {
			return b
		}
		return a
	}
	g := pick
	if magnitudes {
		g = func(a, b uint64) uint64 {
			r := pick(a&(s-1), b&(s-1))
			if f.isNaN(r) {
				return r
			}
			return r | (a^b)&s
		}
	}
	m := s<<1 - 1
	h := func(a, b, _, _ uint64) uint64 { return g(a&m, b&m) }
	if f == f32 && !wins && !magnitudes {
		h = extreme32(most, pick)
	}
	if three { // with .abs of their magnitudes
		if magnitudes {
			m = s - 1
		}
		h = func(a, b, c, _ uint64) uint64 { return pick(pick(a&m, b&m), c&m) }
	}
	if in.Has(ir.FTZ) {
		h = flushed(f, h)
	}
	return spread(t, h), nil
}
