package eval

import (
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// errForm is for opcodes that PTX does not have.
var errForm = compute.ErrArgument

const (
	words  = "b32 b64"
	logics = "pred b16 b32 b64"
)

func addBits(add adder) {
	add("and", row{logics, "", 2, 2, logic(func(a, b uint64) uint64 { return a & b })})
	add("or", row{logics, "", 2, 2, logic(func(a, b uint64) uint64 { return a | b })})
	add("xor", row{logics, "", 2, 2, logic(func(a, b uint64) uint64 { return a ^ b })})
	add("not", row{logics, "", 1, 1, logic(func(a, _ uint64) uint64 { return ^a })})
	add("cnot", row{"b16 b32 b64", "", 1, 1, same(func(w uint, _ bool) Func {
		return func(a, _, _, _ uint64) uint64 { return truth(a&mask(w) == 0) }
	})})
	add("shl", row{"b16 b32 b64", "", 2, 2, same(shl)})
	add("shr", row{"b16 b32 b64 u16 u32 u64 s16 s32 s64", "", 2, 2, same(shr)})
	add("shf", row{"b32", "l r clamp wrap", 3, 3, shf})
	add("popc", row{words, "", 1, 1, same(func(w uint, _ bool) Func {
		return func(a, _, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a & mask(w))) }
	})})
	add("clz", row{words, "", 1, 1, same(func(w uint, _ bool) Func {
		return func(a, _, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a&mask(w))) - uint64(64-w) }
	})})
	add("brev", row{words, "", 1, 1, same(func(w uint, _ bool) Func {
		return func(a, _, _, _ uint64) uint64 { return bits.Reverse64(a) >> (64 - w) }
	})})
	add("bfind", row{"u32 u64 s32 s64", "shiftamt", 1, 1, bfind})
	add("fns", row{"b32", "", 3, 3, func(*ir.Instr, ir.Type) (Func, error) { return fns, nil }})
	add("bfe", row{"u32 u64 s32 s64", "", 3, 3, same(bfe)})
	add("bfi", row{words, "", 4, 4, same(bfi)})
	add("bmsk", row{"b32", "clamp wrap", 2, 2, bmsk})
	add("szext", row{"u32 s32", "clamp wrap", 2, 2, szext})
	add("lop3", row{"b32", "", 4, 4, lop3}, row{"b32", "and or", 5, 5, lop3})
	add("prmt", row{"b32", "f4e b4e rc8 ecl ecr rc16", 3, 3, prmt})
}

func logic(f func(a, b uint64) uint64) func(*ir.Instr, ir.Type) (Func, error) {
	return same(func(w uint, _ bool) Func {
		m := mask(w)
		return func(a, b, _, _ uint64) uint64 { return f(a, b) & m }
	})
}

// Shift amounts are 32 bits wide; beyond the width of the value they count as the width, which Go's shifts do too.
func shl(w uint, _ bool) Func {
	m := mask(w)
	return func(a, b, _, _ uint64) uint64 { return a << uint32(b) & m }
}

func shr(w uint, signed bool) Func {
	m := mask(w)
	if signed {
		return func(a, b, _, _ uint64) uint64 { return uint64(sext(a, w)>>uint32(b)) & m }
	}
	return func(a, b, _, _ uint64) uint64 { return a & m >> uint32(b) }
}

func limit(in *ir.Instr) (func(n uint64) uint64, error) {
	switch in.First("clamp", "wrap") {
	case "clamp":
		return func(n uint64) uint64 { return min(n&0xffffffff, 32) }, nil
	case "wrap":
		return func(n uint64) uint64 { return n & 31 }, nil
	}
	return nil, errForm
}

func shf(in *ir.Instr, _ ir.Type) (Func, error) {
	amount, err := limit(in)
	if err != nil {
		return nil, err
	}
	switch in.First("l", "r") {
	case "l":
		return func(a, b, c, _ uint64) uint64 { return (b<<32 | a&0xffffffff) << amount(c) >> 32 }, nil
	case "r":
		return func(a, b, c, _ uint64) uint64 { return (b<<32 | a&0xffffffff) >> amount(c) & 0xffffffff }, nil
	}
	return nil, errForm
}

// bfind finds the highest bit that is not the sign.
func bfind(in *ir.Instr, t ir.Type) (Func, error) {
	w, neg, amount := uint(t.Bits()), t.IsSigned(), in.Has("shiftamt")
	return func(a, _, _, _ uint64) uint64 {
		if neg && sext(a, w) < 0 {
			a = ^a
		}
		a &= mask(w)
		switch {
		case a == 0:
			return 0xffffffff
		case amount:
			return uint64(bits.LeadingZeros64(a)) - uint64(64-w)
		}
		return uint64(63 - bits.LeadingZeros64(a))
	}, nil
}

