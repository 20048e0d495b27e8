package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/eval"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// corners are bit patterns at which functions of 32 and 64 bits change their ways.
var corners = []uint64{0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000,
	0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x00800000, 0x807fffff, 0x7f7fffff, 0x34000000, 0x4b800000, 0x33800000,
	1 << 32, 1 << 63, math.MaxUint64, 0x3ff0000000000000}

// TestFastPaths compares the loops of fast.go with package eval, for full warps and for parts.
func TestFastPaths(t *testing.T) {
	if testing.Short() { // for the race detector
		t.Skip("starts no goroutines")
	}
	rng := ptxtest.Random(t)
	var forms []string
	add := func(pattern string, types ...string) {
		for _, typ := range types {
			forms = append(forms, fmt.Sprintf(pattern, typ))
		}
	}
	for _, op := range []string{"add", "sub"} {
		add(op+".%s", "u32", "s32", "u64", "s64", "f32", "rn.f32", "sat.f32", "rn.sat.f32")
	}
	for _, op := range []string{"min", "max"} {
		add(op+".%s", "u32", "s32", "u64", "s64", "f32")
	}
	for _, op := range []string{"abs", "neg"} {
		add(op+".%s", "f32")
	}
	add("ex2.approx.%s", "f32", "ftz.f32")
	add("rcp.approx.%s", "f32", "ftz.f32")
	for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
		add("cvt."+mode+".%s", "f32.f32", "ftz.f32.f32", "s32.f32", "u32.f32")
	}
	add("cvt.%s", "rn.f32.s32", "rn.f32.u32", "rn.f16.f32", "f32.f16")
	add("shr.%s", "u32", "s32", "b32", "u64", "s64", "b64")
	for _, op := range []string{"and", "or", "xor"} {
		add(op+".%s", "b32", "b64", "pred")
	}
	add("not.%s", "pred")
	add("div.%s", "u32", "u64", "rn.f32")
	add("rem.%s", "u32", "u64")
	add("mul.%s", "lo.u32", "lo.s32", "lo.u64", "lo.s64", "wide.u32", "wide.s32", "hi.u32", "hi.s32", "f32", "rn.f32", "sat.f32")
	add("mad.%s", "lo.u32", "lo.s32", "lo.u64", "wide.u32", "wide.s32", "hi.u32", "hi.s32")
	add("shl.%s", "b32", "b64")
	add("selp.%s", "b32", "f32", "u32", "s32", "b64", "u64", "s64", "f64")
	add("cvt.%s", "u64.u32", "s64.s32", "u64.s32", "s64.u32")
	add("fma.%s", "rn.f32", "rn.sat.f32")
	add("mad.%s", "rn.f32")
	for _, cmp := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		add("setp."+cmp+".%s", "s32", "u32", "s64", "u64")
	}
	for _, cmp := range []string{"eq", "lt", "le", "gt", "ge", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} {
		add("setp."+cmp+".%s", "f32", "and.f32", "or.f32", "xor.f32")
	}
	add("setp.%s", "eq.and.u32", "lt.or.s32", "ge.xor.u64")
	add("setp.%s", "lo.u32", "ls.u32", "hi.u32", "hs.u64", "eq.b32", "ne.b64")
	for opcode := range vectorOps {
		if !slices.Contains(forms, opcode) {
			t.Errorf("no case for %s", opcode)
		}
	}
	for _, code := range forms {
		op, mods, _ := ir.SplitOpcode(code)
		n := map[ir.Op]int{"mad": 3, "fma": 3, "selp": 3, "cvt": 1, "not": 1, "abs": 1, "neg": 1, "ex2": 1, "rcp": 1}[op]
		if n == 0 {
			n = 2
		}
		if op == "setp" && len(mods) == 3 {
			n = 3
		}
		in := &ir.Instr{Op: op, Mods: mods, Args: make([]ir.Operand, n+1)}
		f, err := eval.Of(in)
		require.NoError(t, err, code)
		c := &compiler{prog: &program{}}
		s := make([]ref, n)
		for i := range s {
			s[i] = c.slot(eval.ArgType(in, i+1))
		}
		d := c.slot(in.Type(0))
		switch {
		case op == "setp":
			d = c.slot(ir.Pred)
		case in.Has(ir.Wide):
			d = c.slot(ir.B64)
		}
		do := fast(in, d, s)
		vop, vector := opOf(in, d, s)
		require.True(t, do != nil || vector, "%s has no fast path", code)
		if do == nil {
			do = pureStep(f, d, [4]ref(append(s, none, none, none, none)))
		}
		if vector && lanes.Vectors() { // as part of a stretch
			do = opsStep([]lanes.Op{vop}, []step{do})
		}
		n32, n64, preds := c.prog.slots[bank32], c.prog.slots[bank64], c.prog.slots[bankP]
		w := &warp{block: &block{grid: &grid{}}, r32: make([][32]uint32, n32), r64: make([][32]uint64, n64), p: make([]uint32, preds)}
		for range 400 {
			m := full
			if rng.IntN(2) == 0 {
				m = rng.Uint32()
			}
			var want [warpSize]uint64
			for l := range warpSize {
				var v [4]uint64
				for i, r := range s {
					x := rng.Uint64()
					if rng.IntN(3) > 0 {
						x = corners[rng.IntN(len(corners))]
					} else if in.Type(0) == ir.F32 && rng.IntN(2) == 0 { // values whose sums matter
						x = uint64(math.Float32bits(float32(rng.IntN(4096)-2048) * float32(math.Ldexp(1, rng.IntN(60)-50))))
					}
					w.set(r, l, x)
					v[i] = w.get(r, l)
				}
				w.set(d, l, 0x5555555555555555)
				want[l] = w.get(d, l)
				if m>>l&1 != 0 {
					w.set(d, l, f(v[0], v[1], v[2], v[3]))
					want[l] = w.get(d, l)
					w.set(d, l, 0x5555555555555555)
				}
			}
			r32, r64 := slices.Clone(w.r32), slices.Clone(w.r64)
			do(w, m)
			for l := range warpSize {
				if want[l] != w.get(d, l) {
					require.Equal(t, want[l], w.get(d, l), "%s lane %d of %#x: %v %v %v", code, l, m, s, r32, r64)
				}
			}
		}
	}
}

// TestExp2 compares the quick 2^x with math's, which rounds as package eval does.
func TestExp2(t *testing.T) {
	if testing.Short() { // for the race detector
		t.Skip("starts no goroutines")
	}
	rng := ptxtest.Random(t)
	quick := 0
	for range 2_000_000 {
		x := rng.Float32()*300 - 155
		if rng.IntN(4) == 0 {
			x = math.Float32frombits(rng.Uint32())
		}
		want := float32(math.Exp2(float64(x)))
		if got := exp2(x); toBits(got) != toBits(want) {
			require.Equal(t, want, got, "of %v", x)
		}
		if x > -126 && x < 128 {
			quick++
		}
	}
	require.Greater(t, quick, 1_000_000)
	for n := -126; n < 128; n++ {
		require.Equal(t, float32(math.Ldexp(1, n)), exp2(float32(n)))
	}
}
