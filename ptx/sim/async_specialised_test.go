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

const (
	tileM, tileN, tileK = 64, 32, 64
	stages              = 2
)

// specialised is a GEMM of f16 as Hopper wants it: a producer warp brings tiles by bulk tensor copies, a warpgroup of
// consumers multiplies them, and a pair of mbarriers per stage says which stages are full and which empty. C is f32, K tiles
// are passed as parameter. Lines of without are left out; they are there to be missed.
func specialised(without ...string) string {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	line(".visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 c, .param .u32 tiles)")
	line(".maxntid 256, 1, 1\n.minnctapersm 1\n{")
	line(".reg .pred %%p<16>;\n.reg .b32 %%r<64>;\n.reg .f32 %%f<16>;\n.reg .b64 %%rd<32>;")
	line(".shared .align 1024 .b8 sm[%d];", 1024+stages*(tileM+tileN)*tileK*2)
	line("mov.u32 %%r0, sm;\nmov.u32 %%r1, %%tid.x;\nld.param.u32 %%r2, [tiles];\nmov.u32 %%r3, %%ctaid.x;")
	line("mov.b64 %%rd0, ma;\ncvta.param.u64 %%rd0, %%rd0;\nmov.b64 %%rd1, mb;\ncvta.param.u64 %%rd1, %%rd1;")
	line("setp.eq.u32 %%p0, %%r1, 0;\n@!%%p0 bra READY;")
	for i := range stages {
		line("mbarrier.init.shared::cta.b64 [%%r0+%d], 1;", 8*i)      // full
		line("mbarrier.init.shared::cta.b64 [%%r0+%d], 128;", 64+8*i) // empty
	}
	line("fence.mbarrier_init.release.cluster;\nREADY:\nbar.sync 0;")
	line("mov.u32 %%r4, 0;\nsetp.ge.u32 %%p1, %%r1, 128;\n@%%p1 bra CONSUMER;")

	line("setmaxnreg.dec.sync.aligned.u32 24;\n@!%%p0 bra END;")
	line("PRODUCE:")
	stage := func() { // %r5 stage, %r6 parity of its use, %r7 its mbarrier, %r8 and %r9 its tiles
		line("and.b32 %%r5, %%r4, %d;\nshr.u32 %%r6, %%r4, 1;\nand.b32 %%r6, %%r6, 1;\nmad.lo.u32 %%r7, %%r5, 8, %%r0;", stages-1)
		line("mad.lo.u32 %%r8, %%r5, %d, %%r0;\nadd.u32 %%r8, %%r8, 1024;", tileM*tileK*2)
		line("mad.lo.u32 %%r9, %%r5, %d, %%r0;\nadd.u32 %%r9, %%r9, %d;", tileN*tileK*2, 1024+stages*tileM*tileK*2)
	}
	stage()
	line("xor.b32 %%r10, %%r6, 1;")
	line("WAITEMPTY:\nmbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r7+64], %%r10;\n@!%%p2 bra WAITEMPTY;")
	line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r7], %d;", (tileM+tileN)*tileK*2)
	line("mul.lo.u32 %%r11, %%r4, %d;\nmul.lo.u32 %%r12, %%r3, %d;\nmov.u32 %%r13, 0;", tileK, tileM)
	const load = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
	line(load + " [%%r8], [%%rd0, {%%r11, %%r12}], [%%r7];")
	line(load + " [%%r9], [%%rd1, {%%r11, %%r13}], [%%r7];")
	line("add.u32 %%r4, %%r4, 1;\nsetp.lt.u32 %%p3, %%r4, %%r2;\n@%%p3 bra PRODUCE;\nbra END;")

	line("CONSUMER:\nsetmaxnreg.inc.sync.aligned.u32 240;\nsetp.ne.u32 %%p4, %%r0, %%r0;")
	line("CONSUME:")
	stage()
	line("WAITFULL:\nmbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r7], %%r6;\n@!%%p2 bra WAITFULL;")
	line("cvt.u64.u32 %%rd2, %%r8;\nshr.u64 %%rd2, %%rd2, 4;\ncvt.u64.u32 %%rd3, %%r9;\nshr.u64 %%rd3, %%rd3, 4;")
	const desc = 1<<62 | 1024>>4<<32 | 1<<16
	line("add.u64 %%rd2, %%rd2, %d;\nadd.u64 %%rd3, %%rd3, %d;", desc, desc)
	line("wgmma.fence.sync.aligned;")
	for range tileK / 16 {
		line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.f16.f16 %s, %%rd2, %%rd3, %%p4, 1, 1, 0, 0;", tileN, list("%f", 0, tileN/2))
		line("add.u64 %%rd2, %%rd2, 2;\nadd.u64 %%rd3, %%rd3, 2;\nsetp.eq.u32 %%p4, %%r0, %%r0;")
	}
	line("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;")
	line("mbarrier.arrive.shared::cta.b64 _, [%%r7+64];")
	line("add.u32 %%r4, %%r4, 1;\nsetp.lt.u32 %%p3, %%r4, %%r2;\n@%%p3 bra CONSUME;")

	// row of C: 64·block + 16·warp + lane/4, columns 2·(lane mod 4) and every 8 on
	line("ld.param.u64 %%rd4, [c];\nsub.u32 %%r20, %%r1, 128;\nshr.u32 %%r21, %%r20, 5;\nand.b32 %%r22, %%r20, 31;\n" +
		"shr.u32 %%r23, %%r22, 2;")
	line("and.b32 %%r24, %%r22, 3;\nmad.lo.u32 %%r25, %%r21, 16, %%r23;\nmad.lo.u32 %%r25, %%r3, %d, %%r25;", tileM)
	line("mul.lo.u32 %%r25, %%r25, %d;\nmad.lo.u32 %%r25, %%r24, 2, %%r25;\nmad.wide.u32 %%rd4, %%r25, 4, %%rd4;", tileN)
	for i := 0; i < tileN/2; i += 2 {
		line("st.global.v2.f32 [%%rd4+%d], {%%f%d, %%f%d};", i/4*32+i/2%2*8*tileN*4, i, i+1)
	}
	line("END:\nret;\n}")
	code := s.String()
	for _, w := range without {
		if !strings.Contains(code, w) {
			panic(w)
		}
		code = strings.ReplaceAll(code, w, "")
	}
	return code
}

