package eval

import (
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Video instructions compute with 32-bit operands, or with halves and bytes of them, each operand signed or not by itself: a type each
// for the result, a and b.
func addVideo(add adder) {
	for _, name := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax"} {
		add(name, row{"u32 s32", "sat add min max", 2, 3, videoScalar(name)})
	}
	add("vshl", row{"u32 s32", "sat clamp wrap add min max", 2, 3, videoScalar("vshl")})
	add("vshr", row{"u32 s32", "sat clamp wrap add min max", 2, 3, videoScalar("vshr")})
	add("vset", row{"u32 s32", "eq ne lt le gt ge add min max", 2, 3, videoScalar("vset")})
	add("vmad", row{"u32 s32", "sat po shr7 shr15", 3, 3, videoMad})
	for _, name := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"} {
		add(name+"2", row{"u32 s32", "sat add", 3, 3, videoParts(name, 2)})
		add(name+"4", row{"u32 s32", "sat add", 3, 3, videoParts(name, 4)})
	}
	add("vset2", row{"u32 s32", "eq ne lt le gt ge add", 3, 3, videoParts("vset", 2)})
	add("vset4", row{"u32 s32", "eq ne lt le gt ge add", 3, 3, videoParts("vset", 4)})
}

// videoTypes are the types of result, a and b.
func videoTypes(in *ir.Instr) (d, a, b ir.Type) {
	if in.Op[:4] == "vset" { // whose results are 0 and 1
		return ir.U32, in.Type(0), in.Type(1)
	}
	return in.Type(0), in.Type(1), in.Type(2)
}

// videoField is w bits of a word, from the at-th on.
type videoField struct{ at, w uint }

// fieldOf is the byte, half or word that a part such as "b2" names.
func fieldOf(part string) videoField {
	if part == "" {
		return videoField{0, 32}
	}
	w := uint(8)
	if part[0] == 'h' {
		w = 16
	}
	return videoField{w * uint(part[1]-'0'), w}
}

// of is the field of a word, as t has it signed or not.
func (f videoField) of(v uint64, t ir.Type) int64 {
	if t.IsSigned() {
		return sext(v>>f.at, f.w)
	}
	return int64(v >> f.at & mask(f.w))
}

// clamp is the nearest number to v that w bits hold.
func clamp(v int64, w uint, signed bool) int64 {
	if signed {
		return min(max(v, -1<<(w-1)), 1<<(w-1)-1)
	}
	return min(max(v, 0), int64(mask(w)))
}

// videoScalar makes an instruction on one part of each operand.
func videoScalar(name string) func(*ir.Instr, ir.Type) (Func, error) {
	return func(in *ir.Instr, _ ir.Type) (Func, error) {
		t, ta, tb := videoTypes(in)
		a, b, into := fieldOf(in.Args[1].Part), fieldOf(in.Args[2].Part), fieldOf(in.Args[0].Part)
		compute := videoOperation(name, in)
		sat, second := in.Has(ir.Sat), in.First("add", "min", "max")
		whole := videoField{0, 32}
		return func(x, y, c, _ uint64) uint64 {
			v := compute(a.of(x, ta), b.of(y, tb))
			if sat {
				v = clamp(v, into.w, t.IsSigned())
			}
			switch second {
			case "add":
				v += int64(c)
			case "min":
				v = min(whole.of(uint64(v), t), whole.of(c, t))
			case "max":
				v = max(whole.of(uint64(v), t), whole.of(c, t))
			}
			if into == whole {
				return uint64(v) & mask(32)
			}
			return c&mask(32)&^(mask(into.w)<<into.at) | uint64(v)&mask(into.w)<<into.at
		}, nil
	}
}

// videoParts makes an instruction on n parts of each operand.
func videoParts(name string, n int) func(*ir.Instr, ir.Type) (Func, error) {
	return func(in *ir.Instr, _ ir.Type) (Func, error) {
		t, ta, tb := videoTypes(in)
		w := uint(32 / n)
		into := make([]bool, n) // the parts of the result that are written
		for i := range into {
			into[i] = in.Args[0].Part == ""
		}
		for _, digit := range in.Args[0].Part[min(1, len(in.Args[0].Part)):] {
			into[digit-'0'] = true
		}
		a, b := selected(in.Args[1].Part, n, 0), selected(in.Args[2].Part, n, n)
		compute := videoOperation(name, in)
		sat, accumulate := in.Has(ir.Sat), in.Has("add")
		return func(x, y, c, _ uint64) uint64 {
			both := y<<32 | x&mask(32)
			out := c & mask(32)
			for i, written := range into {
				if !written {
					continue
				}
				v := compute(a[i].of(both, ta), b[i].of(both, tb))
				if sat {
					v = clamp(v, w, t.IsSigned())
				}
				if accumulate {
					out += uint64(v)
					continue
				}
				at := w * uint(i)
				out = out&^(mask(w)<<at) | uint64(v)&mask(w)<<at
			}
			return out & mask(32)
		}, nil
	}
}

