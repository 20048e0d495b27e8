package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

const (
	bulkLoad = `
	@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 512;
	@%p15 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0], 512, [%r0];
`
	bulkStore = `
	@%p15 cp.async.bulk.global.shared::cta.bulk_group [%a1], [%r1], 512;
	@%p15 cp.async.bulk.commit_group;
`
	bulkWait = "@%p15 cp.async.bulk.wait_group 0;\n"
)

// doubled adds each thread's words of the tile to themselves.
const doubled = `
	mad.lo.u32 %r2, %t, 16, %r1;
	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
	add.u32 %r4, %r4, %r4;
	add.u32 %r5, %r5, %r5;
	add.u32 %r6, %r6, %r6;
	add.u32 %r7, %r7, %r7;
	st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};
`

func bulkKernel(parts ...string) string {
	return barriers(2, "1") + "add.u32 %r1, %r0, 1024;\n" + strings.Join(parts, "") + "ret;\n}\n"
}

func TestBulk(t *testing.T) {
	rng := ptxtest.Random(t)
	src := make([]byte, 512)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	want := make([]byte, 512)
	for i := range 128 {
		put(want, ir.U32, i, uint64(2*uint32(int32(number(src, ir.S32, i)))))
	}
	const fence, sync = "fence.proxy.async.shared::cta;\n", "bar.sync 0;\n"
	wait := await("L", "%r0", "0")
	run := func(cfg sim.Config, parts ...string) ([]byte, error) {
		r := newRig(t, cfg, bulkKernel(parts...)).bytes(src).bytes(make([]byte, 512))
		if err := r.launch(threads(32)); err != nil {
			return nil, err
		}
		return r.read(1), nil
	}
	for _, cfg := range checkedSeeds(20) {
		got, err := run(cfg, bulkLoad, wait, doubled, fence, sync, bulkStore, bulkWait)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = run(cfg, bulkLoad, wait, doubled, sync, fence, bulkStore, "@%p15 cp.async.bulk.wait_group.read 0;\n")
		require.NoError(t, err, "the issuer's fence serves too, and so does .read at the end")
		require.Equal(t, want, got)
		if cfg.Checks == 0 {
			continue
		}
		bad := func(kinds []sim.FaultKind, parts ...string) {
			_, err := run(cfg, parts...)
			var f *sim.Fault
			require.ErrorAs(t, err, &f)
			require.Contains(t, kinds, f.Kind, "%v", err)
		}
		hazard, proxy := []sim.FaultKind{sim.AsyncHazard}, []sim.FaultKind{sim.ProxyFence}
		either := []sim.FaultKind{sim.AsyncHazard, sim.Race, sim.Deadlock}
		bad(either, bulkLoad, doubled, fence, sync, bulkStore, bulkWait)       // nobody waits for the load
		bad(either, bulkLoad, "@%p15 bra L;\nbra M;\n", wait, "M:\n", doubled) // only one does
		bad(proxy, bulkLoad, wait, doubled, sync, bulkStore, bulkWait)         // no fence
		bad(either, bulkLoad, wait, doubled, fence, bulkStore, bulkWait)       // no barrier
		bad(hazard, bulkLoad, wait, doubled, fence, sync, bulkStore)           // the store is not awaited
		bad(hazard, bulkLoad, wait, doubled, fence, sync, bulkStore, "@%p15 st.shared.u32 [%r1], 0;\n", bulkWait)
		bad(hazard, bulkLoad, wait, fence, sync, bulkStore, "@%p15 ld.global.u32 %r9, [%a1];\n", bulkWait)
		bad(hazard, bulkLoad) // the block ends first
		_, err = run(cfg, bulkLoad, wait, doubled, fence, sync, bulkStore, "@%p15 cp.async.bulk.wait_group.read 0;\n",
			"@%p15 st.shared.u32 [%r1], 0;\n",
			bulkWait, "@%p15 ld.global.u32 %r9, [%a1];\n")
		require.NoError(t, err)
	}
	checks := sim.Config{Checks: sim.AllChecks}
	_, err := run(checks, strings.Replace(bulkLoad, "512;", "496;", 1), wait)
	faults(t, err, sim.BadOperand) // more bytes than announced
	_, err = run(checks, strings.Replace(bulkLoad, "512;", "528;", 1), wait)
	faults(t, err, sim.Deadlock) // fewer
	_, err = run(checks, strings.Replace(bulkLoad, "[%a0], 512", "[%a0], 504", 1))
	require.Contains(t, faults(t, err, sim.BadOperand).Detail, "multiple of 16")
	_, err = run(checks, strings.Replace(bulkLoad, "[%r1]", "[%r1+8]", 1))
	faults(t, err, sim.Misaligned)
	_, err = run(checks, strings.Replace(bulkLoad, "[%a0]", "[%a0+16]", 1))
	faults(t, err, sim.OutOfBounds)
	_, err = run(checks, "@%p15 cp.async.bulk.prefetch.L2.global [%a0+1048576], 64;\n")
	require.NoError(t, err, "prefetches may miss")
	// without the fence after mbarrier.init
	code := strings.Replace(bulkKernel(bulkLoad, wait), "@%p15 fence.mbarrier_init.release.cluster;\n", "", 1)
	faults(t, newRig(t, checks, code).bytes(src).bytes(src).launch(threads(32)), sim.ProxyFence)
}

func TestBulkReduce(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, c := range []struct {
		op string
		t  ir.Type
		do func(a, b float64) float64
	}{
		{"add", ir.S32, func(a, b float64) float64 { return float64(int32(int64(a + b))) }}, {"min", ir.S32, func(a,
			b float64) float64 {
			return min(a, b)
		}},
		{"max", ir.S32, func(a, b float64) float64 { return max(a, b) }}, {"add", ir.F32, func(a,
			b float64) float64 {
			return float64(float32(a + b))
		}},
		{"max", ir.F16, func(a, b float64) float64 { return max(a, b) }},
	} {
		n := 512 / c.t.Size()
		a, va := matrix(rng, c.t, n)
		b, vb := matrix(rng, c.t, n)
		store := fmt.Sprintf("@%%p15 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s.%v [%%a1], [%%r1], 512;\n"+
			"@%%p15 cp.async.bulk.commit_group;\n", c.op, c.t)
		for _, cfg := range checkedSeeds(3) {
			r := newRig(t, cfg, bulkKernel(bulkLoad, await("L", "%r0", "0"), store, bulkWait)).bytes(a).bytes(b)
			require.NoError(t, r.launch(threads(32)))
			for i := range n {
				require.Equal(t, c.do(va[i], vb[i]), number(r.read(1), c.t, i), "%s %v", c.op, c.t)
			}
		}
	}
}