// fns finds the n-th set bit of a from bit b on: c is n, upwards if positive, downwards if negative, b itself if zero.
func fns(a, b, c, _ uint64) uint64 {
	n, pos := int64(int32(c)), int64(uint32(b))
	step := int64(1)
	switch {
	case n == 0:
		if pos < 32 && a>>pos&1 == 1 {
			return uint64(pos)
		}
		return 0xffffffff
	case n < 0:
		n, step = -n, -1
	}
	for ; pos >= 0 && pos < 32; pos += step {
		if a>>pos&1 == 1 {
			if n--; n == 0 {
				return uint64(pos)
			}
		}
	}
	return 0xffffffff
}

// bfe extracts c bits from bit b on. A signed field repeats its highest bit, or that of a if it reaches beyond.
func bfe(w uint, signed bool) Func {
	return func(a, b, c, _ uint64) uint64 {
		pos, n := uint(b&0xff), uint(c&0xff)
		if n == 0 {
			return 0
		}
		if signed {
			v := sext(a, w) >> min(pos, w-1)
			if n < w {
				if top := pos + n - 1; top < w {
					v = sext(uint64(v), n)
				}
			}
			return uint64(v) & mask(w)
		}
		return a & mask(w) >> pos & (1<<n - 1)
	}
}

// bfi puts the d low bits of a over b from bit c on.
func bfi(w uint, _ bool) Func {
	return func(a, b, c, d uint64) uint64 {
		field := (uint64(1)<<(d&0xff) - 1) << (c & 0xff) & mask(w)
		return b&mask(w)&^field | a<<(c&0xff)&field
	}
}

// bmsk is a mask of b bits from bit a on.
func bmsk(in *ir.Instr, _ ir.Type) (Func, error) {
	amount, err := limit(in)
	return func(a, b, _, _ uint64) uint64 {
		return (uint64(1)<<amount(b) - 1) << amount(a) & 0xffffffff
	}, err
}

// szext extends the b low bits of a.
func szext(in *ir.Instr, t ir.Type) (Func, error) {
	amount, err := limit(in)
	neg := t.IsSigned()
	return func(a, b, _, _ uint64) uint64 {
		n := uint(amount(b))
		if n == 0 {
			return 0
		}
		return uint64(field(a, 0, n, neg)) & 0xffffffff
	}, err
}

// lop3 is any function of three bits, by its table; with .and and .or also a predicate: the result is not zero, combined with
// another.
func lop3(in *ir.Instr, _ ir.Type) (Func, error) {
	const tablePlace = 4
	if in.Args[tablePlace].Kind != ir.IntOperand || in.Args[tablePlace].Bits > 0xff {
		return nil, errForm
	}
	lut := in.Args[tablePlace].Bits
	f := func(a, b, c, _ uint64) uint64 {
		var r uint64
		for i := range uint(8) {
			if lut>>i&1 == 1 {
				r |= flip(a, i>>2) & flip(b, i>>1) & flip(c, i)
			}
		}
		return r & 0xffffffff
	}
	switch in.First("and", "or") {
	case "and":
		return func(a, b, c, d uint64) uint64 {
			r := f(a, b, c, 0)
			return r | truth(r != 0)&d<<32
		}, nil
	case "or":
		return func(a, b, c, d uint64) uint64 {
			r := f(a, b, c, 0)
			return r | (truth(r != 0)|d&1)<<32
		}, nil
	}
	return f, nil
}

// flip is v where bit 0 of i is set, else its complement.
func flip(v uint64, i uint) uint64 { return v ^ (uint64(i&1) - 1) }

// permutations are the selectors of the modes of prmt, for each value of the control's two low bits, as the default mode writes
// them.
var permutations = map[ir.Mod][4]uint64{
	"f4e":  {0x3210, 0x4321, 0x5432, 0x6543},
	"b4e":  {0x5670, 0x6701, 0x7012, 0x0123},
	"rc8":  {0x0000, 0x1111, 0x2222, 0x3333},
	"ecl":  {0x3210, 0x3211, 0x3222, 0x3333},
	"ecr":  {0x0000, 0x1110, 0x2210, 0x3210},
	"rc16": {0x1010, 0x3232, 0x1010, 0x3232},
}

func prmt(in *ir.Instr, _ ir.Type) (Func, error) {
	if p, ok := permutations[in.First("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")]; ok {
		return func(a, b, c, _ uint64) uint64 { return permute(a, b, p[c&3]) }, nil
	}
	return func(a, b, c, _ uint64) uint64 { return permute(a, b, c) }, nil
}

// permute picks bytes of b:a; the fourth bit of a selector repeats the byte's sign instead.
func permute(a, b, selectors uint64) uint64 {
	from := b<<32 | a&0xffffffff
	var r uint64
	for i := range 4 {
		sel := selectors >> (4 * i) & 15
		v := from >> (8 * (sel & 7)) & 0xff
		if sel > 7 {
			v = 0xff * (v >> 7)
		}
		r |= v << (8 * i)
	}
	return r
}
