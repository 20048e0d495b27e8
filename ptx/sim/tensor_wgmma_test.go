package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// sharedTile is a matrix in shared memory for wgmma, in one of the canonical layouts: the bytes of rows mn of k elements,
// from an address that is a multiple of 1024, and the descriptor without that address. skip is how far into the swizzle's
// span k begins.
func sharedTile(packed []byte, mns, k, size int, s tensormap.Swizzle, trans bool, skip int) (image []byte, desc uint64) {
	span := s.Span()
	image = make([]byte, (mns*max(k*size, span)+4*8*span+2047)&^1023)
	var lbo, sbo int
	at := func(mn, k int) int { return 0 }
	switch {
	case !trans && s == tensormap.NoSwizzle:
		lbo, sbo = 128, 256
		at = func(mn, k int) int { return mn/8*sbo + k*size/16*lbo + mn%8*16 + k*size%16 }
	case !trans:
		sbo = 8 * span
		at = func(mn, k int) int { return mn/8*sbo + mn%8*span + skip + k*size }
	case s == tensormap.NoSwizzle:
		sbo, lbo = 128, (mns+7)/8*128
		at = func(mn, k int) int { return mn/8*sbo + k/8*lbo + k%8*16 + mn%8*2 }
	default:
		w := span / 2
		sbo, lbo = 8*span, 16*span
		at = func(mn, k int) int { return mn/w*lbo + k/8*sbo + k%8*span + mn%w*2 }
	}
	for mn := range mns {
		for i := range k {
			copy(image[s.Apply(uint64(at(mn, i))):][:size], packed[(mn*k+i)*size:])
		}
	}
	code := map[tensormap.Swizzle]uint64{tensormap.Swizzle128: 1, tensormap.Swizzle64: 2, tensormap.Swizzle32: 3}[s]
	if trans {
		skip = 0
	}
	return image, uint64(lbo)>>4<<16 | uint64(sbo)>>4<<32 | code<<62 | uint64(skip)>>4
}

// toShared copies n bytes from %a0 to shared memory by 128 threads, and makes them visible to the async proxy.
func toShared(n int) string {
	return fmt.Sprintf(`
	mov.u32 %%r290, sm;
	mad.lo.u32 %%r291, %%t, 16, %%r290;
	mad.wide.u32 %%rd60, %%t, 16, %%a0;
	mov.u32 %%r292, 0;
COPY:
	ld.global.v4.u32 {%%r293, %%r294, %%r295, %%r296}, [%%rd60];
	st.shared.v4.u32 [%%r291], {%%r293, %%r294, %%r295, %%r296};
	add.u32 %%r291, %%r291, 2048;
	add.u64 %%rd60, %%rd60, 2048;
	add.u32 %%r292, %%r292, 2048;
	setp.lt.u32 %%p9, %%r292, %d;
	@%%p9 bra COPY;
	fence.proxy.async;
	bar.sync 0;
	cvt.u64.u32 %%rd61, %%r290;
	shr.u64 %%rd61, %%rd61, 4;
`, n)
}

// wgmmaForm is one instruction with its operands.
type wgmmaForm struct {
	n, k           int
	ta, tb, td     ir.Type
	sa, sb         tensormap.Swizzle
	transA, transB bool
	inRegs         bool
	scale          bool // D is added to
	signA, signB   int
	skipA, skipB   int
}

func (f *wgmmaForm) op() string {
	return fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%v.%v.%v", f.n, f.k, f.td, f.ta, f.tb)
}

func (f *wgmmaForm) regs() (prefix string, n int) {
	prefix, n = "%r", f.n/2
	if f.td == ir.F32 {
		prefix = "%f"
	}
	if f.td == ir.F16 {
		n /= 2
	}
	return prefix, n
}

