package eval

import (
	"github.com/wavelane/wavelane/ptx/ir"
)

// Video instructions compute with 32-bit operands, or their halves and bytes, each operand signed or not by itself: a type each
// for the result, a and b. Selectors of parts, such as %r1.h10, are not here.
func addVideo(add adder) {
	for _, name := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"} {
		if name != "vavrg" {
			add(name, row{"u32 s32", "sat add min max", 2, 3, video(name, 32)})
		}
		add(name+"2", row{"u32 s32", "sat add", 3, 3, video(name, 16)})
		add(name+"4", row{"u32 s32", "sat add", 3, 3, video(name, 8)})
	}
	add("vset2", row{"u32 s32", "eq ne lt le gt ge add", 3, 3, video("vset", 16)})
	add("vset4", row{"u32 s32", "eq ne lt le gt ge add", 3, 3, video("vset", 8)})
}

// video makes an instruction on parts of w bits.
func video(name string, w uint) func(*ir.Instr, ir.Type) (Func, error) {
	return func(in *ir.Instr, t ir.Type) (Func, error) {
		ta, tb := in.Type(1), in.Type(2)
		if name == "vset" { // whose results are 0 and 1
			t, ta, tb = ir.U32, in.Type(0), in.Type(1)
		}
		compare := in.First("eq", "ne", "lt", "le", "gt", "ge")
		accumulate := in.Has("add") || in.Has("min") || in.Has("max")
		second := in.First("add", "min", "max")
		least, most := int64(0), int64(mask(w))
		if t.IsSigned() {
			least, most = -1<<(w-1), 1<<(w-1)-1
		}
		number := func(v uint64, t ir.Type) int64 {
			if t.IsSigned() {
				return sext(v, w)
			}
			return int64(v & mask(w))
		}
		return func(a, b, c, _ uint64) uint64 {
			out, sum := uint64(0), int64(0)
			for at := uint(0); at < 32; at += w {
				v := videoPart(name, compare, number(a>>at, ta), number(b>>at, tb))
				if in.Has(ir.Sat) {
					v = min(max(v, least), most)
				}
				out |= uint64(v) & mask(w) << at
				sum += number(uint64(v), t)
			}
			switch {
			case !accumulate:
				return out
			case second == "add":
				return uint64(sum+int64(c)) & mask(32)
			}
			x, y := number(out, t), number(c, t) // of vadd and its like alone, whose part is the whole
			if second == "min" {
				return uint64(min(x, y)) & mask(32)
			}
			return uint64(max(x, y)) & mask(32)
		}, nil
	}
}

func videoPart(name string, compare ir.Mod, a, b int64) int64 {
	switch name {
	case "vadd":
		return a + b
	case "vsub":
		return a - b
	case "vabsdiff":
		return max(a-b, b-a)
	case "vmin":
		return min(a, b)
	case "vmax":
		return max(a, b)
	case "vavrg": // rounded up from 0 on
		if a+b >= 0 {
			return (a + b + 1) >> 1
		}
		return (a + b) >> 1
	}
	holds := map[ir.Mod]bool{"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[compare]
	if holds {
		return 1
	}
	return 0
}
