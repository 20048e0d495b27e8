package sim_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// configs are those under which every result has to be the same: fast, checked, and some schedules.
func configs(t testing.TB) map[string]sim.Config {
	rng := ptxtest.Random(t)
	c := map[string]sim.Config{"fast": {}, "workers": {Workers: 3}, "checked": {Checks: sim.AllChecks}}
	for i := range 4 {
		s := rng.Uint64() | 1
		c[fmt.Sprintf("seed %d", s)] = sim.Config{Seed: s}
		if i == 0 {
			c[fmt.Sprintf("checked, seed %d", s)] = sim.Config{Seed: s, Checks: sim.AllChecks}
		}
	}
	return c
}

// same runs a kernel under every configuration and requires the words that want gives.
func same(t *testing.T, src string, l sim.Launch, n int, want func(i int) uint32) {
	t.Helper()
	for name, cfg := range configs(t) {
		got, _, err := launch(t, cfg, src, l, n)
		require.NoError(t, err, name)
		for i, v := range got {
			require.Equalf(t, want(i), v, "%s: word %d", name, i)
		}
	}
}

func TestDivergence(t *testing.T) {
	// Even lanes square, odd ones loop tid times; all meet again and add their neighbour's value.
	same(t, body(`
	and.b32 %r1, %t, 1;
	setp.eq.u32 %p1, %r1, 0;
	mov.u32 %r2, 0;
	@%p1 bra EVEN;
	mov.u32 %r3, 0;
LOOP:
	add.u32 %r2, %r2, 3;
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p2, %r3, %t;
	@%p2 bra LOOP;
	bra JOIN;
EVEN:
	mul.lo.u32 %r2, %t, %t;
JOIN:
	shfl.sync.bfly.b32 %r4, %r2, 1, 31, 0xffffffff;
	add.u32 %r2, %r2, %r4;
	st.global.u32 [%mine], %r2;`), threads(64), 64, func(i int) uint32 {
		e := i &^ 1
		return uint32(e*e + 3*(e+1))
	})
}

func TestGuards(t *testing.T) {
	same(t, body(`
	setp.lt.u32 %p1, %t, 10;
	mov.u32 %r1, 7;
	@%p1 mov.u32 %r1, %t;
	@!%p1 add.u32 %r1, %r1, %t;
	st.global.u32 [%mine], %r1;
	@!%p1 exit;
	st.global.u32 [%mine], 99;`), threads(40), 40, func(i int) uint32 {
		if i < 10 {
			return 99
		}
		return uint32(i + 7)
	})
}

func TestIndexedBranch(t *testing.T) {
	same(t, body(`
	rem.u32 %r1, %t, 3;
	ts: .branchtargets A, B, C;
	brx.idx %r1, ts;
A:
	mov.u32 %r2, 100;
	bra D;
B:
	mov.u32 %r2, 200;
	bra D;
C:
	mov.u32 %r2, 300;
D:
	st.global.u32 [%mine], %r2;`), threads(32), 32, func(i int) uint32 { return uint32(100 * (i%3 + 1)) })
}

func TestBarrier(t *testing.T) {
	// Reverses the block's values through shared memory.
	same(t, body(`
	.shared .align 4 .b8 s[512];
	mov.u32 %r1, s;
	shl.b32 %r2, %t, 2;
	add.u32 %r3, %r1, %r2;
	st.shared.u32 [%r3], %t;
	bar.sync 0;
	sub.u32 %r4, 127, %t;
	shl.b32 %r4, %r4, 2;
	add.u32 %r4, %r1, %r4;
	ld.shared.u32 %r5, [%r4];
	st.global.u32 [%mine], %r5;`), threads(128), 128, func(i int) uint32 { return uint32(127 - i) })
}

func TestBarrierReduction(t *testing.T) {
	same(t, body(`
	and.b32 %r1, %t, 3;
	setp.eq.u32 %p1, %r1, 0;
	barrier.red.popc.u32 %r2, 3, %p1;
	bar.red.and.pred %p2, 1, 96, !%p1;
	bar.red.or.pred %p3, 0, %p1;
	selp.u32 %r3, 1000, 0, %p2;
	selp.u32 %r4, 500, 0, %p3;
	add.u32 %r2, %r2, %r3;
	add.u32 %r2, %r2, %r4;
	st.global.u32 [%mine], %r2;`), threads(96), 96, func(int) uint32 { return 524 })
}

