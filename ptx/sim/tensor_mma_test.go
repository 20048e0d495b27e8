package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// fragments are the registers of an operand, register by register and lane by lane.
type fragments struct {
	regs, width int // width of a register in bytes
	at          func(lane, e int) int
	per         int
}

// pack puts a matrix of packed elements into registers.
func (f *fragments) pack(src []byte, t ir.Type) []byte {
	out := make([]byte, f.regs*32*f.width)
	for lane := range 32 {
		for e := range f.regs * f.per {
			i := f.at(lane, e)
			var b uint64
			if n := t.Bits(); n < 8 {
				b = uint64(src[i*n/8]) >> (i * n % 8) & (1<<n - 1)
			} else {
				for j := range n / 8 {
					b |= uint64(src[i*n/8+j]) << (8 * j)
				}
			}
			reg := (e/f.per*32 + lane) * f.width
			put(out[reg:reg+f.width], t, e%f.per, b)
		}
	}
	return out
}

// unpack is the other way round.
func (f *fragments) unpack(regs []byte, t ir.Type, n int) []byte {
	out := make([]byte, n*t.Bits()/8)
	for lane := range 32 {
		for e := range f.regs * f.per {
			size := t.Bits() / 8
			copy(out[f.at(lane, e)*size:][:size], regs[(e/f.per*32+lane)*f.width+e%f.per*size:])
		}
	}
	return out
}

// mmaFragments are those of the PTX ISA: a by rows, b by columns, c by rows.
func mmaFragments(m, k int, ta, tc ir.Type) (a, b, c *fragments) {
	make := func(t ir.Type, count int, at func(group, thread, reg, e int) int) *fragments {
		width := max(4, t.Bits()/8)
		per := width * 8 / t.Bits()
		return &fragments{count / 32 / per, width, func(lane, e int) int { return at(lane>>2, lane&3, e/per, e%per) }, per}
	}
	per := max(1, 32/ta.Bits())
	a = make(ta, m*k, func(group, thread, reg, e int) int {
		row, col := group, thread*per+e+4*per*reg
		if m == 16 {
			row, col = group+8*(reg&1), thread*per+e+4*per*(reg>>1)
		}
		return row*k + col
	})
	b = make(ta, 8*k, func(group, thread, reg, e int) int { return group*k + thread*per + e + 4*per*reg })
	c = make(tc, m*8, func(group, thread, reg, e int) int {
		i := reg
		if tc == ir.F16 {
			i = reg*2 + e
		}
		return (group+8*(i>>1))*8 + thread*2 + i&1
	})
	return a, b, c
}

// mmaKernel loads the fragments, executes one instruction and stores the result.
func mmaKernel(op string, a, b, c, d *fragments) string {
	var s strings.Builder
	regType := func(f *fragments, pos string) (string, string) {
		t := "b32"
		switch {
		case f.width == 8:
			return "%fd" + pos, "f64"
		case strings.Contains(op, ".f32") && pos != "a" && pos != "b" && f.per == 1:
			t = "f32"
		}
		return "%r" + pos, t
	}
	s.WriteString(".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {\n.reg .b32 %t;\n" +
		".reg .b64 %p, %q;\nmov.u32 %t, %tid.x;\n")
	var names []string
	for _, x := range []struct {
		pos string
		f   *fragments
	}{{"d", d}, {"a", a}, {"b", b}, {"c", c}} {
		name, t := regType(x.f, x.pos)
		fmt.Fprintf(&s, ".reg .%s %s<%d>;\n", t, name, x.f.regs)
		names = append(names, list(name, 0, x.f.regs))
		if x.pos == "d" {
			continue
		}
		fmt.Fprintf(&s, "ld.param.u64 %%p, [%s];\nmad.wide.u32 %%q, %%t, %d, %%p;\n", x.pos, x.f.width)
		for i := range x.f.regs {
			fmt.Fprintf(&s, "ld.global.%s %s%d, [%%q+%d];\n", t, name, i, i*32*x.f.width)
		}
	}
	fmt.Fprintf(&s, "%s %s;\n", op, strings.Join(names, ", "))
	name, t := regType(d, "d")
	fmt.Fprintf(&s, "ld.param.u64 %%p, [d];\nmad.wide.u32 %%q, %%t, %d, %%p;\n", d.width)
	for i := range d.regs {
		fmt.Fprintf(&s, "st.global.%s [%%q+%d], %s%d;\n", t, i*32*d.width, name, i)
	}
	s.WriteString("ret;\n}\n")
	return s.String()
}