// selected are the n parts of two words, b above a, that a selection such as "h32" names, from the lowest on; without one, those from
// the first on.
func selected(part string, n, first int) []videoField {
	w := uint(32 / n)
	list := make([]videoField, n)
	for i := range list {
		k := first + i
		if part != "" {
			k = int(part[n-i] - '0')
		}
		list[i] = videoField{w * uint(k), w}
	}
	return list
}

// videoOperation is what an instruction does with two numbers, before it saturates.
func videoOperation(name string, in *ir.Instr) func(a, b int64) int64 {
	switch name {
	case "vadd":
		return func(a, b int64) int64 { return a + b }
	case "vsub":
		return func(a, b int64) int64 { return a - b }
	case "vabsdiff":
		return func(a, b int64) int64 { return max(a-b, b-a) }
	case "vmin":
		return func(a, b int64) int64 { return min(a, b) }
	case "vmax":
		return func(a, b int64) int64 { return max(a, b) }
	case "vavrg": // rounded up from 0 on
		return func(a, b int64) int64 {
			if a+b >= 0 {
				return (a + b + 1) >> 1
			}
			return (a + b) >> 1
		}
	case "vshl": // to an intermediate result of 34 bits
		by := videoShift(in)
		return func(a, b int64) int64 { return sext(uint64(a)<<by(b), 34) }
	case "vshr":
		by := videoShift(in)
		return func(a, b int64) int64 { return a >> by(b) }
	}
	compare := map[ir.Mod]func(a, b int64) bool{
		"eq": func(a, b int64) bool { return a == b }, "ne": func(a, b int64) bool { return a != b },
		"lt": func(a, b int64) bool { return a < b }, "le": func(a, b int64) bool { return a <= b },
		"gt": func(a, b int64) bool { return a > b }, "ge": func(a, b int64) bool { return a >= b },
	}[in.First("eq", "ne", "lt", "le", "gt", "ge")]
	return func(a, b int64) int64 { return int64(truth(compare(a, b))) }
}

// videoShift is by how much a shift by b is.
func videoShift(in *ir.Instr) func(b int64) int64 {
	if in.Has("wrap") {
		return func(b int64) int64 { return b & 31 }
	}
	return func(b int64) int64 { return min(b, 32) }
}

// videoMad makes vmad, whose product and sum have all their bits. The result is signed if an operand is, or if one is negated.
func videoMad(in *ir.Instr, _ ir.Type) (Func, error) {
	_, ta, tb := videoTypes(in)
	if ta == ir.NoType || tb == ir.NoType {
		return nil, compute.ErrArgument
	}
	a, b := fieldOf(in.Args[1].Part), fieldOf(in.Args[2].Part)
	minus, less := in.Args[1].Neg != in.Args[2].Neg, in.Args[3].Neg
	signed := ta.IsSigned() || tb.IsSigned() || minus || less
	carry := truth(in.Has("po") || minus || less)
	scale := map[ir.Mod]uint{"": 0, "shr7": 7, "shr15": 15}[in.First("shr7", "shr15")]
	sat := in.Has(ir.Sat)
	return func(x, y, c, _ uint64) uint64 {
		// The product, in two words.
		p, q := a.of(x, ta), b.of(y, tb)
		hi, lo := bits.Mul64(uint64(p), uint64(q))
		hi -= uint64(p>>63)&uint64(q) + uint64(q>>63)&uint64(p)
		if minus {
			hi, lo = ^hi, ^lo
		}
		c &= mask(32)
		if less {
			c ^= mask(32)
		}
		top := uint64(0)
		if signed {
			c = uint64(sext(c, 32))
			top = uint64(int64(c) >> 63)
		}
		var over uint64
		lo, over = bits.Add64(lo, c, carry)
		hi, _ = bits.Add64(hi, top, over)
		if scale > 0 { // to 64 bits
			lo = lo>>scale | hi<<(64-scale)
			hi = 0
			if signed {
				hi = uint64(int64(lo) >> 63)
			}
		}
		if sat {
			switch {
			case signed && int64(hi) < 0 && (^hi != 0 || lo < ^uint64(1<<31-1)):
				lo = 1 << 31
			case signed && int64(hi) >= 0 && (hi != 0 || lo > 1<<31-1):
				lo = 1<<31 - 1
			case !signed && (hi != 0 || lo > mask(32)):
				lo = mask(32)
			}
		}
		return lo & mask(32)
	}, nil
}