func TestNamedBarriers(t *testing.T) {
	// A producer warp hands over to a consumer warp: arrive and sync for 64 threads.
	same(t, body(`
	.shared .align 4 .u32 s[32];
	mov.u32 %r1, s;
	and.b32 %r2, %t, 31;
	shl.b32 %r2, %r2, 2;
	add.u32 %r1, %r1, %r2;
	setp.ge.u32 %p1, %t, 32;
	@%p1 bra CONSUME;
	mad.lo.u32 %r3, %t, 5, 1;
	st.shared.u32 [%r1], %r3;
	bar.arrive 5, 64;
	bra END;
CONSUME:
	bar.sync 5, 64;
	ld.shared.u32 %r4, [%r1];
	st.global.u32 [%mine+-128], %r4;
END:`), threads(64), 32, func(i int) uint32 { return uint32(5*i + 1) })
}

func TestWarpFunctions(t *testing.T) {
	type lane = func(i int) uint32
	// -16, -15, …, 14, NaN
	const numbers = `sub.s32 %r2, %t, 16; cvt.rn.f32.s32 %f1, %r2; setp.eq.u32 %p1, %t, 31; selp.f32 %f1, 0f7FFFFFFF, %f1, %p1;`
	for name, c := range map[string]struct {
		code string
		want lane
	}{
		"up": {"shfl.sync.up.b32 %r1|%p1, %t, 3, 0, 0xffffffff; selp.u32 %r2, 100, 0, %p1; add.u32 %r1, %r1, %r2;", func(i int) uint32 {
			if i < 3 {
				return uint32(i)
			}
			return uint32(i - 3 + 100)
		}},
		"down":      {"shfl.sync.down.b32 %r1, %t, 4, 31, -1;", func(i int) uint32 { return uint32(i + 4*b2i(i < 28)) }},
		"idx":       {"shfl.sync.idx.b32 %r1, %t, 9, 0x181f, -1;", func(i int) uint32 { return uint32(i&24 | 1) }},
		"all":       {"setp.lt.u32 %p1, %t, 31; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;", func(int) uint32 { return 0 }},
		"any":       {"setp.lt.u32 %p1, %t, 1; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;", func(int) uint32 { return 1 }},
		"uni":       {"setp.lt.u32 %p1, %t, 99; vote.sync.uni.pred %p2, !%p1, -1; selp.u32 %r1, 1, 0, %p2;", func(int) uint32 { return 1 }},
		"ballot":    {"setp.lt.u32 %p1, %t, 5; vote.sync.ballot.b32 %r1, !%p1, -1;", func(int) uint32 { return ^uint32(31) }},
		"match any": {"shr.u32 %r2, %t, 3; match.any.sync.b32 %r1, %r2, -1;", func(i int) uint32 { return 0xff << (i &^ 7) }},
		"match all": {"mov.u32 %r2, 5; match.all.sync.b32 %r1|%p1, %r2, -1; selp.u32 %r1, %r1, 0, %p1;", func(int) uint32 { return ^uint32(0) }},
		"redux add": {"redux.sync.add.s32 %r1, %t, -1;", func(int) uint32 { return 496 }},
		"redux max": {"sub.s32 %r2, %t, 16; redux.sync.max.s32 %r1, %r2, -1;", func(int) uint32 { return 15 }},
		"redux xor": {"redux.sync.xor.b32 %r1, %t, 0xffffffff;", func(int) uint32 { return 0 }},
		"redux max of floats": {numbers + "redux.sync.max.f32 %f2, %f1, -1; mov.b32 %r1, %f2;",
			func(int) uint32 { return math.Float32bits(14) }},
		"redux with NaN":           {numbers + "redux.sync.max.NaN.f32 %f2, %f1, -1; mov.b32 %r1, %f2;", func(int) uint32 { return 0x7fffffff }},
		"redux of magnitudes":      {numbers + "redux.sync.max.abs.f32 %f2, %f1, -1; mov.b32 %r1, %f2;", func(int) uint32 { return math.Float32bits(16) }},
		"redux of NaN":             {"mov.f32 %f1, 0f7FC00001; redux.sync.min.f32 %f2, %f1, -1; mov.b32 %r1, %f2;", func(int) uint32 { return 0x7fffffff }},
		"redux of zeros of a sign": {"shl.b32 %r2, %t, 31; mov.b32 %f1, %r2; redux.sync.min.f32 %f2, %f1, -1; mov.b32 %r1, %f2;", func(int) uint32 { return 1 << 31 }},
		"elect":                    {"elect.sync %r1|%p1, -1; selp.u32 %r2, 50, 0, %p1; add.u32 %r1, %r1, %r2;", func(i int) uint32 { return uint32(50 * b2i(i == 0)) }},
		"elect without number":     {"elect.sync _|%p1, -1; selp.u32 %r1, 50, 0, %p1;", func(i int) uint32 { return uint32(50 * b2i(i == 0)) }},
		"elect of some": {"setp.ge.u32 %p2, %t, 20; setp.ne.u32 %p1, %t, %t; mov.u32 %r1, 7; mov.u32 %r3, 0xfff00000;\n" +
			"@%p2 elect.sync %r1|%p1, %r3; selp.u32 %r2, 50, 0, %p1; add.u32 %r1, %r1, %r2;",
			func(i int) uint32 { return uint32(7*b2i(i < 20) + 20*b2i(i >= 20) + 50*b2i(i == 20)) }},
		"activemask": {"activemask.b32 %r1;", func(int) uint32 { return ^uint32(0) }},
		"lanemask":   {"mov.u32 %r1, %lanemask_lt;", func(i int) uint32 { return 1<<i - 1 }},
	} {
		t.Run(name, func(t *testing.T) { same(t, body(c.code+"\nst.global.u32 [%mine], %r1;"), threads(32), 32, c.want) })
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestPartialMasks(t *testing.T) {
	// Each half of the warp sums its own values, on its own side of a branch, with its own mask; the lower half loops first.
	same(t, body(`
	setp.lt.u32 %p1, %t, 16;
	@%p1 bra LOW;
	redux.sync.add.u32 %r1, %t, 0xffff0000;
	bra END;
LOW:
	redux.sync.add.u32 %r1, %t, 0x0000ffff;
END:
	selp.b32 %r5, 0xffff, 0xffff0000, %p1;
	bar.warp.sync %r5;
	shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r5;
	st.global.u32 [%mine], %r2;`), threads(32), 32, func(i int) uint32 {
		if i < 16 {
			return 120
		}
		return 376
	})
}

func TestCalls(t *testing.T) {
	same(t, `
.func (.param .b32 r) twice(.param .b32 a) {
	.reg .b32 %r<3>;
	ld.param.b32 %r0, [a];
	add.u32 %r1, %r0, %r0;
	st.param.b32 [r], %r1;
	ret;
}
.func (.reg .u32 %o) plus(.reg .u32 %a, .reg .u32 %b) {
	add.u32 %o, %a, %b;
	ret;
}
.func (.param .b32 r) fib(.param .b32 n) {
	.reg .b32 %r<6>; .reg .pred %p;
	.local .align 4 .b32 keep;
	ld.param.b32 %r0, [n];
	setp.lt.u32 %p, %r0, 2;
	@%p bra DONE;
	sub.u32 %r1, %r0, 1;
	{
	.param .b32 p0; .param .b32 q0;
	st.param.b32 [p0], %r1;
	call.uni (q0), fib, (p0);
	ld.param.b32 %r2, [q0];
	}
	st.local.u32 [keep], %r2;
	sub.u32 %r1, %r0, 2;
	{
	.param .b32 p1; .param .b32 q1;
	st.param.b32 [p1], %r1;
	call.uni (q1), fib, (p1);
	ld.param.b32 %r2, [q1];
	}
	ld.local.u32 %r3, [keep];
	add.u32 %r0, %r2, %r3;
DONE:
	st.param.b32 [r], %r0;
	ret;
}
.global .align 8 .u64 table[2] = {twice, fib};
`+body(`
	{
	.param .b32 a0; .param .b32 r0;
	and.b32 %r1, %t, 7;
	st.param.b32 [a0], %r1;
	and.b32 %r2, %t, 1;
	mul.wide.u32 %rd1, %r2, 8;
	mov.u64 %rd2, table;
	add.u64 %rd1, %rd1, %rd2;
	ld.global.u64 %rd3, [%rd1];
	proto: .callprototype (.param .b32 _) _ (.param .b32 _);
	targets: .calltargets twice, fib;
	setp.lt.u32 %p1, %t, 16;
	@%p1 call (r0), %rd3, (a0), proto;
	@!%p1 call (r0), %rd3, (a0), targets;
	ld.param.b32 %r3, [r0];
	}
	call (%r4), plus, (%r3, 1000);
	st.global.u32 [%mine], %r4;`), threads(32), 32, func(i int) uint32 {
		fib := []uint32{0, 1, 1, 2, 3, 5, 8, 13}
		if i&1 == 0 {
			return uint32(2*(i&7)) + 1000
		}
		return fib[i&7] + 1000
	})
}

func TestMemorySpaces(t *testing.T) {
	same(t, `
.const .align 4 .u32 weights[4] = {10, 20, 30, 40};
.global .align 8 .u64 where = generic(weights)+8;
.global .align 4 .f32 zeroed[4];
`+body(`
	.local .align 16 .b8 stack[64];
	.shared .align 8 .b8 s[256];
	and.b32 %r1, %t, 3;
	mul.wide.u32 %rd1, %r1, 4;
	mov.u64 %rd2, weights;
	add.u64 %rd3, %rd2, %rd1;
	ld.const.u32 %r2, [%rd3];          // 10 to 40
	mov.u64 %rd4, where;
	ld.global.u64 %rd5, [%rd4];
	ld.u32 %r3, [%rd5];                // 30, through a generic address
	add.u32 %r2, %r2, %r3;
	mov.u64 %rd6, stack;
	add.u64 %rd7, %rd6, %rd1;
	st.local.u32 [%rd7], %r2;
	cvta.local.u64 %rd8, %rd7;
	ld.u32 %r4, [%rd8];
	isspacep.local %p1, %rd8;
	isspacep.shared %p2, %rd8;
	selp.u32 %r5, 1000, 0, %p1;
	add.u32 %r4, %r4, %r5;
	selp.u32 %r5, 7000, 0, %p2;
	add.u32 %r4, %r4, %r5;
	mov.u64 %rd9, s;
	cvta.shared.u64 %rd10, %rd9;
	mul.wide.u32 %rd11, %t, 4;
	add.u64 %rd10, %rd10, %rd11;
	st.u32 [%rd10], %r4;
	cvta.to.shared.u64 %rd12, %rd10;
	ld.shared.u32 %r6, [%rd12];
	ld.global.f32 %f1, [zeroed+4];
	cvt.rni.s32.f32 %r7, %f1;
	add.u32 %r6, %r6, %r7;
	st.global.u32 [%mine], %r6;`), threads(64), 64, func(i int) uint32 { return uint32(10*(i&3) + 10 + 30 + 1000) })
}

func TestWidths(t *testing.T) {
	// Bytes and halves extend by their sign, vectors move whole, 64-bit values split.
	same(t, body(`
	.shared .align 16 .b8 s[64];
	st.shared.u32 [s], 0x80ff7f01;
	bar.warp.sync -1;
	ld.shared.s8 %r1, [s+2];
	ld.shared.u8 %r2, [s+2];
	ld.shared.s16 %r3, [s+2];
	ld.shared.v2.u16 {%h1, %h2}, [s];
	cvt.u32.u16 %r4, %h2;
	sub.u32 %r5, %r2, %r1;      // 256
	add.u32 %r5, %r5, %r3;      // + 0xffff80ff
	add.u32 %r5, %r5, %r4;      // + 0x80ff
	mov.b64 %rd1, {%r5, %t};
	mov.b64 {%r6, %r7}, %rd1;
	mov.b32 {%h3, _}, %r6;
	cvt.u32.u16 %r8, %h3;
	add.u32 %r8, %r8, %r7;
	st.global.u32 [%mine], %r8;`), threads(1), 1, func(i int) uint32 { return uint32((256 + 0x80ff + 0x80ff) & 0xffff) })
}

func TestAtomics(t *testing.T) {
	same(t, body(`
	atom.global.add.u32 %r1, [%out], 1;
	red.global.max.u32 [%out+4], %t;
	mov.u32 %r2, %ctaid.x;
	red.relaxed.gpu.global.add.u32 [%out+8], %r2;
	atom.global.cas.b32 %r3, [%out+12], 0, 77;
	red.global.add.f32 [%out+16], 0f3F800000;
	atom.global.inc.u32 %r4, [%out+20], 9;
	atom.global.exch.b32 %r5, [%out+24], 5;`), sim.Launch{Grid: sim.Dim3{X: 10}, Block: sim.Dim3{X: 64}}, 7, func(i int) uint32 {
		return []uint32{640, 63, 45 * 64, 77, math.Float32bits(640), 0, 5}[i]
	})
}

func TestSpinLock(t *testing.T) {
	// Each lane takes a lock, one after the other, and adds to a plain counter: lanes need independent progress.
	same(t, body(`
AGAIN:
	atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra AGAIN;
	ld.relaxed.gpu.global.u32 %r2, [%out+4];
	add.u32 %r2, %r2, 1;
	st.relaxed.gpu.global.u32 [%out+4], %r2;
	atom.release.gpu.global.exch.b32 %r3, [%out], 0;`), sim.Launch{Grid: sim.Dim3{X: 2}, Block: sim.Dim3{X: 40}}, 2,
		func(i int) uint32 { return uint32(80 * i) })
}

func TestGridBarrier(t *testing.T) {
	// Every block waits for all others: all have to be on the machine together.
	same(t, body(`
	atom.acq_rel.gpu.global.add.u32 %r1, [%out], 1;
WAIT:
	ld.acquire.gpu.global.u32 %r2, [%out];
	setp.lt.u32 %p1, %r2, 6;
	@%p1 bra WAIT;
	red.relaxed.gpu.global.add.u32 [%out+4], %r2;`), sim.Launch{Grid: sim.Dim3{X: 6}, Block: sim.Dim3{X: 1}}, 2,
		func(i int) uint32 { return []uint32{6, 36}[i] })
}

func TestClusterBarrier(t *testing.T) {
	same(t, body(`
	mov.u32 %r1, %cluster_ctarank;
	mov.u32 %r2, %ctaid.x;
	mad.lo.u32 %r3, %r2, 32, %t;
	mul.wide.u32 %rd1, %r3, 4;
	add.u64 %rd2, %out, %rd1;
	st.global.u32 [%rd2], %r3;
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	xor.b32 %r4, %r3, 32;
	mul.wide.u32 %rd1, %r4, 4;
	add.u64 %rd3, %out, %rd1;
	ld.global.u32 %r5, [%rd3];
	barrier.cluster.arrive;
	barrier.cluster.wait;
	st.global.u32 [%rd2], %r5;`), sim.Launch{Grid: sim.Dim3{X: 4}, Block: sim.Dim3{X: 32}, Cluster: sim.Dim3{X: 2}}, 128,
		func(i int) uint32 { return uint32(i ^ 32) })
}

func TestCarry(t *testing.T) {
	same(t, body(`
	mov.u32 %r1, 0xffffffff;
	add.cc.u32 %r2, %r1, %t;
	addc.u32 %r3, 0, 0;
	sub.cc.u32 %r4, 0, %t;
	subc.u32 %r5, 10, 0;
	add.u32 %r3, %r3, %r5;
	st.global.u32 [%mine], %r3;`), threads(2), 2, func(i int) uint32 { return uint32(10 + i - i) })
}

func TestSpecialRegisters(t *testing.T) {
	got, _, err := launch(t, sim.Config{}, body(`
	mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.z; mov.u32 %r3, %ntid.y; mov.u32 %r4, %tid.z; mov.u32 %r5, %warpid;
	mov.u32 %r6, %dynamic_smem_size; mov.u32 %r7, %envreg3; mov.u64 %rd1, %clock64; mov.u64 %rd2, %clock64; mov.u32 %r8, %laneid;
	mov.u32 %r9, WARP_SZ; mov.u64 %rd3, %globaltimer; mov.u32 %r10, %smid; mov.u32 %r11, %clock;
	sub.u64 %rd2, %rd2, %rd1;
	cvt.u32.u64 %r12, %rd2;
	setp.ne.u32 %p1, %r4, 3;
	setp.ne.or.u32 %p1, %r1, 1, %p1;
	@%p1 exit;
	st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};
	st.global.v4.u32 [%out+16], {%r5, %r6, %r7, %r8};
	st.global.v2.u32 [%out+32], {%r9, %r12};`),
		sim.Launch{Grid: sim.Dim3{X: 1, Y: 2, Z: 3}, Block: sim.Dim3{X: 1, Y: 10, Z: 4}, Shared: 48}, 10)
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 3, 10, 3, 1, 48, 0, 7, 32}, got[:9])
	require.Positive(t, got[9])
}

