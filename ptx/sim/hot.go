package sim

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// The instructions in which kernels spend their time have loops of their own, with the arithmetic inside: for all 32 lanes,
// and for any others. What they compute is what package eval computes; a test compares them.
//
// Functions that return loops are not to be inlined: in the copy of a closure that inlining makes, calls are not inlined any
// more.

// fast returns such a loop for an instruction with the destination and sources, nil if it has none.
func fast(in *ir.Instr, d ref, s []ref) step {
	if d.i < 0 {
		return nil
	}
	t := in.Type(0)
	bank := uint8(bank32)
	if t.Bits() == 64 {
		bank = bank64
	}
	for i, r := range s {
		if r.bank != bank && !(in.Op == "selp" && i == 2) && !((in.Op == "shl" || in.Op == "shr") && i == 1) {
			return fastMixed(in, d, s)
		}
	}
	if in.Op == "setp" {
		return fastCompare(in, t, d, s)
	}
	if in.Op == "mul" && in.Has(ir.Wide) || in.Op == "mad" && in.Has(ir.Wide) || in.Op == "cvt" || d.bank != bank ||
		int(d.bits) != t.Bits() {
		return fastMixed(in, d, s)
	}
	if t == ir.F32 && in.Op != "selp" {
		return fastFloat(in, d.i, s)
	}
	if t.IsFloat() && in.Op != "selp" || t.Bits() != 32 && t.Bits() != 64 || in.Has(ir.Sat) {
		return nil
	}
	switch in.Op {
	case "add", "sub", "and", "or", "xor":
		if t.Bits() == 64 {
			return fast64(in.Op, d.i, s[0].i, s[1].i)
		}
		return fast32(in.Op, d.i, s[0].i, s[1].i)
	case "mul":
		if in.Has(ir.Lo) && t.Bits() == 32 {
			return fast32(in.Op, d.i, s[0].i, s[1].i)
		}
	case "mad":
		if in.Has(ir.Lo) && t.Bits() == 32 {
			return mad32(d.i, s[0].i, s[1].i, s[2].i)
		}
	case "shl":
		if s[1].bank == bank32 {
			return shl(t, d.i, s[0].i, s[1].i)
		}
	case "selp":
		if t.Bits() == 32 {
			return selp32(d.i, s[0].i, s[1].i, s[2].i)
		}
	}
	return nil
}

// fastFloat has add, sub, mul and fma of f32 in round to nearest.
func fastFloat(in *ir.Instr, d int32, s []ref) step {
	for _, m := range in.Mods {
		if m != ir.RN && m != "f32" {
			return nil
		}
	}
	switch in.Op {
	case "fma":
		return fma32(d, s[0].i, s[1].i, s[2].i)
	case "mad":
		if in.Has(ir.RN) {
			return fma32(d, s[0].i, s[1].i, s[2].i)
		}
	case "add":
		return float2(d, s[0].i, s[1].i, func(x, y float32) float32 { return x + y })
	case "sub":
		return float2(d, s[0].i, s[1].i, func(x, y float32) float32 { return x - y })
	case "mul":
		return mul32(d, s[0].i, s[1].i)
	}
	return nil
}

const nan32 = 0x7fffffff

func fromBits(v uint32) float32 { return math.Float32frombits(v) }

// toBits is the bits of a result, with PTX's one NaN.
func toBits(v float32) uint32 {
	if v != v {
		return nan32
	}
	return math.Float32bits(v)
}

// fmaBits computes one fma. The product is exact in float64; the sum is rounded there and again to float32, which is right
// unless the first rounding ended halfway between two float32: then the low 28 bits are 0 (whatever the exponent), and if the
// sum was not exact, the slow way decides.
func fmaBits(a, b, c uint32) uint32 {
	p := float64(fromBits(a)) * float64(fromBits(b))
	z := float64(fromBits(c))
	s := p + z
	if math.Float64bits(s)<<36 != 0 || s-p == z && s-z == p {
		return math.Float32bits(float32(s))
	}
	return toBits(eval.FMA32(fromBits(a), fromBits(b), fromBits(c)))
}

// asFloats is a register as float32.
func asFloats(r *[warpSize]uint32) *[warpSize]float32 { return (*[warpSize]float32)(unsafe.Pointer(r)) }