// kernel is %a0: shared memory, %a1: A's and D's registers by thread, %a2: results.
func (f *wgmmaForm) kernel(bytes, baseB int, descA, descB uint64, parts map[string]string) string {
	prefix, n := f.regs()
	load, store, typ := "", "", "b32"
	if prefix == "%f" {
		typ = "f32"
	}
	for i := range n {
		load += fmt.Sprintf("ld.global.%s %s%d, [%%rd1+%d];\n", typ, prefix, i, 512*(i+4))
		store += fmt.Sprintf("st.global.%s [%%rd2+%d], %s%d;\n", typ, 512*i, prefix, i)
	}
	a := "%rd10"
	if f.inRegs {
		a = "{%r200, %r201, %r202, %r203}"
		for i := range 4 {
			load += fmt.Sprintf("ld.global.b32 %%r%d, [%%rd1+%d];\n", 200+i, 512*i)
		}
	}
	args := ", %p1"
	if f.td != ir.S32 {
		args += fmt.Sprintf(", %d, %d", f.signA, f.signB)
		bit := map[bool]int{true: 1}
		if f.ta.Bits() == 16 && !f.inRegs {
			args += fmt.Sprintf(", %d", bit[f.transA])
		}
		if f.ta.Bits() == 16 {
			args += fmt.Sprintf(", %d", bit[f.transB])
		}
	}
	part := func(name, usual string) string {
		if p, ok := parts[name]; ok {
			return p
		}
		return usual
	}
	return prelude((bytes+1023)&^1023, 3) + toShared(bytes) + "mad.wide.u32 %rd1, %t, 4, %a1;\n" +
		"mad.wide.u32 %rd2, %t, 4, %a2;\n" + load +
		fmt.Sprintf("add.u64 %%rd10, %%rd61, %d;\nadd.u64 %%rd11, %%rd61, %d;\nsetp.%s.u32 %%p1, %%t, 1000;\n", int64(descA),
			int64(descB)+int64(baseB>>4), map[bool]string{true: "ne", false: "eq"}[f.scale]) +
		part("fence", "wgmma.fence.sync.aligned;\n") +
		fmt.Sprintf("%s %s, %s, %%rd11%s;\n", f.op(), list(prefix, 0, n), a, args) +
		part("commit", "wgmma.commit_group.sync.aligned;\n") + part("wait", "wgmma.wait_group.sync.aligned 0;\n") + store +
		"ret;\n}\n"
}

// run executes the product on random matrices and compares it.
func (f *wgmmaForm) run(t *testing.T, cfg sim.Config, parts map[string]string) error {
	rng := ptxtest.Random(t)
	a, va := matrix(rng, f.ta, 64*f.k)
	b, vb := matrix(rng, f.tb, f.n*f.k)
	d, vd := matrix(rng, f.td, 64*f.n)
	ia, descA := sharedTile(a, 64, f.k, f.ta.Bits()/8, f.sa, f.transA, f.skipA)
	ib, descB := sharedTile(b, f.n, f.k, f.tb.Bits()/8, f.sb, f.transB, f.skipB)
	image := append(ia, ib...)
	image = append(image, make([]byte, -len(image)&2047)...)
	// registers: those of A as in mma, those of D as the manual's figure says
	_, n := f.regs()
	regs := make([]byte, 512*(n+4))
	per, perD := 32/f.ta.Bits(), 32/f.td.Bits()
	place := func(thread, e int) int {
		return (16*(thread/32)+thread%32/4+8*(e/2%2))*f.n + e/4*8 + thread%4*2 + e%2
	}
	for thread := range 128 {
		for e := range 4 * per {
			row, k := 16*(thread/32)+thread%32/4+8*(e/per%2), (thread%4+4*(e/per/2))*per+e%per
			size := f.ta.Bits() / 8
			copy(regs[512*(e/per)+4*thread+e%per*size:][:size], a[(row*f.k+k)*size:])
		}
		for e := range n * perD {
			size := f.td.Bits() / 8
			copy(regs[512*(e/perD+4)+4*thread+e%perD*size:][:size], d[place(thread, e)*size:])
		}
	}
	r := newRig(t, cfg, f.kernel(len(image), len(ia), descA, descB, parts)).bytes(image).bytes(regs).out(512 * n)
	if err := r.launch(threads(128)); err != nil {
		return err
	}
	for i := range va {
		va[i] *= float64(f.signA * f.signB)
	}
	if !f.scale {
		vd = nil
	}
	want, size := gemm(64, f.n, f.k, va, byRows(vb, f.k, f.n), vd)
	if f.td == ir.S32 {
		for i, v := range want {
			want[i] = float64(int32(int64(v)))
		}
	}
	got, out := make([]byte, 64*f.n*f.td.Bits()/8), r.read(2)
	for thread := range 128 {
		for e := range n * perD {
			size := f.td.Bits() / 8
			copy(got[place(thread, e)*size:][:size], out[512*(e/perD)+4*thread+e%perD*size:])
		}
	}
	near(t, got, f.td, want, size, fmt.Sprintf("%+v", *f))
	return nil
}

