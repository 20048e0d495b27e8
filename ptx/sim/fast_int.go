package sim

import (
	"unsafe"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// unsigned is a register's bits.
type unsigned interface{ uint32 | uint64 }

// lanesOf is a register of the bank for T.
func lanesOf[T unsigned | int32 | int64 | float32](w *warp, i int32) *[warpSize]T {
	if unsafe.Sizeof(*new(T)) == 4 {
		return (*[warpSize]T)(unsafe.Pointer(&w.r32[i]))
	}
	return (*[warpSize]T)(unsafe.Pointer(&w.r64[i]))
}

// loop computes r in all lanes, from those of x, y and z that it has.
type loop[R, T unsigned] func(r *[warpSize]R, x, y *[warpSize]T, z *[warpSize]R)

// step executes the loop for registers.
func (f loop[R, T]) step(d, x, y, z int32) step {
	if f == nil {
		return nil
	}
	return func(w *warp, m uint32) {
		r, x, y, z := lanesOf[R](w, d), lanesOf[T](w, x), lanesOf[T](w, y), lanesOf[R](w, z)
		if m == full {
			f(r, x, y, z)
			return
		}
		t := (*[warpSize]R)(unsafe.Pointer(&w.places[0]))
		f(t, x, y, z)
		for ; m != 0; m &= m - 1 {
			r[first(m)&31] = t[first(m)&31]
		}
	}
}

// fastInt has integers and bits of the width of T.
func fastInt[T unsigned](in *ir.Instr, d int32, s []ref) step {
	lo := in.Has(ir.Lo)
	var f loop[T, T]
	switch op := in.Op; {
	case op == "add":
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				r[l] = x[l] + y[l]
			}
		}
	case op == "sub":
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				r[l] = x[l] - y[l]
			}
		}
	case op == "and":
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				r[l] = x[l] & y[l]
			}
		}
	case op == "or":
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				r[l] = x[l] | y[l]
			}
		}
	case op == "xor":
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				r[l] = x[l] ^ y[l]
			}
		}
	case op == "mul" && lo:
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				r[l] = x[l] * y[l]
			}
		}
	case op == "div" && !in.Type(0).IsSigned(): // by 0: all ones
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				if v := y[l]; v != 0 {
					r[l] = x[l] / v
				} else {
					r[l] = ^v
				}
			}
		}
	case op == "rem" && !in.Type(0).IsSigned():
		f = func(r, x, y, _ *[warpSize]T) {
			for l := range r {
				if v := y[l]; v != 0 {
					r[l] = x[l] % v
				} else {
					r[l] = ^v
				}
			}
		}
	case op == "mad" && lo:
		f = func(r, x, y, z *[warpSize]T) {
			for l := range r {
				r[l] = x[l]*y[l] + z[l]
			}
		}
		return f.step(d, s[0].i, s[1].i, s[2].i)
	}
	return f.step(d, s[0].i, s[min(1, len(s)-1)].i, d)
}

// fastHigh has the upper half of products of 32 bits, and mad with it.
func fastHigh(in *ir.Instr, d int32, s []ref) step {
	var f loop[uint32, uint32]
	switch mad, signed := in.Op == "mad", in.Type(0).IsSigned(); {
	case in.Op != "mul" && !mad:
		return nil
	case signed && mad:
		f = func(r, x, y, z *[warpSize]uint32) {
			for l := range r {
				r[l] = uint32(uint64(int64(int32(x[l]))*int64(int32(y[l])))>>32) + z[l]
			}
		}
	case signed:
		f = func(r, x, y, _ *[warpSize]uint32) {
			for l := range r {
				r[l] = uint32(uint64(int64(int32(x[l]))*int64(int32(y[l]))) >> 32)
			}
		}
	case mad:
		f = func(r, x, y, z *[warpSize]uint32) {
			for l := range r {
				r[l] = uint32(uint64(x[l])*uint64(y[l])>>32) + z[l]
			}
		}
	default:
		f = func(r, x, y, _ *[warpSize]uint32) {
			for l := range r {
				r[l] = uint32(uint64(x[l]) * uint64(y[l]) >> 32)
			}
		}
	}
	if len(s) == 3 {
		return f.step(d, s[0].i, s[1].i, s[2].i)
	}
	return f.step(d, s[0].i, s[1].i, d)
}

// extreme is min or max of integers.
//
//go:noinline
func extreme[T unsigned | int32 | int64](most bool, d, a, b int32) step {
	return func(w *warp, m uint32) {
		x, y, r := lanesOf[T](w, a), lanesOf[T](w, b), lanesOf[T](w, d)
		switch {
		case m != full:
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				v, u := x[l], y[l]
				if (v < u) == most {
					v = u
				}
				r[l] = v
			}
		case most:
			for l := range r {
				r[l] = max(x[l], y[l])
			}
		default:
			for l := range r {
				r[l] = min(x[l], y[l])
			}
		}
	}
}

