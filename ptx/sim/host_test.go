package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// TestCopyCarriesWhatIsKnown copies memory of which only a part has been written.
func TestCopyCarriesWhatIsKnown(t *testing.T) {
	g := sim.New(sim.Config{Checks: sim.AllChecks})
	a, err := g.Alloc(100)
	require.NoError(t, err)
	b, err := g.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, g.Write(a+33, []byte{1, 2, 3}))
	require.NoError(t, g.Copy(b+7, a+3, 93))
	got := make([]byte, 3)
	require.NoError(t, g.Read(got, b+37))
	require.Equal(t, []byte{1, 2, 3}, got)
	var f *sim.Fault
	require.ErrorAs(t, g.Read(got, b+36), &f)
	require.Equal(t, sim.Uninitialized, f.Kind)

	require.ErrorAs(t, g.Copy(b, a+1, 100), &f)
	require.Equal(t, sim.OutOfBounds, f.Kind)
	require.ErrorAs(t, g.Copy(b+1, a, 100), &f)
	require.Equal(t, sim.OutOfBounds, f.Kind)
	require.NoError(t, g.Copy(a+50, a, 50))
	require.ErrorIs(t, g.Copy(a+49, a, 50), compute.ErrArgument)
	require.ErrorIs(t, g.Copy(a, a+49, 50), compute.ErrArgument)
	require.NoError(t, g.Copy(a, a, 0))
}

func TestUnloadFreesVariables(t *testing.T) {
	for _, checks := range []sim.Checks{0, sim.AllChecks} {
		g := sim.New(sim.Config{Checks: checks})
		m := &ir.Module{Version: ir.Version{Major: 7, Minor: 0}, Target: ir.Target{SM: 80}, AddressSize: 64,
			Vars: []ir.Var{{Name: "table", Space: ir.GlobalSpace, Linkage: ir.Visible, Type: ir.U32, Dims: []int{8}}}}
		mod, err := g.Load(m)
		require.NoError(t, err)
		at, n, err := mod.Global("table")
		require.NoError(t, err)
		require.Equal(t, 32, n)
		require.NoError(t, g.Read(make([]byte, 32), at))
		g.Unload(mod)
		require.ErrorContains(t, g.Read(make([]byte, 32), at), "freed")
	}
}

// TestBase gives two GPUs addresses that differ.
func TestBase(t *testing.T) {
	g, h := sim.New(sim.Config{}), sim.New(sim.Config{Base: 0x80 << 40})
	a, err := g.Alloc(8)
	require.NoError(t, err)
	b, err := h.Alloc(8)
	require.NoError(t, err)
	require.Greater(t, b, uint64(0x80)<<40)
	require.NoError(t, g.Write(a, []byte{1}))
	require.Error(t, h.Write(a, []byte{1}))
}
