package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// ordered is where element (row, col) lies with rows or columns ld apart.
func ordered(order string, row, col, ld int) int {
	if order == "row" {
		return row*ld + col
	}
	return col*ld + row
}

func TestWmma(t *testing.T) {
	rng := ptxtest.Random(t)
	regs := func(role byte, t ir.Type, m, n, k int) int {
		size := map[byte]int{'a': m * k, 'b': k * n, 'c': m * n}[role]
		if t == ir.F16 && role != 'c' {
			return 8
		}
		return size * t.Bits() / max(32, t.Bits()) / 32
	}
	shapes := [][3]int{{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}
	for _, f := range []struct {
		ta, tc ir.Type
		shapes [][3]int
	}{
		{ir.F16, ir.F32, shapes}, {ir.F16, ir.F16, shapes[:1]}, {ir.BF16, ir.F32, shapes}, {ir.S8, ir.S32, shapes}, {ir.U8,
			ir.S32, shapes[:1]},
		{ir.TF32, ir.F32, [][3]int{{16, 16, 8}}}, {ir.F64, ir.F64, [][3]int{{8, 8, 4}}},
	} {
		for _, s := range f.shapes {
			for bits := range 8 {
				order := func(i int) string { return []string{"row", "col"}[bits>>i&1] }
				m, n, k := s[0], s[1], s[2]
				pad := rng.IntN(2) * 16
				dims := map[byte][2]int{'a': {m, k}, 'b': {k, n}, 'c': {m, n}}
				lds := map[byte]int{}
				place := func(role byte, packed []byte, t ir.Type, order string) []byte {
					d := dims[role]
					ld := d[1]
					if order == "col" {
						ld = d[0]
					}
					ld += pad
					lds[role] = ld
					size := t.Bits() / 8
					out := make([]byte, (max(d[0], d[1])+1)*ld*size)
					for row := range d[0] {
						for col := range d[1] {
							copy(out[ordered(order, row, col, ld)*size:][:size], packed[(row*d[1]+col)*size:])
						}
					}
					return out
				}
				a, va := matrix(rng, f.ta, m*k)
				b, vb := matrix(rng, f.ta, k*n)
				c, vc := matrix(rng, f.tc, m*n)
				pa, pb, pc := place('a', a, f.ta, order(0)), place('b', b, f.ta, order(1)), place('c', c, f.tc, order(2))
				reg := func(role byte, t ir.Type) string {
					prefix := map[ir.Type]string{ir.F32: "%f", ir.F64: "%fd"}[t]
					if prefix == "" {
						prefix = "%r"
					}
					from := map[byte]int{'a': 0, 'b': 10, 'c': 20, 'd': 30}[role]
					if role == 'd' {
						role = 'c'
					}
					return list(prefix, from, regs(role, t, m, n, k))
				}
				shape := fmt.Sprintf("m%dn%dk%d", m, n, k)
				types := fmt.Sprintf("%v.%v.%v.%v", f.tc, f.ta, f.ta, f.tc)
				if f.ta == ir.F16 {
					types = fmt.Sprintf("%v.%v", f.tc, f.tc)
				}
				code := prelude(0, 4) + ".reg .f64 %fd<40>;\n"
				for i, role := range []byte{'a', 'b', 'c'} {
					t := []ir.Type{f.ta, f.ta, f.tc}[i]
					code += fmt.Sprintf("wmma.load.%c.sync.aligned.%s.%s.global.%v %s, [%%a%d], %d;\n", role, order(i), shape, t, reg(role,
						t), i, lds[role])
				}
				code += fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n", order(0), order(1), shape, types, reg('d', f.tc),
					reg('a', f.ta), reg('b', f.ta), reg('c', f.tc))
				code += fmt.Sprintf("wmma.store.d.sync.aligned.%s.%s.%v [%%a3], %s, %d;\nret;\n}\n", order(2), shape, f.tc, reg('d',
					f.tc), lds['c'])
				r := newRig(t, sim.Config{Checks: sim.AllChecks}, code).bytes(pa).bytes(pb).bytes(pc).bytes(make([]byte, len(pc)))
				require.NoError(t, r.launch(threads(32)))
				want, abs := gemm(m, n, k, va, vb, vc)
				got := r.read(3)
				for row := range m {
					for col := range n {
						if f.tc == ir.S32 {
							want[row*n+col] = float64(int32(int64(want[row*n+col])))
						}
						g := number(got, f.tc, ordered(order(2), row, col, lds['c']))
						require.LessOrEqual(t, math.Abs(g-want[row*n+col]), precision(f.tc)*abs[row*n+col], "%s %s", shape, types)
					}
				}
			}
		}
	}
}

func TestWmmaFaults(t *testing.T) {
	run := func(code string) error {
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, prelude(0, 1)+code+"ret;\n}\n")
		return r.bytes(make([]byte, 4096)).launch(threads(32))
	}
	load := func(addr, ld string) string {
		return "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [" + addr + "], " +
			ld + ";\n"
	}
	require.NoError(t, run(load("%a0+32", "24")))
	faults(t, run(load("%a0+16", "24")), sim.Misaligned)
	faults(t, run(load("%a0", "20")), sim.BadOperand)
	faults(t, run(load("%a0", "8")), sim.BadOperand)
	faults(t, run("cvt.u64.u32 %rd0, %t;\nshl.b64 %rd0, %rd0, 5;\nadd.u64 %rd0, %rd0, %a0;\n"+load("%rd0", "16")), sim.BadOperand)
	faults(t, run(load("%a0+3840", "16")), sim.OutOfBounds)
}