// transpose turns k×n by rows into numbers for gemm out of n columns of k.
func byRows(cols []float64, k, n int) []float64 {
	out := make([]float64, len(cols))
	for i := range k {
		for j := range n {
			out[i*n+j] = cols[j*k+i]
		}
	}
	return out
}

func TestMMA(t *testing.T) {
	rng := ptxtest.Random(t)
	type form struct {
		m, k           int
		ta, tb, tc, td ir.Type
		mods           string
	}
	var forms []form
	add := func(m int, ks []int, tc []ir.Type, mods string, types ...ir.Type) {
		for _, k := range ks {
			for _, c := range tc {
				for _, x := range types {
					forms = append(forms, form{m, k, x, x, c, c, mods})
				}
			}
		}
	}
	half, single, integer := []ir.Type{ir.F16, ir.F32}, []ir.Type{ir.F32}, []ir.Type{ir.S32}
	add(16, []int{8, 16}, half, "", ir.F16)
	add(16, []int{8, 16}, single, "", ir.BF16)
	add(16, []int{4, 8}, single, "", ir.TF32)
	add(16, []int{32}, single, "", ir.E4M3, ir.E5M2)
	add(16, []int{16, 32}, integer, "", ir.S8, ir.U8)
	add(16, []int{16, 32}, integer, ".satfinite", ir.S8)
	add(8, []int{16}, integer, "", ir.S8, ir.U8)
	add(16, []int{32, 64}, integer, "", ir.S4, ir.U4)
	add(8, []int{32}, integer, ".satfinite", ir.S4)
	add(8, []int{4}, []ir.Type{ir.F64}, "", ir.F64)
	add(16, []int{4, 8, 16}, []ir.Type{ir.F64}, "", ir.F64)
	forms = append(forms, form{16, 32, ir.S8, ir.U8, ir.S32, ir.S32, ""}, form{16, 32, ir.E4M3, ir.E5M2, ir.F32, ir.F32, ""})
	for _, f := range forms {
		op := fmt.Sprintf("mma.sync.aligned.m%dn8k%d.row.col%s.%v.%v.%v.%v", f.m, f.k, f.mods, f.td, f.ta, f.tb, f.tc)
		fa, fb, fc := mmaFragments(f.m, f.k, f.ta, f.tc)
		_, _, fd := mmaFragments(f.m, f.k, f.ta, f.td)
		a, va := matrix(rng, f.ta, f.m*f.k)
		b, vb := matrix(rng, f.tb, 8*f.k)
		c, vc := matrix(rng, f.tc, f.m*8)
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, mmaKernel(op, fa, fb, fc, fd))
		r.bytes(fa.pack(a, f.ta)).bytes(fb.pack(b, f.tb)).bytes(fc.pack(c, f.tc)).out(fd.regs * 32 * fd.width)
		require.NoError(t, r.launch(threads(32)), op)
		want, size := gemm(f.m, 8, f.k, va, byRows(vb, f.k, 8), vc)
		if f.td == ir.S32 {
			for i, v := range want {
				if f.mods != "" {
					want[i] = min(max(v, math.MinInt32), math.MaxInt32)
				} else {
					want[i] = float64(int32(int64(v)))
				}
			}
		}
		near(t, fd.unpack(r.read(3), f.td, f.m*8), f.td, want, size, op)
	}
}

