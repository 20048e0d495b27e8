package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

func clusters(n, size int) sim.Launch {
	return sim.Launch{Grid: sim.Dim3{X: n}, Block: sim.Dim3{X: 32}, Cluster: sim.Dim3{X: size}}
}

const clusterSync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"

// ranked begins a kernel with mbarriers: %r10 is the block's rank, %r11 the next one's, %r12 sm in the next block; %rd2 is
// where the thread's results go.
func ranked(args int, n string) string {
	return barriers(args, n) + `
	mov.u32 %r10, %cluster_ctarank;
	mov.u32 %r13, %cluster_nctarank;
	add.u32 %r11, %r10, 1;
	rem.u32 %r11, %r11, %r13;
	mapa.shared::cluster.u32 %r12, %r0, %r11;
	mov.u32 %r14, %ctaid.x;
	mad.lo.u32 %r14, %r14, 32, %t;
	mad.wide.u32 %rd2, %r14, 4, %a0;
	mad.lo.u32 %r20, %t, 4, %r0;
	mad.lo.u32 %r21, %t, 4, %r12;
`
}

func TestClusterMemory(t *testing.T) {
	head := ranked(1, "32") + "st.shared.u32 [%r20+128], %r14;\n"
	for name, c := range map[string]struct {
		code string
		want func(block, lane int) int
	}{
		"read of the next block": {clusterSync + "ld.shared::cluster.u32 %r1, [%r21+128];\nst.global.u32 [%rd2], %r1;\n" +
			clusterSync,
			func(b, l int) int { return (b/4*4+(b+1)%4)*32 + l }},
		"generic address": {clusterSync + "cvta.shared.u64 %rd5, sm;\nmapa.u64 %rd6, %rd5, %r11;\nmul.wide.u32 %rd7, %t, 4;\n" +
			"add.u64 %rd6, %rd6, %rd7;\n" +
			"ld.u32 %r1, [%rd6+128];\nst.global.u32 [%rd2], %r1;\n" + clusterSync, func(b, l int) int { return (b/4*4+(b+1)%4)*32 + l }},
		"rank": {"getctarank.shared::cluster.u32 %r1, %r12;\ngetctarank.shared::cluster.u32 %r2, %r0;\n" +
			"mad.lo.u32 %r1, %r2, 100, %r1;\n" +
			"st.global.u32 [%rd2], %r1;\n", func(b, _ int) int { return b%4*100 + (b+1)%4 }},
		"write and remote arrival": {clusterSync + "st.shared::cluster.u32 [%r21+256], %r14;\n" +
			"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];\n" +
			strings.ReplaceAll(await("L", "%r0", "0"), "parity.", "parity.acquire.cluster.") +
			"ld.shared.u32 %r1, [%r20+256];\nst.global.u32 [%rd2], %r1;\n" + clusterSync, func(b,
			l int) int {
			return (b/4*4+(b+3)%4)*32 + l
		}},
		"st.async": {"@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 256;\n" +
			"@!%p15 mbarrier.arrive.shared::cta.b64 _, [%r0];\n" + clusterSync +
			"mad.lo.u32 %r21, %t, 4, %r21;\nst.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 " +
			"[%r21+256], {%r14, %r10}, [%r12];\n" +
			await("L", "%r0", "0") + "mad.lo.u32 %r20, %t, 4, %r20;\nld.shared.v2.u32 {%r1, %r2}, [%r20+256];\n" +
			"mad.lo.u32 %r1, %r2, 10000, %r1;\nst.global.u32 [%rd2], %r1;\n" + clusterSync,
			func(b, l int) int { return (b/4*4+(b+3)%4)*32 + l + (b+3)%4*10000 }},
		"red.async": {"st.shared.u32 [%r20+256], %r10;\n@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;\n" +
			"@!%p15 mbarrier.arrive.shared::cta.b64 _, [%r0];\n" + clusterSync +
			"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r21+256], %r14, [%r12];\n" +
			await("L", "%r0", "0") + "ld.shared.u32 %r1, [%r20+256];\nst.global.u32 [%rd2], %r1;\n" + clusterSync,
			func(b, l int) int { return b%4 + (b/4*4+(b+3)%4)*32 + l }},
		"copy to the next block": {"mov.u32 %r3, 1;\n@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;\n" +
			"@!%p15 mbarrier.arrive.shared::cta.b64 _, [%r0];\nfence.proxy.async;\n" + clusterSync +
			"@%p15 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12+512], [%r0+128], 128, [%r12];\n" +
			await("L", "%r0", "0") + "ld.shared.u32 %r1, [%r20+512];\nst.global.u32 [%rd2], %r1;\n" + clusterSync,
			func(b, l int) int { return (b/4*4+(b+3)%4)*32 + l }},
	} {
		for _, cfg := range checkedSeeds(8) {
			r := newRig(t, cfg, head+c.code+"ret;\n}\n").out(8 * 128)
			require.NoError(t, r.launch(clusters(8, 4)), "%s, seed %d", name, cfg.Seed)
			for i := range 256 {
				require.Equal(t, float64(c.want(i/32, i%32)), number(r.read(0), ir.S32, i), "%s: block %d lane %d", name, i/32, i%32)
			}
		}
		if strings.Contains(c.code, "L:") { // without the wait
			code := strings.ReplaceAll(strings.ReplaceAll(c.code, "@!%p14 bra", "//"), "mbarrier.try_wait", "//")
			var f *sim.Fault
			require.ErrorAs(t, newRig(t, sim.Config{Checks: sim.AllChecks}, head+code+"ret;\n}\n").out(8*128).launch(clusters(8, 4)),
				&f, name)
			require.Contains(t, []sim.FaultKind{sim.Race, sim.AsyncHazard, sim.Uninitialized}, f.Kind, "%s: %v", name, f)
		}
	}
	run := func(code string) error {
		return newRig(t, sim.Config{Checks: sim.AllChecks}, head+code+"ret;\n}\n").out(8 * 128).launch(clusters(8, 4))
	}
	faults(t, run("ld.shared::cluster.u32 %r1, [%r21+128];\nst.global.u32 [%rd2], %r1;\n"+clusterSync), sim.Race)
	faults(t, run("mapa.shared::cluster.u32 %r12, %r0, 4;\n"), sim.BadOperand)
	faults(t, run("ld.shared::cluster.u32 %r1, [%r21+67108864];\n"), sim.OutOfBounds)
	faults(t, run("mapa.u64 %rd6, %a0, %r11;\n"), sim.BadOperand)
}