// fastExtreme has min and max of integers of 32 and 64 bits.
func fastExtreme(in *ir.Instr, d int32, s []ref) step {
	if len(in.Mods) != 1 {
		return nil
	}
	most := in.Op == "max"
	switch in.Type(0) {
	case ir.U32:
		return extreme[uint32](most, d, s[0].i, s[1].i)
	case ir.S32:
		return extreme[int32](most, d, s[0].i, s[1].i)
	case ir.U64:
		return extreme[uint64](most, d, s[0].i, s[1].i)
	case ir.S64:
		return extreme[int64](most, d, s[0].i, s[1].i)
	}
	return nil
}

// shr shifts right, in Go as in PTX: by the width or more it gives 0, of signed integers the sign.
func shr[T unsigned](d, a, b int32) step {
	f := loop[T, uint32](func(r *[warpSize]T, _, y *[warpSize]uint32, z *[warpSize]T) {
		for l := range r {
			r[l] = z[l] >> y[l]
		}
	})
	return f.step(d, b, b, a)
}

func shrSigned(wide bool, d, a, b int32) step {
	if wide {
		return loop[uint64, uint32](func(r *[warpSize]uint64, _, y *[warpSize]uint32, z *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(int64(z[l]) >> y[l])
			}
		}).step(d, b, b, a)
	}
	return loop[uint32, uint32](func(r *[warpSize]uint32, _, y, z *[warpSize]uint32) {
		for l := range r {
			r[l] = uint32(int32(z[l]) >> y[l])
		}
	}).step(d, b, b, a)
}

// shl shifts left; shifts by the width or more give 0, in Go as in PTX.
func shl[T unsigned](d, a, b int32) step {
	f := loop[T, uint32](func(r *[warpSize]T, _, y *[warpSize]uint32, z *[warpSize]T) {
		for l := range r {
			r[l] = z[l] << y[l]
		}
	})
	return f.step(d, b, b, a)
}

//go:noinline
func selp32(d, a, b, p int32) step {
	return func(w *warp, m uint32) {
		x, y, r, c := &w.r32[a], &w.r32[b], &w.r32[d], w.p[p]
		if m == full {
			for l := range r {
				yes := -(c >> l & 1)
				r[l] = x[l]&yes | y[l]&^yes
			}
			return
		}
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
func fastMixed(in *ir.Instr, d ref, s []ref) step {
	t := in.Type(0)
	if in.Op == "cvt" {
		t = in.Type(1)
		if len(in.Mods) != 2 || in.Type(0).Bits() != 64 || in.Type(0).IsFloat() {
			return nil
		}
	}
	if d.bank != bank64 || s[0].bank != bank32 || t.Bits() != 32 || t.IsFloat() || s[0].bits != 32 {
		return nil
	}
	signed := t.IsSigned()
	var f loop[uint64, uint32]
	switch {
	case in.Op == "cvt" && signed:
		f = func(r *[warpSize]uint64, x, _ *[warpSize]uint32, _ *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(int32(x[l]))
			}
		}
	case in.Op == "cvt":
		f = func(r *[warpSize]uint64, x, _ *[warpSize]uint32, _ *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(x[l])
			}
		}
	case !in.Has(ir.Wide) || s[1].bank != bank32:
	case in.Op == "mul" && signed:
		f = func(r *[warpSize]uint64, x, y *[warpSize]uint32, _ *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(int64(int32(x[l])) * int64(int32(y[l])))
			}
		}
	case in.Op == "mul":
		f = func(r *[warpSize]uint64, x, y *[warpSize]uint32, _ *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(x[l]) * uint64(y[l])
			}
		}
	case in.Op != "mad" || s[2].bank != bank64:
	case signed:
		f = func(r *[warpSize]uint64, x, y *[warpSize]uint32, z *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(int64(int32(x[l]))*int64(int32(y[l]))) + z[l]
			}
		}
	default:
		f = func(r *[warpSize]uint64, x, y *[warpSize]uint32, z *[warpSize]uint64) {
			for l := range r {
				r[l] = uint64(x[l])*uint64(y[l]) + z[l]
			}
		}
	}
	switch {
	case in.Op == "cvt":
		return f.step(d.i, s[0].i, s[0].i, d.i)
	case in.Op == "mad" && f != nil:
		return f.step(d.i, s[0].i, s[1].i, s[2].i)
	}
	return f.step(d.i, s[0].i, s[min(1, len(s)-1)].i, d.i)
}

// fastMove copies registers of the same bank, nil if they are of different ones.
//
//go:noinline
func (c *compiler) fastMove(d, s ref) step {
	if d.bank != s.bank || d.i < 0 || s.i < 0 || d.bits < s.bits {
		return nil
	}
	op := lanes.Op{Code: [...]lanes.Code{lanes.OpMove, lanes.OpMove64, lanes.OpOrP}[d.bank], D: d.offset(), X: s.offset(), Y: s.offset()}
	c.vector(op, true)
	switch {
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