// Saturation and wrapping at the ends of s32, infinities, NaN, and rounding to f16 once.
func TestMMASpecialValues(t *testing.T) {
	rng := ptxtest.Random(t)
	fa, fb, fc := mmaFragments(16, 16, ir.F16, ir.F32)
	run := func(op string, fc *fragments, a, b, c []byte) []byte {
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, mmaKernel(op, fa, fb, fc, fc))
		r.bytes(a).bytes(b).bytes(c).out(fc.regs * 32 * fc.width)
		require.NoError(t, r.launch(threads(32)))
		return r.read(3)
	}
	fill := func(n int, t ir.Type, v uint64) []byte {
		p := make([]byte, n*t.Bits()/8)
		for i := range n {
			put(p, t, i, v)
		}
		return p
	}
	word := func(p []byte, i int) uint32 { return math.Float32bits(float32(number(p, ir.F32, i))) }
	f32 := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	op := "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
	const one, inf, tiny = 0x3c00, 0x7c00, 0x0001 // tiny is 2^-24
	i := rng.IntN(16 * 8)
	got := run(op, fc, fill(256, ir.F16, inf), fill(128, ir.F16, 0), fill(128, ir.F32, f32(1)))
	require.Equal(t, uint32(0x7fffffff), word(got, i), "inf times 0 is the canonical NaN")
	got = run(op, fc, fill(256, ir.F16, inf), fill(128, ir.F16, one), fill(128, ir.F32, f32(1)))
	require.Equal(t, math.Inf(1), number(got, ir.F32, i))
	got = run(op, fc, fill(256, ir.F16, tiny), fill(128, ir.F16, tiny), fill(128, ir.F32, 0))
	require.Equal(t, 0x1p-44, number(got, ir.F32, i), "denormals count")
	got = run(op, fc, fill(256, ir.F16, 0x8000), fill(128, ir.F16, 0), fill(128, ir.F32, f32(float32(math.Copysign(0, -1)))))
	require.Equal(t, uint32(0x80000000), word(got, i), "-0 added to -0")
	_, _, fh := mmaFragments(16, 16, ir.F16, ir.F16)
	got = run("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", fh, fill(256, ir.F16, 0x5bff), fill(128, ir.F16, 0x5bff),
		fill(128, ir.F16, 0))
	require.Equal(t, math.Inf(1), number(got, ir.F16, i), "too large for f16")

	fa, fb, fc = mmaFragments(16, 32, ir.S8, ir.S32)
	for _, c := range []struct {
		op   string
		want float64
	}{{"", -(1 << 31) + 127*127*32 - 1}, {".satfinite", 1<<31 - 1}} {
		got = run("mma.sync.aligned.m16n8k32.row.col"+c.op+".s32.s8.s8.s32", fc, fill(512, ir.S8, 127), fill(256, ir.S8, 127),
			fill(128, ir.S32, 1<<31-1))
		require.Equal(t, c.want, number(got, ir.S32, i), c.op)
	}
	// single bits
	a, b := make([]byte, 16*256/8), make([]byte, 8*256/8)
	for i := range a {
		a[i] = byte(rng.Uint32())
	}
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for _, bit := range []string{"and", "xor"} {
		fa, fb, fc = mmaFragments(16, 256, ir.B1, ir.S32)
		got := fc.unpack(run("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32."+bit+".popc", fc, fa.pack(a, ir.B1), fb.pack(b,
			ir.B1),
			fill(128, ir.S32, 7)), ir.S32, 128)
		for row := range 16 {
			for col := range 8 {
				n := 7
				for k := range 256 {
					x, y := a[(row*256+k)/8]>>(k%8)&1, b[(col*256+k)/8]>>(k%8)&1
					if bit == "and" && x&y == 1 || bit == "xor" && x != y {
						n++
					}
				}
				require.Equal(t, float64(n), number(got, ir.S32, row*8+col))
			}
		}
	}
}

