package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/sim"
)

// TestStretches: instructions that are executed together, which those of a launch with counters never are, compute and count the same as one
// by one: where lanes part, where they come into the middle of a stretch, and where a register has no value.
func TestStretches(t *testing.T) {
	code := body(`
	mov.u32 %r1, 0;
	mov.u32 %r2, 5;
	and.b32 %r3, %t, 3;
LOOP:
	add.u32 %r1, %r1, %r2;
	mul.lo.u32 %r2, %r2, 3;
	cvt.rn.f32.u32 %f1, %r2;
	fma.rn.f32 %f2, %f1, %f1, %f1;
	fma.rn.f32 %f3, %f2, %f1, %f2;
	fma.rn.f32 %f1, %f3, %f2, %f1;
	setp.lt.u32 %p1, %r3, 2;
	@%p1 bra MIDDLE;
	xor.b32 %r1, %r1, %t;
	add.u32 %r2, %r2, 7;
MIDDLE:
	mov.b32 %r4, %f1;
	xor.b32 %r1, %r1, %r4;
	selp.u32 %r5, %r1, %r9, %p1;
	selp.u32 %r6, %r9, %r1, %p1;
	selp.u32 %r1, %r5, %r6, %p1;
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p2, %r3, 9;
	@%p2 bra LOOP;
	st.global.u32 [%mine], %r1;`)
	for _, checks := range []sim.Checks{0, sim.AllChecks} {
		for seed := range uint64(4) {
			want, one, err := launch(t, sim.Config{Checks: checks, Seed: seed, Counters: true}, code, threads(70), 128)
			require.NoError(t, err)
			got, all, err := launch(t, sim.Config{Checks: checks, Seed: seed}, code, threads(70), 128)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, one.Instructions, all.Instructions)
			require.Len(t, all.Lines, len(one.Lines))
			for i, line := range all.Lines {
				require.Equal(t, one.Lines[i].Instructions, line.Instructions, line.Instr)
				require.Equal(t, one.Lines[i].Lanes, line.Lanes, line.Instr)
			}
		}
	}
	faultOf := func(code string) {
		f := fault(t, sim.Config{Checks: sim.AllChecks}, sim.Uninitialized, body(code), threads(32))
		require.Contains(t, f.Detail, "%r9")
	}
	faultOf("mov.u32 %r1, 1;\nadd.u32 %r2, %r1, %r9;\nadd.u32 %r3, %r2, %r1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra L;\nL:")
	faultOf("mov.u32 %r1, 1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\nmov.b32 %r2, %r9;\nadd.u32 %r3, %r2, %r1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra L;\nL:")
}
