package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// The driver and the analyser agree about a kernel of some families, as it is and freed of its required block, with random blocks
// and shared memory, on every kind of multiprocessor that it is for.
func TestOccupancyAgrees(t *testing.T) {
	if testing.Short() { // for the race detector
		t.Skip("starts no goroutines")
	}
	r := randomSource(t)
	compared := 0
	architectures := []int{80, 86, 89, 90, 100, 120}
	analysed := map[string]int{} // where the analyser itself is asked: it takes its time
	var chosen []*kit.Kernel
	families := kit.Families()
	for _, i := range r.Perm(len(families))[:8] {
		f := families[i]
		c := f.Kernels[r.IntN(len(f.Kernels))]
		chosen, analysed[c.Name] = append(chosen, c), architectures[r.IntN(len(architectures))]
	}
	for _, sm := range architectures {
		d, _ := openSoft(t, softgpu.Config{SM: sm, Version: 13000})
		limit := d.Info().SharedOptin
		for _, c := range chosen {
			own, err := c.Module()
			require.NoError(t, err)
			if !d.Info().Target().Covers(own.Target) {
				continue
			}
			free := own.Clone()
			free.Func(c.Name).Bounds.ReqThreads = [3]int{}
			for _, m := range []*ir.Module{own, free} {
				loaded, err := d.LoadModule(m)
				require.NoError(t, err)
				k, err := loaded.Kernel(c.Name)
				require.NoError(t, err)
				a := k.Attributes()
				for i := range 5 {
					block := k.RequiredBlock()
					if block == ([3]uint32{}) {
						block = xyz(1+r.Uint32N(uint32(a.MaxThreads)), 1, 1)
					}
					shared := 0
					if r.IntN(3) > 0 {
						shared = r.IntN(limit - a.Shared + 1)
					}
					o, err := k.Occupancy(block, uint32(shared))
					require.NoError(t, err)
					threads := int(block[0] * block[1] * block[2])
					limits, err := roofline.LimitsOf(sm)
					require.NoError(t, err)
					model, err := limits.Occupancy(threads, a.Registers, a.Shared+shared)
					require.NoError(t, err)
					require.Equal(t, &model, o.Model)
					require.Equal(t, model.Blocks, o.Blocks, "sm_%d, %s, block %v, %d bytes", sm, c.Name, block, shared)
					require.Equal(t, o.Blocks*threads, o.Threads)
					require.InDelta(t, float64(o.Threads)/float64(d.Info().ThreadsMP), o.Share, 1e-12)
					compared++
					if i > 0 || analysed[c.Name] != sm || len(m.Func(c.Name).Body) > 400 {
						continue
					}
					report, err := analyze.Module(m, analyze.Options{SM: sm, Shared: shared,
						Block: [3]int{int(block[0]), int(block[1]), int(block[2])}, BugsOnly: true, Iterations: 1,
						Registers: map[string]int{c.Name: a.Registers}})
					require.NoError(t, err)
					require.Equal(t, report.Kernels[0].Occupancy, o.Model, "sm_%d, %s, block %v", sm, c.Name, block)
				}
				require.NoError(t, loaded.Close())
			}
		}
	}
	t.Logf("%d compared", compared)
	require.Positive(t, compared)
}

func TestOccupancy(t *testing.T) {
	fail := &injector{}
	d, _ := openSoft(t, softgpu.Config{Multiprocessors: 6, Inject: fail.next})
	k := d.kernel(t, kernelText("", 1<<10), "k")
	o, err := k.Occupancy(xyz(256), 0)
	require.NoError(t, err)
	require.Equal(t, 8, o.Blocks)
	require.Equal(t, 2048, o.Threads)
	require.EqualValues(t, 1, o.Share)
	o, err = k.Occupancy(xyz(16, 16), 100<<10) // 102 KiB of 228
	require.NoError(t, err)
	require.Equal(t, 2, o.Blocks)
	threads, blocks, err := k.BestBlock(0)
	require.NoError(t, err)
	require.Equal(t, 2048*6, threads*blocks)

	required := d.kernel(t, kernelText(".reqntid 64, 2", 1<<10), "k")
	o, err = required.Occupancy(xyz(), 0)
	require.NoError(t, err)
	require.Equal(t, 16, o.Blocks)
	threads, blocks, err = required.BestBlock(100 << 10)
	require.NoError(t, err)
	require.Equal(t, []int{128, 12}, []int{threads, blocks})

	for _, c := range []struct {
		k      *Kernel
		block  [3]uint32
		shared uint32
		err    error
	}{
		{k, xyz(), 0, compute.ErrArgument}, {k, xyz(1025), 0, compute.ErrTooLarge},
		{required, xyz(128), 0, compute.ErrArgument},
		{k, xyz(32), 1 << 20, compute.ErrTooLarge},
	} {
		_, err := c.k.Occupancy(c.block, c.shared)
		require.ErrorIs(t, err, c.err, "%+v", c)
	}
	_, _, err = k.BestBlock(1 << 20)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	fail.set("OccupancyMaxActiveBlocks", driver.OutOfMemory, driver.OutOfMemory)
	fail.set("OccupancyMaxPotentialBlockSize", driver.OutOfMemory)
	_, err = k.Occupancy(xyz(32), 0)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	_, _, err = required.BestBlock(0)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	_, _, err = k.BestBlock(0)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
}
