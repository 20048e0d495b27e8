package sim

import "github.com/wavelane/wavelane/ptx/ir"

// fastPredicate has the logic of predicates, which are masks of lanes.
func fastPredicate(op ir.Op, d int32, s []ref) step {
	a, b := s[0].i, s[min(1, len(s)-1)].i
	switch op {
	case "and":
		return func(w *warp, m uint32) { w.p[d] = w.p[d]&^m | w.p[a]&w.p[b]&m }
	case "or":
		return func(w *warp, m uint32) { w.p[d] = w.p[d]&^m | (w.p[a]|w.p[b])&m }
	case "xor":
		return func(w *warp, m uint32) { w.p[d] = w.p[d]&^m | (w.p[a]^w.p[b])&m }
	case "not":
		return func(w *warp, m uint32) { w.p[d] = w.p[d]&^m | ^w.p[a]&m }
	}
	return nil
}

// fastCompare has setp, also with a third predicate. (For floats, ne is left out: it is false for NaN in PTX.)
func fastCompare(in *ir.Instr, t ir.Type, d ref, s []ref) step {
	if len(in.Mods) != len(s) || d.bank != bankP {
		return nil
	}
	if len(s) == 3 {
		with := s[2].i
		p := comparisonOf(in.Mods[0], t, d, s)
		if p == nil {
			return nil
		}
		switch in.Mods[1] {
		case "and":
			return func(w *warp, m uint32) {
				c := w.p[with]
				p(w, m)
				w.p[d.i] &= c | ^m
			}
		case "or":
			return func(w *warp, m uint32) {
				c := w.p[with]
				p(w, m)
				w.p[d.i] |= c & m
			}
		case "xor":
			return func(w *warp, m uint32) {
				c := w.p[with]
				p(w, m)
				w.p[d.i] ^= c & m
			}
		}
		return nil
	}
	return comparisonOf(in.Mods[0], t, d, s)
}

// comparisonOf is a comparison of two registers of a type.
func comparisonOf(op ir.Mod, t ir.Type, d ref, s []ref) step {
	switch {
	case t == ir.F32 && op != "ne" && op != "lo" && op != "ls" && op != "hi" && op != "hs":
		return comparison[float32](op, d.i, s[0].i, s[1].i)
	case t == ir.S32:
		return comparison[int32](op, d.i, s[0].i, s[1].i)
	case t == ir.U32 || t == ir.B32:
		return comparison[uint32](op, d.i, s[0].i, s[1].i)
	case t == ir.S64:
		return comparison[int64](op, d.i, s[0].i, s[1].i)
	case t == ir.U64 || t == ir.B64:
		return comparison[uint64](op, d.i, s[0].i, s[1].i)
	}
	return nil
}

// complements are comparisons by the one that is true where they are false, also of NaN.
var complements = map[ir.Mod]ir.Mod{"ne": "eq", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt", "nan": "num"}

func comparison[T unsigned | int32 | int64 | float32](op ir.Mod, d, a, b int32) step {
	not := uint32(0)
	if c, ok := complements[op]; ok {
		op, not = c, full
	}
	var f func(x, y *[warpSize]T) (v uint32)
	switch op {
	case "num":
		f = func(x, y *[warpSize]T) (v uint32) {
			for l := range x {
				v |= uint32(b2i(x[l] == x[l] && y[l] == y[l])) << l
			}
			return v
		}
	case "eq":
		f = func(x, y *[warpSize]T) (v uint32) {
			for l := 0; l < warpSize; l += 4 {
				v |= uint32(b2i(x[l] == y[l])|b2i(x[l+1] == y[l+1])<<1|b2i(x[l+2] == y[l+2])<<2|b2i(x[l+3] == y[l+3])<<3) << l
			}
			return v
		}
	case "gt", "hi":
		a, b = b, a
		fallthrough
	case "lt", "lo":
		f = func(x, y *[warpSize]T) (v uint32) {
			for l := 0; l < warpSize; l += 4 {
				v |= uint32(b2i(x[l] < y[l])|b2i(x[l+1] < y[l+1])<<1|b2i(x[l+2] < y[l+2])<<2|b2i(x[l+3] < y[l+3])<<3) << l
			}
			return v
		}
	case "ge", "hs":
		a, b = b, a
		fallthrough
	case "le", "ls":
		f = func(x, y *[warpSize]T) (v uint32) {
			for l := 0; l < warpSize; l += 4 {
				v |= uint32(b2i(x[l] <= y[l])|b2i(x[l+1] <= y[l+1])<<1|b2i(x[l+2] <= y[l+2])<<2|b2i(x[l+3] <= y[l+3])<<3) << l
			}
			return v
		}
	default:
		return nil
	}
	return func(w *warp, m uint32) {
		v := f(lanesOf[T](w, a), lanesOf[T](w, b)) ^ not
		w.p[d] = w.p[d]&^m | v&m
	}
}