func TestSchedules(t *testing.T) {
	// A block reduction with divergence gives the same sum under every schedule.
	src := body(`
	.shared .align 4 .u32 s[128];
	mov.u32 %r1, s;
	shl.b32 %r2, %t, 2;
	add.u32 %r1, %r1, %r2;
	mad.lo.u32 %r3, %t, %t, 1;
	st.shared.u32 [%r1], %r3;
	mov.u32 %r4, 64;
LOOP:
	bar.sync 0;
	setp.ge.u32 %p1, %t, %r4;
	@%p1 bra SKIP;
	shl.b32 %r5, %r4, 2;
	add.u32 %r5, %r1, %r5;
	ld.shared.u32 %r6, [%r5];
	ld.shared.u32 %r7, [%r1];
	add.u32 %r7, %r7, %r6;
	st.shared.u32 [%r1], %r7;
SKIP:
	shr.u32 %r4, %r4, 1;
	setp.ne.u32 %p2, %r4, 0;
	@%p2 bra LOOP;
	setp.ne.u32 %p3, %t, 0;
	@%p3 bra END;
	ld.shared.u32 %r8, [s];
	mov.u32 %r9, %ctaid.x;
	mul.wide.u32 %rd1, %r9, 4;
	add.u64 %rd1, %out, %rd1;
	st.global.u32 [%rd1], %r8;
END:`)
	rng := ptxtest.Random(t)
	want := uint32(0)
	for i := range uint32(128) {
		want += i*i + 1
	}
	for i := range 50 {
		cfg := sim.Config{Seed: rng.Uint64() | 1}
		if i%2 == 0 {
			cfg.Checks = sim.AllChecks
		}
		got, _, err := launch(t, cfg, src, sim.Launch{Grid: sim.Dim3{X: 6}, Block: sim.Dim3{X: 128}}, 6)
		require.NoError(t, err)
		require.Equal(t, []uint32{want, want, want, want, want, want}, got, "seed %d", cfg.Seed)
	}
}