func TestSetmaxnreg(t *testing.T) {
	// three warpgroups of 168 registers: one gives 144 back, two take 72 each
	kernel := func(first, others string) string {
		return strings.Replace(prelude(0, 0), "{\n", ".maxntid 384, 1, 1\n.minnctapersm 1\n{\n", 1) + `
	setp.lt.u32 %p0, %t, 128;
	@%p0 bra ONE;
	` + others + `
	ret;
ONE:
	` + first + `
	ret;
}
`
	}
	run := func(first, others string) error {
		return newRig(t, sim.Config{Checks: sim.AllChecks}, kernel(first, others)).launch(threads(384))
	}
	const dec, inc = "setmaxnreg.dec.sync.aligned.u32 24;", "setmaxnreg.inc.sync.aligned.u32 240;"
	for seed := range uint64(10) {
		require.NoError(t, newRig(t, sim.Config{Checks: sim.AllChecks, Seed: seed}, kernel(dec, inc)).launch(threads(384)))
	}
	f := faults(t, run("", inc), sim.Deadlock)
	require.Contains(t, f.Error(), "registers that other warps give back")
	faults(t, run(dec+"\nsetmaxnreg.dec.sync.aligned.u32 32;", inc), sim.BadOperand)
	faults(t, run(dec, inc+"\nsetmaxnreg.inc.sync.aligned.u32 232;"), sim.BadOperand)
	g := sim.New(sim.Config{})
	m, err := g.Load(module(t, ".version 8.0\n.target sm_90a\n.address_size 64\n"+kernel("setmaxnreg.dec.sync.aligned.u32 28;",
		"")))
	require.NoError(t, err)
	_, err = m.Kernel("k")
	require.ErrorIs(t, err, compute.ErrArgument)
}

// Instructions that change no result here, and one that there is none of.
func TestHints(t *testing.T) {
	r := newRig(t, sim.Config{Checks: sim.AllChecks}, prelude(0, 1)+`
	griddepcontrol.wait;
	griddepcontrol.launch_dependents;
	nanosleep.u32 100;
	createpolicy.fractional.L2::evict_first.b64 %rd1, 0f3F800000;
	prefetch.global.L2 [%a0+1048576];
	ret;
}
`).out(4)
	require.NoError(t, r.launch(threads(32)))
	g := sim.New(sim.Config{})
	m, err := g.Load(module(t, ".version 8.1\n.target sm_90\n.address_size 64\n"+prelude(0,
		1)+"multimem.red.relaxed.sys.global.add.u32 [%a0], %t;\nret;\n}\n"))
	require.NoError(t, err)
	_, err = m.Kernel("k")
	require.ErrorIs(t, err, compute.ErrUnsupported)
}
