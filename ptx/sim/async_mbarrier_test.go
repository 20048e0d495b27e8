package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// barriers begins a kernel with mbarriers at sm, sm+8 and sm+16, initialised for n arrivals each by thread 0.
func barriers(args int, n string) string {
	return prelude(4096, args) + `
	mov.u32 %r0, sm;
	setp.eq.u32 %p15, %t, 0;
	@%p15 mbarrier.init.shared::cta.b64 [%r0], ` + n + `;
	@%p15 mbarrier.init.shared::cta.b64 [%r0+8], ` + n + `;
	@%p15 mbarrier.init.shared::cta.b64 [%r0+16], ` + n + `;
	@%p15 fence.mbarrier_init.release.cluster;
	bar.sync 0;
`
}

// await waits for the end of the phase with a parity.
func await(label, addr, parity string) string {
	return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p14, [" + addr + "], " + parity + ";\n@!%p14 bra " + label + ";\n"
}

// An mbarrier orders what came before an arrival and what comes after the wait, in both kinds of waits.
func TestMbarrierExchange(t *testing.T) {
	write := "mad.lo.u32 %r1, %t, 4, %r0;\nst.shared.u32 [%r1+128], %t;\n"
	read := "xor.b32 %r2, %t, 33;\nmad.lo.u32 %r2, %r2, 4, %r0;\nld.shared.u32 %r3, [%r2+128];\n" +
		"mad.wide.u32 %rd1, %t, 4, %a0;\nst.global.u32 [%rd1], %r3;\nret;\n}\n"
	for name, code := range map[string]string{
		"state": write + "mbarrier.arrive.shared::cta.b64 %rd0, [%r0];\nL:\n" +
			"mbarrier.try_wait.shared::cta.b64 %p1, [%r0], %rd0;\n@!%p1 bra L;\n" + read,
		"test": write + "mbarrier.arrive.shared.b64 %rd0, [%r0];\nL:\nmbarrier.test_wait.shared.b64 %p1, [%r0], %rd0;\n" +
			"@!%p1 bra L;\n" + read,
		"parity": write + "mbarrier.arrive.shared::cta.b64 _, [%r0];\n" + await("L", "%r0", "0") + read,
		"generic": write + "cvta.shared.u64 %rd5, sm;\nmbarrier.arrive.b64 %rd0, [%rd5];\nL:\n" +
			"mbarrier.try_wait.b64 %p1, [%rd5], %rd0, 1000;\n" +
			"@!%p1 bra L;\n" + read,
		"second phase": "mbarrier.arrive.shared::cta.b64 _, [%r0];\n" + await("L", "%r0", "0") + write +
			"mbarrier.arrive.shared::cta.b64 _, [%r0], 1;\n" + await("M", "%r0", "1") + read,
	} {
		for _, cfg := range checkedSeeds(5) {
			r := newRig(t, cfg, barriers(1, "64")+code).out(256)
			require.NoError(t, r.launch(threads(64)), name)
			for i := range 64 {
				require.Equal(t, float64(i^33), number(r.read(0), ir.S32, i), name)
			}
			if cfg.Checks == 0 {
				continue
			}
			without := code // the waits it is a race
			for _, w := range []string{"mbarrier.try_wait", "mbarrier.test_wait", "@!%p1 bra", "@!%p14 bra"} {
				without = strings.ReplaceAll(without, w, "//")
			}
			err := newRig(t, cfg, barriers(1, "64")+without).out(256).launch(threads(64))
			faults(t, err, sim.Race)
		}
	}
}

