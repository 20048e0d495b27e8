//go:build hardware

package cuda

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// everyKernel loads all kernels of the catalogue.
func everyKernel(t *testing.T, d *Device) map[string]*Kernel {
	all := map[string]*Kernel{}
	for _, f := range kit.Families() {
		m, err := d.loader.families[f.Name].get(d.loader)
		require.NoError(t, err, f.Name)
		for _, k := range f.Kernels {
			all[f.Name+"/"+k.Name] = m.kernels[k.Name]
		}
	}
	return all
}

// What the driver's compiler made of every kernel: no spills, and as many blocks at once as the analyser says.
func TestHardwareAttributes(t *testing.T) {
	d := openHardware(t)
	all := everyKernel(t, d)
	require.NotEmpty(t, all)
	blocks := map[string][3]uint32{}
	for _, f := range kit.Families() {
		for _, k := range f.Kernels {
			blocks[f.Name+"/"+k.Name] = [3]uint32{uint32(k.Block[0]), uint32(k.Block[1]), uint32(k.Block[2])}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		k := all[name]
		a := k.Attributes()
		o, err := k.Occupancy(blocks[name], 0)
		require.NoError(t, err, name)
		t.Logf("%-44s %3d registers, %6d bytes shared, %3d local, %2d blocks at once, %3.0f %% of threads", name, a.Registers,
			a.Shared, a.Local, o.Blocks, 100*o.Share)
		if !onSoftware { // which knows neither
			require.Zero(t, a.Local, "%s spills", name)
			require.Positive(t, a.Registers, name)
		}
		require.Positive(t, o.Blocks, name)
		if o.Model == nil {
			t.Logf("the analyser does not know %s", d.Info().Target())
			continue
		}
		require.Equal(t, o.Model.Blocks, o.Blocks, "%s: the analyser's occupancy, limited by %v, is not the driver's", name, o.Model)
	}
}
