package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// miniature is a type of floating-point numbers without infinities, with its number in a descriptor of the kinds f8f6f4 and mxf8f6f4.
type miniature struct {
	exponent, mantissa int
	number             uint32
}

var e4m3, e5m2, e2m3, e3m2, e2m1 = miniature{4, 3, 0}, miniature{5, 2, 1}, miniature{2, 3, 3}, miniature{3, 2, 4}, miniature{2, 1, 5}

func (s miniature) bits() int { return 1 + s.exponent + s.mantissa }

func (s miniature) value(b int) float64 {
	e, m := b>>s.mantissa&(1<<s.exponent-1), math.Ldexp(float64(b&(1<<s.mantissa-1)), -s.mantissa)
	v := math.Ldexp(m+1, e-(1<<(s.exponent-1)-1))
	if e == 0 {
		v = math.Ldexp(m, 2-1<<(s.exponent-1))
	}
	return math.Copysign(v, float64(1-b>>(s.bits()-1)*2))
}

// random is an element with the largest exponent left out, which in some types is that of NaN.
func (s miniature) random(rng *rand.Rand) int {
	return rng.IntN(2)<<(s.bits()-1) | rng.IntN(1<<(s.bits()-1)-1<<s.mantissa)
}

// matrix is a random matrix as shared memory holds it, so many elements in 16 bytes, and its elements.
func (s miniature) matrix(rng *rand.Rand, rows, k, per int) (data []byte, values []float64) {
	data = make([]byte, rows*k/per*16)
	for i := range rows * k {
		b := s.random(rng)
		values = append(values, s.value(b))
		for bit := range s.bits() {
			at := i/per*128 + i%per*s.bits() + bit
			data[at/8] |= byte(b>>bit&1) << (at % 8)
		}
	}
	return data, values
}

// storesScales stores to tensor memory what the parameter p3 points to: 32 columns of 128 lanes, from column 256 on.
var storesScales = "mad.wide.u32 %d0, %t, 128, %a3;\n" + each(32, "ld.global.b32 %r{}, [%d0+{4}];\n") +
	"add.u32 %r32, %quarter, 256; tcgen05.st.sync.aligned.32x32b.x32.b32 [%r32], " + list("%r", 0, 32) + ";\ntcgen05.wait::st.sync.aligned;\n"

// scaledCase is a product of elements with scales.
type scaledCase struct {
	kind       string
	m, n       int // 256 rows are those of a pair of blocks
	a, b       miniature
	per, group int // elements in 16 bytes, and to a scale
	powers     bool
}

// form is the case's product, its inputs for the parameters p0, p1 and p3, and what comes out.
func (c *scaledCase) form(rng *rand.Rand) (f tensorForm, a, b, scales []byte, want, size []float64) {
	m, k, blocks := c.m, 4*c.per, c.m/128
	count := k / 2 / c.group // of a part
	f = tensorForm{kind: c.kind, m: m, n: c.n, pair: blocks == 2, td: ir.F32, a: c.a.number, b: c.b.number, scales: storesScales}
	if c.per == 32 {
		f.a, f.b = 1, 1
	}
	if c.powers {
		f.more = 1 << 23
	}
	first := count % 4 // the byte that has the first scale of the second part
	f.second = first<<29 | first<<4
	a, va := c.a.matrix(rng, m, k, c.per)
	b, vb := c.b.matrix(rng, c.n, k, c.per)
	scales = make([]byte, blocks*128*32*4)
	scale := func(values []float64, rows, column int) {
		for row := range rows {
			for g := range 2 * count {
				b, v := rng.IntN(8)+123, 0.0
				if v = math.Ldexp(1, b-127); !c.powers {
					b = e4m3.random(rng) & 127
					v = e4m3.value(b)
				}
				for i := range c.group {
					values[row*k+g*c.group+i] *= v
				}
				part := g / count
				for quarter := range 4 * blocks {
					at := row
					if column == 0 && rows > 128 { // a block has its own rows only
						if at = row % 128; quarter/4 != row/128 {
							continue
						}
					}
					scales[((quarter*32+at%32)*32+column+16*part+at/32)*4+part*first+g%count] = byte(b)
				}
			}
		}
	}
	scale(va, m, 0)
	scale(vb, c.n, 8)
	want, size = gemm(m, c.n, k, va, byRows(vb, k, c.n), nil)
	return f, a, b, scales, want, size
}

func TestTensorScaled(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, c := range []scaledCase{
		{"mxf8f6f4.block_scale.scale_vec::1X", 128, 40, e4m3, e5m2, 16, 32, true}, {"mxf8f6f4.block_scale.scale_vec::1X", 128, 16, e3m2, e2m1, 16, 32, true},
		{"mxf8f6f4.block_scale.scale_vec::1X", 128, 8, e2m3, e3m2, 16, 32, true}, {"mxf4.block_scale.scale_vec::2X", 128, 72, e2m1, e2m1, 32, 32, true},
		{"mxf4nvf4.block_scale.scale_vec::2X", 128, 24, e2m1, e2m1, 32, 32, true}, {"mxf4nvf4.block_scale.scale_vec::4X", 128, 48, e2m1, e2m1, 32, 16, false},
	} {
		f, a, b, scales, want, size := c.form(rng)
		for _, cfg := range checkedSeeds(1) {
			r := tensorRig(t, cfg, 4, f.kernel())
			r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 64)).out(128 * 4 * f.n).bytes(scales)
			require.NoError(t, r.launch(threads(128)), "%+v", c)
			near(t, r.read(2), ir.F32, want, size, c.kind)
		}
	}
	// Elements of 4 and 6 bits are there without scales, too.
	a, va := e2m3.matrix(rng, 128, 64, 16)
	b, vb := e2m1.matrix(rng, 32, 64, 16)
	f := tensorForm{kind: "f8f6f4", m: 128, n: 32, a: e2m3.number, b: e2m1.number, d: 1}
	r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 3, f.kernel())
	r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 64)).out(128 * 4 * f.n)
	require.NoError(t, r.launch(threads(128)))
	want, size := gemm(128, 32, 64, va, byRows(vb, 64, 32), nil)
	near(t, r.read(2), ir.F32, want, size, f.kind)
}