func TestStats(t *testing.T) {
	_, s, err := launch(t, sim.Config{}, body(`
	cvt.rn.f32.u32 %f1, %t;
	fma.rn.f32 %f2, %f1, %f1, %f1;
	st.global.f32 [%mine], %f2;`), threads(48), 48)
	require.NoError(t, err)
	require.EqualValues(t, 96, s.Flops)
	require.EqualValues(t, 48*4, s.GlobalWritten)
	require.EqualValues(t, 2*8, s.Instructions)
	require.EqualValues(t, 48*8, s.Lanes)
	require.Contains(t, s.String(), "48 threads")
}

func TestStack(t *testing.T) {
	same(t, strings.Replace(body(`
	stacksave.u64 %rd1;
	alloca.u64 %rd2, 64, 16;
	st.local.u32 [%rd2+60], %t;
	ld.local.u32 %r1, [%rd2+60];
	stackrestore.u64 %rd1;
	st.global.u32 [%mine], %r1;`), "%sp", "%sp", 1), threads(3), 3, func(i int) uint32 { return uint32(i) })
}

func TestContext(t *testing.T) {
	g := sim.New(sim.Config{})
	m, err := g.Load(module(t, body("LOOP: bra LOOP;")))
	require.NoError(t, err)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	p, err := k.Pack(uint64(0))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		l := threads(32)
		l.Params = p
		_, err := g.Run(ctx, k, l)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	_, err = g.Run(ctx, k, threads(1))
	require.ErrorIs(t, err, compute.ErrArgument)
}

// Every block finds its registers zero, its own index, and constants as they are, whatever an earlier block on the same
// worker left.
func TestBlocksBeginAlike(t *testing.T) {
	got, _, err := launch(t, sim.Config{}, body(`
	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %laneid;
	mad.lo.u32 %r3, %r1, 64, %t; mad.wide.u32 %rd1, %r3, 4, %out;
	selp.u32 %r4, 1000, 0, %p1; cvt.u32.u64 %r5, %rd2; // all zero
	add.u32 %r6, %r7, %r4; add.u32 %r6, %r6, %r5; mad.lo.u32 %r6, %r1, 10000, %r6; add.u32 %r6, %r6, %r2; add.u32 %r6, %r6, 7;
	st.global.u32 [%rd1], %r6;
	setp.eq.u32 %p1, %r1, %r1; mov.u64 %rd2, 5; mov.u32 %r7, 300; mov.u32 %r1, 9;`),
		sim.Launch{Grid: sim.Dim3{X: 20}, Block: sim.Dim3{X: 64}}, 20*64)
	require.NoError(t, err)
	for i, v := range got {
		require.EqualValues(t, i/64*10000+i%32+7, v, "thread %d", i)
	}
}