func TestWgmma(t *testing.T) {
	rng := ptxtest.Random(t)
	ks := map[int]int{8: 32, 16: 16, 32: 8}
	for _, x := range []struct{ ta, tb, td ir.Type }{
		{ir.F16, ir.F16, ir.F32}, {ir.F16, ir.F16, ir.F16}, {ir.BF16, ir.BF16, ir.F32}, {ir.TF32, ir.TF32, ir.F32}, {ir.E4M3,
			ir.E4M3, ir.F32},
		{ir.E5M2, ir.E4M3, ir.F16}, {ir.S8, ir.S8, ir.S32}, {ir.U8, ir.S8, ir.S32},
	} {
		for i := range 8 {
			f := wgmmaForm{n: 16 * (1 + rng.IntN(4)), k: ks[x.ta.Bits()], ta: x.ta, tb: x.tb, td: x.td, sa: swizzles[i%4],
				sb:     swizzles[rng.IntN(4)],
				inRegs: i%3 == 2, scale: rng.IntN(2) == 0, signA: 1, signB: 1}
			if i == 7 {
				f.n = 256
			}
			if x.ta.Bits() == 16 {
				f.transA, f.transB = !f.inRegs && rng.IntN(2) == 0, rng.IntN(2) == 0
			}
			if x.td != ir.S32 {
				f.signA, f.signB = 1-2*rng.IntN(2), 1-2*rng.IntN(2)
			}
			f.skipA, f.skipB = 32*rng.IntN(max(1, f.sa.Span()/32)), 32*rng.IntN(max(1, f.sb.Span()/32))
			if f.transA {
				f.skipA = 0
			}
			if f.transB {
				f.skipB = 0
			}
			cfg := checkedSeeds(3)[rng.IntN(5)]
			require.NoError(t, f.run(t, cfg, nil), "%+v", f)
		}
	}
}

func TestWgmmaFaults(t *testing.T) {
	f := wgmmaForm{n: 16, k: 16, ta: ir.F16, tb: ir.F16, td: ir.F32, sa: tensormap.Swizzle128, sb: tensormap.Swizzle128,
		scale: true, signA: 1, signB: 1}
	for _, cfg := range checkedSeeds(3) {
		if cfg.Checks == 0 {
			continue
		}
		hazard := func(parts map[string]string, want string) {
			g := faults(t, f.run(t, cfg, parts), sim.AsyncHazard)
			require.Contains(t, g.Error(), want)
		}
		hazard(map[string]string{"fence": ""}, "no wgmma.fence")
		hazard(map[string]string{"wait": ""}, "nobody has waited for the asynchronous product")
		hazard(map[string]string{"commit": ""}, "nobody has waited for the asynchronous product")
		hazard(map[string]string{"wait": "wgmma.wait_group.sync.aligned 1;\n"}, "nobody has waited for the asynchronous product")
		hazard(map[string]string{"fence": "wgmma.fence.sync.aligned;\nadd.f32 %f3, %f3, %f3;\n"},
			"accessed since the last wgmma.fence")
		hazard(map[string]string{"wait": "setp.eq.u32 %p3, %t, 0;\n@%p3 st.shared.u32 [%r290], %t;\n" +
			"wgmma.wait_group.sync.aligned 0;\n"}, "reads this")
		require.NoError(t, f.run(t, cfg, map[string]string{"wait": "add.u32 %r100, %t, 1;\nwgmma.wait_group.sync.aligned 0;\n" +
			"bar.sync 0;\nsetp.eq.u32 %p3, %t, 0;\n@%p3 st.shared.u32 [%r290], %t;\n"}))
	}
	kernel := func(code string, n int) error {
		image := make([]byte, 4096)
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, prelude(4096, 1)+code+"ret;\n}\n").bytes(image)
		return r.launch(threads(n))
	}
	mma := func(desc string) string {
		return "setp.eq.u32 %p1, %t, 1000;\nwgmma.fence.sync.aligned;\n" +
			"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, " + desc +
			", %rd11, %p1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
	}
	const desc = 128>>4<<16 | 256>>4<<32
	good := toShared(4096) + fmt.Sprintf("add.u64 %%rd10, %%rd61, %d;\nadd.u64 %%rd11, %%rd61, %d;\n", desc, desc)
	require.NoError(t, kernel(good+mma("%rd10"), 128))
	faults(t, kernel(good+mma("%rd10"), 96), sim.WarpSync)
	faults(t, kernel(good+"or.b64 %rd10, %rd10, 70368744177664;\n"+mma("%rd10"), 128), sim.BadOperand)
	faults(t, kernel(good+"cvt.u64.u32 %rd12, %t;\nadd.u64 %rd10, %rd10, %rd12;\n"+mma("%rd10"), 128), sim.BadOperand)
	faults(t, kernel(good+"add.u64 %rd10, %rd10, 240;\n"+mma("%rd10"), 128), sim.OutOfBounds)
	faults(t, kernel(strings.Replace(good, "fence.proxy.async;", "", 1)+mma("%rd10"), 128), sim.ProxyFence)
	// bytes that nobody has written
	faults(t, kernel(fmt.Sprintf("mov.u64 %%rd10, %d;\nmov.u64 %%rd11, %%rd10;\n", desc)+mma("%rd10"), 128), sim.Uninitialized)
	// one warp of the warpgroup stays away
	one := faults(t, kernel(good+"setp.lt.u32 %p2, %t, 32;\n@%p2 bra END;\n"+mma("%rd10")+"END:\n", 128), sim.Deadlock)
	require.Contains(t, one.Error(), "the other warps of its warpgroup")
}
