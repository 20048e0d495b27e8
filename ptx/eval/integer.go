package eval

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

const (
	allInts = "u16 u32 u64 s16 s32 s64"
	signed  = "s16 s32 s64"
	pairs16 = "u16x2 s16x2"
)

func addInteger(add adder) {
	add("add", row{"s32", "sat", 2, 2, saturating(addInt, 1)}, row{allInts + " " + pairs16, "", 2, 2, packed(addInt)})
	add("sub", row{"s32", "sat", 2, 2, saturating(subInt, -1)}, row{allInts + " " + pairs16, "", 2, 2, packed(subInt)})
	add("mul", row{allInts, "lo hi wide", 2, 2, mulInt})
	add("mad", row{"s32", "hi sat", 3, 3, madInt}, row{allInts, "lo hi wide", 3, 3, madInt})
	add("mul24", row{"u32 s32", "lo hi", 2, 2, mul24})
	add("mad24", row{"s32", "hi sat", 3, 3, mul24}, row{"u32 s32", "lo hi", 3, 3, mul24})
	add("sad", row{allInts, "", 3, 3, same(sad)})
	add("div", row{allInts, "", 2, 2, same(divInt)})
	add("rem", row{allInts, "", 2, 2, same(remInt)})
	add("abs", row{signed, "", 1, 1, same(absInt)})
	add("neg", row{signed, "", 1, 1, same(negInt)})
	add("min", row{"s32 s16x2", "relu", 2, 2, packed(minInt)}, row{allInts + " " + pairs16, "", 2, 2, packed(minInt)})
	add("max", row{"s32 s16x2", "relu", 2, 2, packed(maxInt)}, row{allInts + " " + pairs16, "", 2, 2, packed(maxInt)})
	add("dp4a", row{"u32 s32", "", 3, 3, dp4a})
	add("dp2a", row{"u32 s32", "lo hi", 3, 3, dp2a})
}

// packed makes integer code for scalar and packed types, with .relu where the opcode has it.
func packed(f func(w uint, signed bool) Func) func(*ir.Instr, ir.Type) (Func, error) {
	return func(in *ir.Instr, t ir.Type) (Func, error) {
		elem, two := part(t)
		w := uint(elem.Bits())
		g := f(w, elem.IsSigned())
		if in.Has(ir.Relu) {
			bare := g
			g = func(a, b, c, d uint64) uint64 { return uint64(max(0, sext(bare(a, b, c, d), w))) }
		}
		if two {
			g = halves(g)
		}
		return g, nil
	}
}

func addInt(w uint, _ bool) Func {
	m := mask(w)
	return func(a, b, _, _ uint64) uint64 { return (a + b) & m }
}

func subInt(w uint, _ bool) Func {
	m := mask(w)
	return func(a, b, _, _ uint64) uint64 { return (a - b) & m }
}

func clamp32(v int64) uint64 { return uint64(uint32(min(max(v, -1<<31), 1<<31-1))) }

// saturating is a + sign·b in 32 bits, clamped with .sat.
func saturating(plain func(uint, bool) Func, sign int64) func(*ir.Instr, ir.Type) (Func, error) {
	return func(in *ir.Instr, _ ir.Type) (Func, error) {
		if !in.Has(ir.Sat) {
			return plain(32, true), nil
		}
		return func(a, b, _, _ uint64) uint64 { return clamp32(int64(int32(a)) + sign*int64(int32(b))) }, nil
	}
}

// high is the upper half of the product of two w-bit numbers.
func high(a, b uint64, w uint, signed bool) uint64 {
	switch {
	case w < 64 && signed:
		return uint64(sext(a, w)*sext(b, w)>>w) & mask(w)
	case w < 64:
		return (a & mask(w)) * (b & mask(w)) >> w
	}
	hi, _ := bits.Mul64(a, b)
	if signed {
		hi -= uint64(int64(a)>>63)&b + uint64(int64(b)>>63)&a
	}
	return hi
}

// product is the product of two w-bit numbers as .lo, .hi or .wide ask.
func product(part ir.Mod, w uint, signed bool) (f Func, width uint, err error) {
	m := mask(w)
	switch part {
	case ir.Lo:
		return func(a, b, _, _ uint64) uint64 { return a * b & m }, w, nil
	case ir.Hi:
		return func(a, b, _, _ uint64) uint64 { return high(a, b, w, signed) }, w, nil
	case ir.Wide:
		if w == 64 {
			break
		}
		if signed {
			return func(a, b, _, _ uint64) uint64 { return uint64(sext(a, w)*sext(b, w)) & mask(2*w) }, 2 * w, nil
		}
		return func(a, b, _, _ uint64) uint64 { return (a & m) * (b & m) }, 2 * w, nil
	}
	return nil, 0, errForm
}

func mulInt(in *ir.Instr, t ir.Type) (Func, error) {
	f, _, err := product(in.First(ir.Lo, ir.Hi, ir.Wide), uint(t.Bits()), t.IsSigned())
	return f, err
}