func runSpecialised(t *testing.T, cfg sim.Config, tiles int, code string) error {
	const blocks = 2
	rng := ptxtest.Random(t)
	k := tiles * tileK
	a, va := matrix(rng, ir.F16, blocks*tileM*k)
	b, vb := matrix(rng, ir.F16, tileN*k)
	r := newRig(t, cfg, code).bytes(a).bytes(b).out(4 * blocks * tileM * tileN)
	tile := func(i, rows, box int) []byte {
		return encoded(t, tensormap.Map{Type: tensormap.F16, Rank: 2, Address: r.bufs[i], Dims: [5]uint64{uint64(k), uint64(rows)},
			Strides: [4]uint64{uint64(2 * k)}, Box: [5]uint32{tileK, uint32(box)}, Swizzle: tensormap.Swizzle128})
	}
	r.args = []any{tile(0, blocks*tileM, tileM), tile(1, tileN, tileN), r.bufs[2], uint32(tiles)}
	if err := r.launch(sim.Launch{Grid: sim.Dim3{X: blocks}, Block: sim.Dim3{X: 256}}); err != nil {
		return err
	}
	want, size := gemm(blocks*tileM, tileN, k, va, byRows(vb, k, tileN), nil)
	return wrong(r.read(2), ir.F32, want, size)
}

func TestSpecialisedGEMM(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 3
	}
	for _, cfg := range checkedSeeds(seeds) {
		require.NoError(t, runSpecialised(t, cfg, 5, specialised()), "seed %d", cfg.Seed)
	}
}

// What can be left out of the protocol is found out, if not under each schedule.
func TestSpecialisedMutants(t *testing.T) {
	for _, w := range []string{
		"@!%p2 bra WAITEMPTY;", "@!%p2 bra WAITFULL;", "wgmma.fence.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", "bar.sync 0;",
		"wgmma.commit_group.sync.aligned;", "fence.mbarrier_init.release.cluster;", "mbarrier.arrive.shared::cta.b64 _, [%r7+64];",
		"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], 12288;", "xor.b32 %r10, %r6, 1;", "add.u64 %rd2, %rd2, 2;",
	} {
		var err error
		for seed := uint64(0); seed < 20 && err == nil; seed++ {
			err = runSpecialised(t, sim.Config{Checks: sim.AllChecks, Seed: seed}, 5, specialised(w))
		}
		require.Error(t, err, "without %s", w)
	}
}
