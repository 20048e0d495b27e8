package opt

import (
	"math/big"
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// magic is how to divide an unsigned number of w bits by a constant without dividing (Granlund and Montgomery, "Division by
// Invariant Integers using Multiplication"; Warren, "Hacker's Delight", chapter 10):
//
//	t = high half of (x >> pre) * multiplier
//	quotient = t >> post                            or, where the multiplier has w+1 bits (extra):
//	quotient = (((x - t) >> 1) + t) >> post
type magic struct {
	multiplier uint64
	pre, post  int
	extra      bool
}

// magicOf finds it for divisors from 3 that are no powers of two.
func magicOf(d uint64, w int) magic {
	m, post, extra := multiplier(d, w, w)
	if !extra || d&1 != 0 {
		if extra {
			post--
		}
		return magic{multiplier: m, post: post, extra: extra}
	}
	// An even divisor: after shifting its zeros out, the dividend has fewer bits and the multiplier fits.
	pre := bits.TrailingZeros64(d)
	m, post, _ = multiplier(d>>pre, w, w-pre)
	return magic{multiplier: m, pre: pre, post: post}
}

// multiplier finds the least m and shift with floor(x/d) = floor(x*m / 2^(w+shift)) for all x of n bits. extra tells that m
// has w+1 bits, of which the lowest w are returned.
func multiplier(d uint64, w, n int) (m uint64, shift int, extra bool) {
	shift = bits.Len64(d - 1) // ceil(log2 d)
	one := big.NewInt(1)
	by := new(big.Int).SetUint64(d)
	low := new(big.Int).Lsh(one, uint(w+shift))
	high := new(big.Int).Lsh(one, uint(w+shift-n))
	high.Add(high, low).Quo(high, by)
	low.Quo(low, by)
	for ; shift > 0; shift-- {
		l, h := new(big.Int).Rsh(low, 1), new(big.Int).Rsh(high, 1)
		if l.Cmp(h) >= 0 {
			break
		}
		low, high = l, h
	}
	extra = high.BitLen() > w
	high.SetBit(high, w, 0)
	return high.Uint64(), shift, extra
}

// divide replaces a division by the constant k.
func (u *unit) divide(in *ir.Instr, t ir.Type, k uint64) []ir.Instr {
	d, x := in.Args[0], in.Args[1]
	typ := []ir.Mod{t.Mod()}
	if k == 0 || x.Kind != ir.RegOperand {
		return nil
	}
	if bits.OnesCount64(k) == 1 {
		return []ir.Instr{instr("shr", typ, d, x, ir.Int(int64(bits.TrailingZeros64(k))))}
	}
	g := magicOf(k, t.Bits())
	fresh := func() ir.Operand { return ir.R(u.newReg(t, 0)) }
	var out []ir.Instr
	from := x
	if g.pre > 0 {
		from = fresh()
		out = append(out, instr("shr", typ, from, x, ir.Int(int64(g.pre))))
	}
	high := fresh()
	out = append(out, instr("mul", []ir.Mod{ir.Hi, t.Mod()}, high, from, literal(g.multiplier, t)))
	if g.extra {
		rest, half, sum := fresh(), fresh(), fresh()
		out = append(out, instr("sub", typ, rest, x, high), instr("shr", typ, half, rest, ir.Int(1)),
			instr("add", typ, sum, half, high))
		high = sum
	}
	if g.post == 0 {
		return append(out, instr("mov", []ir.Mod{u.copyType(d.Reg, high.Reg)}, d, high))
	}
	return append(out, instr("shr", typ, d, high, ir.Int(int64(g.post))))
}

// remainder replaces a remainder by the constant k.
func (u *unit) remainder(in *ir.Instr, t ir.Type, k uint64) []ir.Instr {
	d, x := in.Args[0], in.Args[1]
	if k == 0 || x.Kind != ir.RegOperand {
		return nil
	}
	if bits.OnesCount64(k) == 1 {
		return []ir.Instr{instr("and", []ir.Mod{bitsType(t.Bits()).Mod()}, d, x, literal(k-1, t))}
	}
	q, product := ir.R(u.newReg(t, 0)), ir.R(u.newReg(t, 0))
	div := instr("div", []ir.Mod{t.Mod()}, q, x, in.Args[2])
	return append(u.divide(&div, t, k), instr("mul", []ir.Mod{ir.Lo, t.Mod()}, product, q, in.Args[2]),
		instr("sub", []ir.Mod{t.Mod()}, d, x, product))
}