//go:noinline
func fma32(d, a, b, c int32) step {
	return func(w *warp, m uint32) {
		x, y, z, r := &w.r32[a], &w.r32[b], &w.r32[c], &w.r32[d]
		if m == full {
			// Two lanes at a time and as float32: on amd64 a conversion waits for what its destination held before.
			x, y, z, r := asFloats(x), asFloats(y), asFloats(z), asFloats(r)
			for l := 0; l < warpSize; l += 2 {
				p, q := float64(float64(x[l])*float64(y[l])), float64(float64(x[l+1])*float64(y[l+1]))
				c, d := float64(z[l]), float64(z[l+1])
				s, t := p+c, q+d
				if (math.Float64bits(s)<<36 != 0 || s-p == c && s-c == p) && (math.Float64bits(t)<<36 != 0 || t-q == d && t-d == q) {
					r[l], r[l+1] = float32(s), float32(t)
					continue
				}
				for i := l; i < l+2; i++ {
					r[i] = fromBits(fmaBits(math.Float32bits(x[i]), math.Float32bits(y[i]), math.Float32bits(z[i])))
				}
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = fmaBits(x[l], y[l], z[l])
		}
	}
}

//go:noinline
func float2(d, a, b int32, f func(x, y float32) float32) step {
	return func(w *warp, m uint32) {
		x, y, r := &w.r32[a], &w.r32[b], &w.r32[d]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = toBits(f(fromBits(x[l]), fromBits(y[l])))
		}
	}
}

//go:noinline
func mul32(d, a, b int32) step {
	return func(w *warp, m uint32) {
		x, y, r := &w.r32[a], &w.r32[b], &w.r32[d]
		if m == full {
			for l := range r {
				r[l] = toBits(fromBits(x[l]) * fromBits(y[l]))
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = toBits(fromBits(x[l]) * fromBits(y[l]))
		}
	}
}

var ints32 = map[ir.Op]func(x, y uint32) uint32{
	"add": func(x, y uint32) uint32 { return x + y },
	"sub": func(x, y uint32) uint32 { return x - y },
	"mul": func(x, y uint32) uint32 { return x * y },
	"and": func(x, y uint32) uint32 { return x & y },
	"or":  func(x, y uint32) uint32 { return x | y },
	"xor": func(x, y uint32) uint32 { return x ^ y },
}

//go:noinline
func fast32(op ir.Op, d, a, b int32) step {
	if op == "add" {
		return func(w *warp, m uint32) {
			x, y, r := &w.r32[a], &w.r32[b], &w.r32[d]
			if m == full {
				for l := range r {
					r[l] = x[l] + y[l]
				}
				return
			}
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				r[l] = x[l] + y[l]
			}
		}
	}
	f := ints32[op]
	return func(w *warp, m uint32) {
		x, y, r := &w.r32[a], &w.r32[b], &w.r32[d]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = f(x[l], y[l])
		}
	}
}

//go:noinline
func mad32(d, a, b, c int32) step {
	return func(w *warp, m uint32) {
		x, y, z, r := &w.r32[a], &w.r32[b], &w.r32[c], &w.r32[d]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = x[l]*y[l] + z[l]
		}
	}
}

var ints64 = map[ir.Op]func(x, y uint64) uint64{
	"sub": func(x, y uint64) uint64 { return x - y },
	"and": func(x, y uint64) uint64 { return x & y },
	"or":  func(x, y uint64) uint64 { return x | y },
	"xor": func(x, y uint64) uint64 { return x ^ y },
}

//go:noinline
func fast64(op ir.Op, d, a, b int32) step {
	if op == "add" {
		return func(w *warp, m uint32) {
			x, y, r := &w.r64[a], &w.r64[b], &w.r64[d]
			if m == full {
				for l := range r {
					r[l] = x[l] + y[l]
				}
				return
			}
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				r[l] = x[l] + y[l]
			}
		}
	}
	f := ints64[op]
	return func(w *warp, m uint32) {
		x, y, r := &w.r64[a], &w.r64[b], &w.r64[d]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = f(x[l], y[l])
		}
	}
}

// shl shifts left; shifts by the width or more give 0, in Go as in PTX.
//
//go:noinline
func shl(t ir.Type, d, a, b int32) step {
	if t.Bits() == 64 {
		return func(w *warp, m uint32) {
			x, y, r := &w.r64[a], &w.r32[b], &w.r64[d]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				r[l] = x[l] << y[l]
			}
		}
	}
	return func(w *warp, m uint32) {
		x, y, r := &w.r32[a], &w.r32[b], &w.r32[d]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = x[l] << y[l]
		}
	}
}