func madInt(in *ir.Instr, t ir.Type) (Func, error) {
	f, w, err := product(in.First(ir.Lo, ir.Hi, ir.Wide), uint(t.Bits()), t.IsSigned())
	if err != nil {
		return nil, err
	}
	if in.Has(ir.Sat) {
		return func(a, b, c, _ uint64) uint64 { return clamp32(int64(int32(f(a, b, 0, 0))) + int64(int32(c))) }, nil
	}
	m := mask(w)
	if in.Has(ir.Lo) {
		return func(a, b, c, _ uint64) uint64 { return (a*b + c) & m }, nil
	}
	return func(a, b, c, _ uint64) uint64 { return (f(a, b, 0, 0) + c) & m }, nil
}

// ifHi is n with .hi and 0 with .lo.
func ifHi(in *ir.Instr, n uint) (uint, error) {
	switch in.First(ir.Lo, ir.Hi) {
	case ir.Lo:
		return 0, nil
	case ir.Hi:
		return n, nil
	}
	return 0, errForm
}

// mul24 multiplies the low 24 bits; .hi are bits 47 to 16 of the product.
func mul24(in *ir.Instr, t ir.Type) (Func, error) {
	shift, err := ifHi(in, 16)
	if err != nil {
		return nil, err
	}
	f := func(a, b uint64) uint64 { return uint64(uint32((a & 0xffffff) * (b & 0xffffff) >> shift)) }
	if t.IsSigned() {
		f = func(a, b uint64) uint64 { return uint64(uint32(sext(a, 24) * sext(b, 24) >> shift)) }
	}
	switch {
	case in.Op == "mul24":
		return func(a, b, _, _ uint64) uint64 { return f(a, b) }, nil
	case in.Has(ir.Sat):
		return func(a, b, c, _ uint64) uint64 { return clamp32(int64(int32(f(a, b))) + int64(int32(c))) }, nil
	}
	return func(a, b, c, _ uint64) uint64 { return uint64(uint32(f(a, b) + c)) }, nil
}

func sad(w uint, signed bool) Func {
	m, less := mask(w), order(w, signed)
	return func(a, b, c, _ uint64) uint64 {
		if less(a, b) {
			a, b = b, a
		}
		return (c + a - b) & m
	}
}

func divInt(w uint, signed bool) Func {
	m := mask(w)
	return func(a, b, _, _ uint64) uint64 {
		switch {
		case b&m == 0:
			return m
		case signed:
			return uint64(sext(a, w)/sext(b, w)) & m // Go defines the most negative by −1, as itself
		}
		return (a & m) / (b & m)
	}
}

func remInt(w uint, signed bool) Func {
	m := mask(w)
	return func(a, b, _, _ uint64) uint64 {
		switch {
		case b&m == 0:
			return m
		case signed:
			return uint64(sext(a, w)%sext(b, w)) & m
		}
		return (a & m) % (b & m)
	}
}

func absInt(w uint, _ bool) Func {
	m := mask(w)
	return func(a, _, _, _ uint64) uint64 {
		if sext(a, w) < 0 {
			a = -a
		}
		return a & m
	}
}

func negInt(w uint, _ bool) Func {
	m := mask(w)
	return func(a, _, _, _ uint64) uint64 { return -a & m }
}

// order tells which of two w-bit numbers is less.
func order(w uint, signed bool) func(a, b uint64) bool {
	if signed {
		return func(a, b uint64) bool { return sext(a, w) < sext(b, w) }
	}
	m := mask(w)
	return func(a, b uint64) bool { return a&m < b&m }
}

func minInt(w uint, signed bool) Func {
	m, less := mask(w), order(w, signed)
	return func(a, b, _, _ uint64) uint64 {
		if less(b, a) {
			a = b
		}
		return a & m
	}
}

func maxInt(w uint, signed bool) Func {
	m, less := mask(w), order(w, signed)
	return func(a, b, _, _ uint64) uint64 {
		if less(a, b) {
			a = b
		}
		return a & m
	}
}

// field reads the w-bit field i of v as the type's sign says.
func field(v uint64, i, w uint, signed bool) int64 {
	v >>= i * w
	if signed {
		return sext(v, w)
	}
	return int64(v & mask(w))
}

func dotTypes(in *ir.Instr) (sa, sb bool, err error) {
	a, b := in.Type(0), in.Type(1)
	if b != ir.U32 && b != ir.S32 {
		return false, false, errForm
	}
	return a.IsSigned(), b.IsSigned(), nil
}

func dp4a(in *ir.Instr, _ ir.Type) (Func, error) {
	sa, sb, err := dotTypes(in)
	return func(a, b, c, _ uint64) uint64 {
		sum := int64(c)
		for i := range uint(4) {
			sum += field(a, i, 8, sa) * field(b, i, 8, sb)
		}
		return uint64(uint32(sum))
	}, err
}

// dp2a takes the two 16-bit parts of a and two of the four bytes of b.
func dp2a(in *ir.Instr, _ ir.Type) (Func, error) {
	from, err := ifHi(in, 2)
	if err != nil {
		return nil, err
	}
	sa, sb, err := dotTypes(in)
	return func(a, b, c, _ uint64) uint64 {
		sum := int64(c)
		for i := range uint(2) {
			sum += field(a, i, 16, sa) * field(b, i+from, 8, sb)
		}
		return uint64(uint32(sum))
	}, err
}