// Volta's four products, each of eight lanes, with A and B by rows and by columns.
func TestMMAVolta(t *testing.T) {
	rng := ptxtest.Random(t)
	const lanes = 32
	for _, c := range []struct {
		aByCol, bByCol bool
		td, tc         ir.Type
	}{{false, true, ir.F32, ir.F32}, {true, true, ir.F32, ir.F32}, {false, false, ir.F32, ir.F16}, {true, false, ir.F16, ir.F16}} {
		order := map[bool]string{false: "row", true: "col"}
		op := fmt.Sprintf("mma.sync.aligned.m8n8k4.%s.%s.%v.f16.f16.%v", order[c.aByCol], order[c.bByCol], c.td, c.tc)
		// The figures of the PTX ISA, with quad for the product and high for lanes from 16 on.
		of := func(regs, per int, at func(lane, high, i int) int, size int) *fragments {
			return &fragments{regs, 4, func(lane, i int) int { return lane%16/4*size + at(lane%4, lane/16, i) }, per}
		}
		fa := of(2, 2, func(lane, high, i int) int {
			if c.aByCol {
				return (i%4+4*high)*4 + lane
			}
			return (lane+4*high)*4 + i
		}, 32)
		fb := of(2, 2, func(lane, high, i int) int { // columns of four
			if c.bByCol {
				return (lane+4*high)*4 + i
			}
			return (i+4*high)*4 + lane
		}, 32)
		result := func(t ir.Type) *fragments {
			if t == ir.F16 {
				return of(4, 2, func(lane, high, i int) int { return (lane+4*high)*8 + i }, 64)
			}
			return of(8, 1, func(lane, high, i int) int {
				return ((lane&1)+(i&2)+4*high)*8 + (i & 4) + (lane & 2) + (i & 1)
			}, 64)
		}
		fc, fd := result(c.tc), result(c.td)
		a, va := matrix(rng, ir.F16, 4*32)
		b, vb := matrix(rng, ir.F16, 4*32)
		sums, vc := matrix(rng, c.tc, 4*64)
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, mmaKernel(op, fa, fb, fc, fd))
		r.bytes(fa.pack(a, ir.F16)).bytes(fb.pack(b, ir.F16)).bytes(fc.pack(sums, c.tc)).out(fd.regs * lanes * 4)
		require.NoError(t, r.launch(threads(lanes)), op)
		got := fd.unpack(r.read(3), c.td, 4*64)
		for i := range 4 {
			want, size := gemm(8, 8, 4, va[32*i:][:32], byRows(vb[32*i:][:32], 4, 8), vc[64*i:][:64])
			n := 64 * c.td.Bits() / 8
			near(t, got[n*i:][:n], c.td, want, size, op)
		}
	}
	// A lane without a value costs its own product.
	r := newRig(t, sim.Config{Checks: sim.AllChecks}, `.visible .entry k(.param .u64 out) {
	.reg .pred %p<2>; .reg .b32 %t, %r<2>; .reg .b64 %rd<2>; .reg .f32 %f<8>;
	mov.u32 %t, %tid.x; setp.ne.u32 %p1, %t, 21; mov.f32 %f0, 0f3f800000;
	@%p1 mov.b32 %r0, 0x3c003c00; mov.b32 %r1, 0x3c003c00;
	mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, {%r1, %r0}, {%r1, %r1},
		{%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0};
	ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %t, 4, %rd0; st.global.f32 [%rd0], %f7; ret;
}`)
	r.out(4 * lanes)
	require.NoError(t, r.launch(threads(lanes)))
	for lane := range lanes {
		var word [4]byte
		err := r.gpu.Read(word[:], r.bufs[0]+uint64(4*lane))
		if lane%16/4 == 1 {
			faults(t, err, sim.Uninitialized)
		} else {
			require.NoError(t, err)
			require.Equal(t, float64(5), number(word[:], ir.F32, 0))
		}
	}
}

func TestMMAOfPartOfAWarp(t *testing.T) {
	fa, fb, fc := mmaFragments(16, 16, ir.F16, ir.F32)
	r := newRig(t, sim.Config{}, mmaKernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", fa, fb, fc, fc))
	r.out(4096).out(4096).out(4096).out(4096)
	faults(t, r.launch(threads(31)), sim.WarpSync)
}

// BenchmarkMMA is a warp that executes m16n8k16 of f16, 2048 multiply-adds each.
func BenchmarkMMA(b *testing.B) {
	for _, checks := range []sim.Checks{0, sim.AllChecks} {
		b.Run(fmt.Sprintf("checks=%d", checks), func(b *testing.B) {
			code := prelude(0, 0) + "mov.u32 %r0, 0;\nmov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\n" +
				"mov.f32 %f3, %f0;\nLOOP:\n" +
				"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, " +
				"{%f0, %f1, %f2, %f3};\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p0, %r0, 1000;\n@%p0 bra LOOP;\nret;\n}\n"
			r := newRig(b, sim.Config{Checks: checks}, code)
			for b.Loop() {
				require.NoError(b, r.launch(threads(32)))
			}
			b.ReportMetric(float64(b.N)*1000*2048/b.Elapsed().Seconds()/1e6, "M-madd/s")
		})
	}
}
