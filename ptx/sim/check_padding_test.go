package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/sim"
)

// TestPadding copies eight bytes of which four have a value, as compilers copy structures: those keep it, the others have none.
func TestPadding(t *testing.T) {
	copied := func(load string) string {
		return body(`
	.local .align 8 .b8 from[8];
	.local .align 8 .b8 to[8];
	mov.u32 %r1, 7;
	st.local.u32 [from], %r1;
	ld.local.u64 %rd1, [from];
	st.local.u64 [to], %rd1;
	` + load + `
	setp.eq.u32 %p1, %r2, 0; // decides something
	@%p1 add.u32 %r2, %r2, 1;
	st.global.u32 [%mine], %r2;`)
	}
	l := sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: 32}}
	out, _, err := launch(t, sim.Config{Checks: sim.AllChecks}, copied("ld.local.u32 %r2, [to];"), l, 32)
	require.NoError(t, err)
	require.EqualValues(t, 7, out[31])
	for _, load := range []string{
		"ld.local.u32 %r2, [to+4];",
		"ld.local.u16 %r2, [to+6];",
		"add.u64 %rd1, %rd1, 0; st.local.u64 [to], %rd1; ld.local.u32 %r2, [to];", // results of arithmetic have a value or none
	} {
		_, _, err := launch(t, sim.Config{Checks: sim.AllChecks}, copied(load), l, 32)
		faults(t, err, sim.Uninitialized)
	}
}