//go:noinline
func selp32(d, a, b, p int32) step {
	return func(w *warp, m uint32) {
		x, y, r, c := &w.r32[a], &w.r32[b], &w.r32[d], w.p[p]
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			if c>>l&1 != 0 {
				r[l] = x[l]
			} else {
				r[l] = y[l]
			}
		}
	}
}

// fastMixed has what moves between 32 and 64 bits: mul.wide, mad.wide, and cvt of integers of 32 bits to 64.
//
//go:noinline
func fastMixed(in *ir.Instr, d ref, s []ref) step {
	t := in.Type(0)
	signed := t.IsSigned()
	if in.Op == "cvt" {
		t = in.Type(1)
		signed = t.IsSigned()
		if len(in.Mods) != 2 || in.Type(0).Bits() != 64 || in.Type(0).IsFloat() {
			return nil
		}
	}
	if d.bank != bank64 || s[0].bank != bank32 || t.Bits() != 32 || t.IsFloat() || s[0].bits != 32 {
		return nil
	}
	extend := func(v uint32) uint64 { return uint64(v) }
	if signed {
		extend = func(v uint32) uint64 { return uint64(int32(v)) }
	}
	switch {
	case in.Op == "cvt":
		return func(w *warp, m uint32) {
			x, r := &w.r32[s[0].i], &w.r64[d.i]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				r[l] = extend(x[l])
			}
		}
	case !in.Has(ir.Wide) || s[1].bank != bank32:
	case in.Op == "mul":
		return func(w *warp, m uint32) {
			x, y, r := &w.r32[s[0].i], &w.r32[s[1].i], &w.r64[d.i]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				r[l] = extend(x[l]) * extend(y[l])
			}
		}
	case in.Op == "mad" && s[2].bank == bank64:
		return func(w *warp, m uint32) {
			x, y, z, r := &w.r32[s[0].i], &w.r32[s[1].i], &w.r64[s[2].i], &w.r64[d.i]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				r[l] = extend(x[l])*extend(y[l]) + z[l]
			}
		}
	}
	return nil
}

type ordered interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~float32
}

// comparison is the function of lt and its like for one type.
func comparison[T ordered](op ir.Mod) func(a, b T) bool {
	switch op {
	case "eq":
		return func(a, b T) bool { return a == b }
	case "ne":
		return func(a, b T) bool { return a != b }
	case "lt", "lo":
		return func(a, b T) bool { return a < b }
	case "le", "ls":
		return func(a, b T) bool { return a <= b }
	case "gt", "hi":
		return func(a, b T) bool { return a > b }
	case "ge", "hs":
		return func(a, b T) bool { return a >= b }
	}
	return nil
}

// fastCompare has setp without a third predicate. (For floats, ne is left out: it is false for NaN in PTX.)
func fastCompare(in *ir.Instr, t ir.Type, d ref, s []ref) step {
	if len(s) != 2 || len(in.Mods) != 2 || d.bank != bankP {
		return nil
	}
	op := in.Mods[0]
	switch {
	case t == ir.F32 && op != "ne" && op != "lo" && op != "ls" && op != "hi" && op != "hs":
		return compare32(d.i, s, comparison[float32](op), fromBits)
	case t == ir.S32:
		return compare32(d.i, s, comparison[int32](op), func(v uint32) int32 { return int32(v) })
	case t == ir.U32 || t == ir.B32:
		return compare32(d.i, s, comparison[uint32](op), func(v uint32) uint32 { return v })
	case t == ir.S64:
		return compare64(d.i, s, comparison[int64](op), func(v uint64) int64 { return int64(v) })
	case t == ir.U64 || t == ir.B64:
		return compare64(d.i, s, comparison[uint64](op), func(v uint64) uint64 { return v })
	}
	return nil
}

//go:noinline
func compare32[T ordered](d int32, s []ref, f func(a, b T) bool, as func(uint32) T) step {
	if f == nil {
		return nil
	}
	a, b := s[0].i, s[1].i
	return func(w *warp, m uint32) {
		x, y := &w.r32[a], &w.r32[b]
		v := w.p[d] &^ m
		for ; m != 0; m &= m - 1 {
			if l := first(m) & 31; f(as(x[l]), as(y[l])) {
				v |= 1 << l
			}
		}
		w.p[d] = v
	}
}