func TestMbarrierFaults(t *testing.T) {
	run := func(code string) error {
		return newRig(t, sim.Config{Checks: sim.AllChecks}, barriers(1, "2")+code+"ret;\n}\n").bytes(make([]byte,
			64)).launch(threads(2))
	}
	const arrive = "mbarrier.arrive.shared::cta.b64 _, [%r0];\n"
	bad := func(code, want string, kind sim.FaultKind) {
		f := faults(t, run(code), kind)
		require.Contains(t, f.Detail, want)
	}
	require.NoError(t, run(arrive+arrive), "two whole phases")
	bad("mbarrier.arrive.shared::cta.b64 _, [%r0], 2;\n@%p15 mbarrier.arrive.shared::cta.b64 _, [%r0], 3;\n",
		"beyond its count", sim.BadOperand)
	require.NoError(t, run("mbarrier.arrive.shared::cta.b64 _, [%r0], 2;\n@%p15 mbarrier.arrive.shared::cta.b64 _, [%r0], 2;\n"))
	bad("@%p15 mbarrier.arrive.noComplete.shared::cta.b64 %rd0, [%r0], 2;\n", "noComplete", sim.BadOperand)
	require.NoError(t, run("@%p15 mbarrier.arrive.noComplete.shared::cta.b64 %rd0, [%r0], 1;\n"))
	bad("mbarrier.arrive.shared::cta.b64 _, [%r0+24];\n", "has not been initialised", sim.BadOperand)
	bad("@%p15 mbarrier.init.shared::cta.b64 [%r0], 1;\n", "already", sim.BadOperand)
	require.NoError(t, run("@%p15 mbarrier.inval.shared::cta.b64 [%r0];\n@%p15 mbarrier.init.shared::cta.b64 [%r0], 1;\n"))
	bad("@%p15 mbarrier.inval.shared::cta.b64 [%r0];\nbar.sync 0;\n"+arrive, "has not been initialised", sim.BadOperand)
	bad("@%p15 st.shared.u32 [%r0], 0;\nbar.sync 0;\n"+arrive, "written over", sim.BadOperand)
	bad("@%p15 mbarrier.init.shared::cta.b64 [%r0+24], 0;\n", "count 0", sim.BadOperand)
	bad("@%p15 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], 4;\n"+arrive, "4 bytes more have come", sim.BadOperand)
	require.NoError(t, run("@%p15 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], 4;\n"+
		"@%p15 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 4;\n"+
		arrive+await("L", "%r0", "0")))
	bad("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 1048575;\n", "tx-count", sim.BadOperand)
	faults(t, run("@%p15 mbarrier.init.shared::cta.b64 [%r0+28], 1;\n"), sim.Misaligned)
	faults(t, run("@%p15 mbarrier.init.shared::cta.b64 [%r0+4096], 1;\n"), sim.OutOfBounds)
	faults(t, run("mbarrier.arrive.b64 _, [%a0];\n"), sim.BadOperand)
	bad("mbarrier.arrive.shared::cta.b64 %rd0, [%r0];\n"+arrive+arrive+"bar.sync 0;\n"+
		"mbarrier.test_wait.shared::cta.b64 %p0, [%r0], %rd0;\n",
		"only the current phase", sim.BadOperand)
	// a phase that cannot come: the report names instruction, mbarrier and state
	f := faults(t, run("@%p15 "+arrive+"@%p15 bra L;\nret;\n"+await("L", "%r0", "0")), sim.Deadlock)
	require.Contains(t, f.Error(), "mbarrier at shared address 0x0")
	require.Contains(t, f.Error(), "1 of 2 arrivals")
	require.Contains(t, f.Error(), "mbarrier.try_wait")
	// the wrong parity: thread 1's second phase does not come
	faults(t, run(arrive+await("L", "%r0", "0")+await("M", "%r0", "1")), sim.Deadlock)
	// an arrival dropped is missing from the next phase
	require.NoError(t, run("@%p15 mbarrier.arrive_drop.shared::cta.b64 _, [%r0];\n@!%p15 "+arrive+await("L", "%r0", "0")+
		"@!%p15 "+arrive+await("M", "%r0", "1")))
	// initialised and used without a barrier between
	err := newRig(t, sim.Config{Checks: sim.AllChecks}, strings.Replace(barriers(1, "64"), "bar.sync 0;", "",
		1)+arrive+"ret;\n}\n").
		bytes(make([]byte, 64)).launch(threads(64))
	require.Error(t, err)
}

func TestPendingCount(t *testing.T) {
	code := barriers(1, "5") + `
	mbarrier.arrive.shared::cta.b64 _, [%r0], 2;
	mbarrier.arrive.shared::cta.b64 %rd0, [%r0];
	mbarrier.pending_count.b64 %r1, %rd0;
	st.global.u32 [%a0], %r1;
	ret;
}
`
	r := newRig(t, sim.Config{Checks: sim.AllChecks}, code).out(4)
	require.NoError(t, r.launch(threads(1)))
	require.Equal(t, 3.0, number(r.read(0), ir.S32, 0))
}

// cp.async.mbarrier.arrive: one warp copies, the other waits for the mbarrier.
func TestCpAsyncMbarrier(t *testing.T) {
	code := func(arrive, count, wait string) string {
		return barriers(2, count) + `
	mad.lo.u32 %r1, %t, 16, %r0;
	setp.ge.u32 %p0, %t, 32;
	@%p0 bra READ;
	mad.wide.u32 %rd1, %t, 16, %a0;
	cp.async.cg.shared.global [%r1+128], [%rd1], 16;
	` + arrive + `
	ret;
READ:
	` + wait + `
	ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1-384];
	mad.wide.u32 %rd2, %t, 16, %a1;
	st.global.v4.u32 [%rd2-512], {%r2, %r3, %r4, %r5};
	ret;
}
`
	}
	rng := ptxtest.Random(t)
	src := make([]byte, 512)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	const noinc = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r0];"
	const inc = "cp.async.mbarrier.arrive.shared::cta.b64 [%r0];\nmbarrier.arrive.shared::cta.b64 _, [%r0];"
	for _, cfg := range checkedSeeds(20) {
		for _, arrive := range []string{noinc, inc} {
			r := newRig(t, cfg, code(arrive, "32", await("L", "%r0", "0"))).bytes(src).out(512)
			require.NoError(t, r.launch(threads(64)))
			require.Equal(t, src, r.read(1))
			if cfg.Checks != 0 {
				require.Error(t, newRig(t, cfg, code(arrive, "32", "")).bytes(src).out(512).launch(threads(64)), "no wait")
			}
		}
		if cfg.Checks != 0 { // an arrival that does not wait for the copies
			err := newRig(t, cfg, code("mbarrier.arrive.shared::cta.b64 _, [%r0];", "32", await("L", "%r0",
				"0"))).bytes(src).out(512).launch(threads(64))
			faults(t, err, sim.AsyncHazard)
		}
	}
}