func TestTensorScaledFaults(t *testing.T) {
	rng := ptxtest.Random(t)
	c := scaledCase{"mxf4nvf4.block_scale.scale_vec::4X", 128, 16, e2m1, e2m1, 32, 16, false}
	run := func(change func(f *tensorForm, scales []byte)) *sim.Fault {
		f, a, b, scales, _, _ := c.form(rng)
		change(&f, scales)
		r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 4, f.kernel())
		r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 64)).out(128 * 4 * f.n).bytes(scales)
		return faults(t, r.launch(threads(128)), sim.BadOperand)
	}
	require.Contains(t, run(func(_ *tensorForm, scales []byte) { scales[64*32*4]++ }).Detail, "the scales of row 0 of A are")
	require.Contains(t, run(func(_ *tensorForm, scales []byte) {
		for quarter := range 4 {
			scales[(quarter*32+5)*32*4+8*4] = 0x81
		}
	}).Detail, "the scale 0x81 of row 5 of B has a sign")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.second = 1 << 4 }).Detail, "the scales of A and B begin in bytes 0 and 1, want a multiple of 4")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.more |= 1 << 15 }).Detail, "elements of 4 or 6 bits that is not along k")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.more |= 1 << 31 }).Detail, "96 elements along k")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.kind = "mxf4.block_scale.scale_vec::2X" }).Detail, "scales of type ue4m3")
	// Scales that nobody has written.
	f, a, b, _, _, _ := c.form(rng)
	f.scales = "\n"
	r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 3, f.kernel())
	r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 64)).out(128 * 4 * f.n)
	require.Contains(t, faults(t, r.launch(threads(128)), sim.Uninitialized).Detail, "a column of scales of A")
}

// TestTensorCopies: each shape of tcgen05.cp copies rows to the lanes that it names.
func TestTensorCopies(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, c := range []struct {
		shape         string
		rows, columns int
		row           func(lane int) int
	}{
		{"128x256b", 128, 8, func(l int) int { return l }}, {"128x128b", 128, 4, func(l int) int { return l }},
		{"32x128b.warpx4", 32, 4, func(l int) int { return l % 32 }}, {"warpx4.32x128b", 32, 4, func(l int) int { return l % 32 }},
		{"64x128b.warpx2::02_13", 64, 4, func(l int) int { return l % 64 }}, {"64x128b.warpx2::01_23", 64, 4, func(l int) int { return l/64*32 + l%32 }},
	} {
		data := make([]byte, 128*32)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		width := 4 * c.columns
		desc := uint64(c.rows*16>>4)<<16 | uint64(128>>4)<<32 | 1<<46
		r := tensorRig(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64()}, 2, fmt.Sprintf(`
	mad.wide.u32 %%d0, %%t, 32, %%a0; mad.lo.u32 %%r0, %%t, 32, %%s;
	ld.global.v4.b32 {%%r2, %%r3, %%r4, %%r5}, [%%d0]; st.shared.v4.b32 [%%r0+1024], {%%r2, %%r3, %%r4, %%r5};
	ld.global.v4.b32 {%%r2, %%r3, %%r4, %%r5}, [%%d0+16]; st.shared.v4.b32 [%%r0+1040], {%%r2, %%r3, %%r4, %%r5};
	fence.proxy.async.shared::cta;
	bar.sync 0;
	@!%%first bra WAIT;
	add.u32 %%r0, %%s, 1024; shr.u32 %%r0, %%r0, 4; cvt.u64.u32 %%d1, %%r0; or.b64 %%d1, %%d1, %d;
	tcgen05.cp.cta_group::1.%s [%%tm+12], %%d1;
	tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%%s];
WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %%p1, [%%s], 0;
	@!%%p1 bra WAIT;
	tcgen05.fence::after_thread_sync;
	tcgen05.ld.sync.aligned.32x32b.x%d.b32 %s, [%%quarter+12];
	tcgen05.wait::ld.sync.aligned;
	mad.wide.u32 %%d0, %%t, %d, %%a1;
`, desc, c.shape, c.columns, list("%r", 20, c.columns), width)+each(c.columns, "st.global.b32 [%d0+{4}], %r2{};\n"))
		r.bytes(append(rowsOf(data[:c.rows*width], c.rows, width), data[c.rows*width:]...)).out(128 * width)
		require.NoError(t, r.launch(threads(128)), c.shape)
		got := r.read(1)
		for lane := range 128 {
			require.Equal(t, data[c.row(lane)*width:][:width], got[lane*width:][:width], "%s: lane %d", c.shape, lane)
		}
	}
}