//go:noinline
func compare64[T ordered](d int32, s []ref, f func(a, b T) bool, as func(uint64) T) step {
	if f == nil {
		return nil
	}
	a, b := s[0].i, s[1].i
	return func(w *warp, m uint32) {
		x, y := &w.r64[a], &w.r64[b]
		v := w.p[d] &^ m
		for ; m != 0; m &= m - 1 {
			if l := first(m) & 31; f(as(x[l]), as(y[l])) {
				v |= 1 << l
			}
		}
		w.p[d] = v
	}
}

// fastMove copies registers of the same bank, nil if they are of different ones.
//
//go:noinline
func fastMove(d, s ref) step {
	switch {
	case d.bank != s.bank || d.i < 0 || s.i < 0 || d.bits < s.bits:
		return nil
	case d.bank == bank32:
		return func(w *warp, m uint32) {
			x, r := &w.r32[s.i], &w.r32[d.i]
			if m == full {
				*r = *x
				return
			}
			for ; m != 0; m &= m - 1 {
				r[first(m)&31] = x[first(m)&31]
			}
		}
	case d.bank == bank64:
		return func(w *warp, m uint32) {
			x, r := &w.r64[s.i], &w.r64[d.i]
			if m == full {
				*r = *x
				return
			}
			for ; m != 0; m &= m - 1 {
				r[first(m)&31] = x[first(m)&31]
			}
		}
	}
	return func(w *warp, m uint32) { w.p[d.i] = w.p[d.i]&^m | w.p[s.i]&m }
}

// window returns what a load or store in global or shared memory most probably falls into: the memory and the address of its
// first byte.
func (v *moved) window(w *warp, m uint32) ([]byte, uint64) {
	if v.op.space == ir.SharedSpace {
		return w.block.shared.data, 0
	}
	s := w.work.cache[v.op.slot]
	if s == nil {
		s = w.global(v.op, v.addr.of(w, first(m)))
	}
	if s == nil || s.readOnly && v.op.write {
		return nil, 0
	}
	return s.data, s.base
}

// plain tells loads and stores of one, two or four words of 32 bits in global or shared memory.
func (v *moved) plain() bool {
	for _, r := range v.elems {
		if r.bank != bank32 || r.bits != 32 || r.i < 0 {
			return false
		}
	}
	return v.size == 4 && !v.addr.frame && (v.op.space == ir.SharedSpace || v.op.space == ir.GlobalSpace)
}

//go:noinline
func (v *moved) fastLoad() step {
	if !v.plain() {
		return nil
	}
	n := uint64(v.op.size)
	return func(w *warp, m uint32) {
		data, base := v.window(w, m)
		var addr [warpSize]uint64
		v.addr.all(w, base, &addr)
		if len(v.elems) == 1 {
			r := &w.r32[v.elems[0].i]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				a := addr[l]
				if a&3 != 0 || a+4 > uint64(len(data)) || a+4 < a {
					v.loadLane(w, l, a+base)
					continue
				}
				r[l] = binary.LittleEndian.Uint32(data[a:])
			}
			return
		}
		for e, ref := range v.elems {
			r := &w.r32[ref.i]
			at := uint64(4 * e)
			for m := m; m != 0; m &= m - 1 {
				l := first(m) & 31
				a := addr[l]
				if a&(n-1) != 0 || a+n > uint64(len(data)) || a+n < a {
					if e == 0 {
						v.loadLane(w, l, a+base)
					}
					continue
				}
				r[l] = binary.LittleEndian.Uint32(data[a+at:])
			}
		}
	}
}

//go:noinline
func (v *moved) fastStore() step {
	if !v.plain() {
		return nil
	}
	n := uint64(v.op.size)
	return func(w *warp, m uint32) {
		data, base := v.window(w, m)
		var addr [warpSize]uint64
		v.addr.all(w, base, &addr)
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			a := addr[l]
			if a&(n-1) != 0 || a+n > uint64(len(data)) || a+n < a {
				v.storeLane(w, l, a+base)
				continue
			}
			for e := range v.elems {
				binary.LittleEndian.PutUint32(data[a+uint64(4*e):], w.r32[v.elems[e].i][l])
			}
		}
	}
}
