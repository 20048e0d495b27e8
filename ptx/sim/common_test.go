package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/sim"
)

// The name of a variable in a generic access means its own space, as for ptxas.
func TestNamedGeneric(t *testing.T) {
	for _, cfg := range checkedSeeds(1) {
		got, _, err := launch(t, cfg, `.shared .align 8 .b32 pad[4]; .shared .align 8 .b32 s[4]; .global .u32 g; .const .u32 c = 7;`+body(`
			.local .align 4 .b32 depot[2];
			mov.u32 %r1, 5; st.u32 [s+4], %r1; ld.u32 %r2, [s+4]; atom.add.u32 %r3, [s+4], 3; ld.shared.u32 %r4, [s+4];
			st.u32 [g], 9; ld.global.u32 %r5, [g]; ld.u32 %r6, [c]; st.u32 [depot+4], 11; ld.local.u32 %r7, [depot+4];
			st.global.v4.u32 [%out], {%r2, %r3, %r4, %r5}; st.global.v2.u32 [%out+16], {%r6, %r7};`), threads(1), 6)
		require.NoError(t, err)
		require.Equal(t, []uint32{5, 5, 8, 9, 7, 11}, got)
	}
}

// The carry that a subtraction leaves to an addition is that there was no borrow.
func TestCarryOfSubtraction(t *testing.T) {
	got, _, err := launch(t, sim.Config{}, body(`
		mov.u32 %r1, 3; sub.cc.u32 %r2, %r1, 5; addc.u32 %r3, 0, 0; sub.cc.u32 %r2, %r1, 3; addc.u32 %r4, 0, 0;
		sub.cc.u32 %r2, %r1, 5; subc.u32 %r5, 0, 0; add.cc.u32 %r2, %r1, -1; subc.u32 %r6, 0, 0;
		st.global.v4.u32 [%out], {%r3, %r4, %r5, %r6};`), threads(1), 4)
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1, 1<<32 - 1, 0}, got)
}

// Blocks meet at a counter in the workspace, as grid.sync of cooperative groups lets them: each adds one, the first what sets the
// highest bit when all are there. Other launches have no workspace.
func TestCooperative(t *testing.T) {
	meet := body(`
		mov.u32 %r1, %envreg2; mov.u32 %r2, %envreg1; mov.b64 %rd1, {%r1, %r2};
		setp.ne.u64 %p1, %rd1, 0; @%p1 bra there; trap; there:
		mov.u32 %r3, %ctaid.x; mov.u32 %r4, %nctaid.x;
		mad.wide.u32 %rd2, %r3, 4, %out; st.global.u32 [%rd2], %r3;
		bar.sync 0; setp.ne.u32 %p2, %t, 0; @%p2 bra met;
		mov.u32 %r5, 1; setp.eq.u32 %p3, %r3, 0; sub.u32 %r6, 0x80000001, %r4; selp.b32 %r5, %r6, %r5, %p3;
		fence.sc.gpu; atom.add.release.gpu.u32 %r7, [%rd1+4], %r5;
		spin: ld.acquire.gpu.u32 %r8, [%rd1+4]; xor.b32 %r9, %r8, %r7; setp.ge.s32 %p4, %r9, 0; @%p4 bra spin;
		fence.sc.gpu;
		met: bar.sync 0;
		sub.u32 %r10, %r4, %r3; sub.u32 %r10, %r10, 1; mad.wide.u32 %rd3, %r10, 4, %out; ld.global.u32 %r11, [%rd3];
		add.u32 %r12, %r4, %r3; mad.wide.u32 %rd4, %r12, 4, %out; setp.eq.u32 %p5, %t, 0; @%p5 st.global.u32 [%rd4], %r11;`)
	for _, cfg := range append(checkedSeeds(2), sim.Config{Workers: 4}) {
		const blocks = 12
		l := sim.Launch{Grid: sim.Dim3{X: blocks}, Block: sim.Dim3{X: 1}, Cooperative: true}
		got, _, err := launch(t, cfg, meet, l, 2*blocks)
		require.NoError(t, err)
		for i := range blocks {
			require.EqualValues(t, blocks-1-i, got[blocks+i])
		}
	}
	fault(t, sim.Config{}, sim.Trap, meet, threads(1))
	l := sim.Launch{Grid: sim.Dim3{X: 1 << 20}, Block: sim.Dim3{X: 1}, Cooperative: true}
	_, _, err := launch(t, sim.Config{}, meet, l, 2)
	require.ErrorContains(t, err, "resident")
}
