package sim_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/sim"
)

// mistaken reads a word before x, one of y that nothing has written, and stores to shared memory what others read, with no barrier.
const mistaken = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
	.reg .b32 %r<9>; .reg .b64 %rd<9>;
	.shared .align 4 .b8 s[256];
	ld.param.u64 %rd1, [x];
	ld.param.u64 %rd2, [y];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.u64 %rd4, %rd1, %rd3;
	add.u64 %rd5, %rd2, %rd3;
	.loc 1 10 1
	ld.global.u32 %r2, [%rd4+-4];
	.loc 1 11 1
	ld.global.u32 %r3, [%rd5];
	add.u32 %r2, %r2, %r3;
	mov.u64 %rd6, s;
	add.u64 %rd7, %rd6, %rd3;
	st.shared.u32 [%rd7], %r2;
	xor.b32 %r4, %r1, 32;
	mul.wide.u32 %rd3, %r4, 4;
	add.u64 %rd7, %rd6, %rd3;
	.loc 1 3 1
	.loc 1 12 1, function_name $f, inlined_at 1 3 1
	ld.shared.u32 %r5, [%rd7];
	.loc 1 13 1
	st.global.u32 [%rd5], %r5;
	ret;
}
.file 1 "k.cu"
`

// TestReport: with a Report, a kernel goes on after what can be gone on after, its results are what is left of them, and the fault says
// where in the source it is. Without, or when it says no, the first one ends the launch.
func TestReport(t *testing.T) {
	run := func(report func(*sim.Fault) bool) ([]uint32, error) {
		g := sim.New(sim.Config{Checks: sim.AllChecks, Report: report})
		m, err := g.Load(module(t, mistaken))
		require.NoError(t, err)
		k, err := m.Kernel("k")
		require.NoError(t, err)
		x := upload(t, g, make([]uint32, 64))
		y, err := g.Alloc(256)
		require.NoError(t, err)
		require.NoError(t, g.Write(y+4, make([]byte, 252)))
		require.NoError(t, g.Label(x, "x"))
		require.Error(t, g.Label(x+4, "x"))
		l := threads(64)
		l.Params, err = k.Pack(x, y)
		require.NoError(t, err)
		if _, err = g.Run(context.Background(), k, l); err != nil {
			return nil, err
		}
		return words(t, g, y, 64), nil
	}
	var all []*sim.Fault
	out, err := run(func(f *sim.Fault) bool {
		all = append(all, f)
		return true
	})
	require.NoError(t, err)
	require.Len(t, out, 64)
	first := map[sim.FaultKind]*sim.Fault{}
	for _, f := range all {
		if first[f.Kind] == nil {
			first[f.Kind] = f
		}
	}
	require.Len(t, first, 3, "%v", all)
	f := first[sim.OutOfBounds]
	require.Equal(t, "k.cu:10:1", f.Source[0].String())
	require.Equal(t, 4, f.Size)
	require.False(t, f.Write)
	require.Contains(t, f.Error(), "before x of 256 bytes")
	f = first[sim.Race]
	require.Equal(t, "k.cu:11:1", f.Source[0].String(), "the store, of the second warp")
	require.True(t, f.Write)
	require.Len(t, f.Other.Source, 2, "the first warp's load")
	require.Contains(t, f.Error(), "(k.cu:12:1, inlined at k.cu:3:1)")
	require.False(t, f.Other.Write)
	f = first[sim.Uninitialized]
	require.Equal(t, "k.cu:12:1", f.Other.Source[0].String(), "the load of what nobody has written yet")
	require.Equal(t, 4, f.Other.Size)
	require.NotZero(t, f.Other.Addr)

	_, err = run(func(*sim.Fault) bool { return false })
	faults(t, err, sim.OutOfBounds)
	_, err = run(nil)
	faults(t, err, sim.OutOfBounds)
}
