//go:build hardware

package cuda

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/conformance/kernelcase"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/lower"
)

// everyKernel loads all kernels of the catalogue and of package ptx/kernels.
func everyKernel(t *testing.T, d *Device) map[string]*Kernel {
	all := map[string]*Kernel{}
	for _, f := range lower.Families() {
		m, err := d.loader.families[f.Name].get(d.loader)
		require.NoError(t, err, f.Name)
		for _, k := range f.Kernels {
			all[f.Name+"/"+k.Name] = m.kernels[k.Name]
		}
	}
	for _, k := range kernels.All() {
		all["kernels/"+k.Name] = loadOwn(t, d, k)
	}
	return all
}

func loadOwn(t *testing.T, d *Device, k kernels.Kernel) *Kernel {
	built, err := k.Module()
	require.NoError(t, err)
	m, err := d.LoadModule(built)
	require.NoError(t, err, k.Name)
	kernel, err := m.Kernel(k.Name)
	require.NoError(t, err)
	return kernel
}

// What the driver's compiler made of every kernel: no spills, and as many blocks at once as the analyser says.
func TestHardwareAttributes(t *testing.T) {
	d := openHardware(t)
	all := everyKernel(t, d)
	require.NotEmpty(t, all)
	blocks := map[string][3]uint32{}
	for _, f := range lower.Families() {
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

// gpuMemory is a device as the cases of ptx/kernels see it. What lies beside buffers is watched.
type gpuMemory struct {
	t   *testing.T
	d   *Device
	all []*watched
}

type watched struct {
	whole *Buffer[byte]
	part  *Buffer[byte]
}

const (
	watchBytes = 512
	watchValue = 0xfb // as float32 a number that no case has for a result
)

func (m *gpuMemory) Empty(n int) uint64 {
	whole, err := Alloc[byte](m.d, n+2*watchBytes)
	require.NoError(m.t, err)
	require.NoError(m.t, whole.Upload(context.Background(), bytes.Repeat([]byte{watchValue}, whole.Len())))
	part, err := whole.Slice(watchBytes, watchBytes+n)
	require.NoError(m.t, err)
	m.all = append(m.all, &watched{whole, part})
	return uint64(part.at)
}

func (m *gpuMemory) Upload(p []byte) uint64 {
	at := m.Empty(len(p))
	require.NoError(m.t, m.all[len(m.all)-1].part.Upload(context.Background(), p))
	return at
}

func (m *gpuMemory) Read(p []byte, at uint64) error {
	for _, w := range m.all {
		if uint64(w.part.at) == at && len(p) <= w.part.Len() {
			b, err := w.part.Slice(0, len(p))
			if err != nil {
				return err
			}
			defer b.Close()
			return b.Download(context.Background(), p)
		}
	}
	return fmt.Errorf("%d bytes at %#x belong to no buffer", len(p), at)
}

// close looks beside the buffers and frees them.
func (m *gpuMemory) close() {
	for _, w := range m.all {
		all := make([]byte, w.whole.Len())
		require.NoError(m.t, w.whole.Download(context.Background(), all))
		for i, b := range all {
			if beside := i < watchBytes || i >= len(all)-watchBytes; beside && b != watchValue {
				require.Fail(m.t, "memory beside a buffer was written to", "byte %d of %d", i-watchBytes, w.part.Len())
			}
		}
		require.NoError(m.t, w.part.Close())
		require.NoError(m.t, w.whole.Close())
	}
}

// largeShapes are for hardware alone.
var largeShapes = map[string][][]int{
	"n":         {{1 << 20}, {1<<22 + 7}},
	"rows cols": {{1000, 1001}, {4097, 129}, {3, 100003}},
	"m n k":     {{257, 511, 300}, {512, 512, 512}, {1000, 136, 72}},
}

// Every kernel of package ptx/kernels computes what float64 says.
func TestHardwareKernels(t *testing.T) {
	d := openHardware(t)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	rng := hardwareRandom(t)
	for _, k := range kernels.All() {
		t.Run(k.Name, func(t *testing.T) {
			kernel := loadOwn(t, d, k)
			shapes := kernelcase.Shapes[k.Sizes]
			require.NotEmpty(t, shapes)
			if !onSoftware {
				shapes = append(slices.Clone(shapes), largeShapes[k.Sizes]...)
			}
			for _, sizes := range shapes {
				m := &gpuMemory{t: t, d: d}
				j, err := kernelcase.New(m, rng, k, sizes)
				require.NoError(t, err)
				var list []Arg
				for _, a := range j.Args {
					switch v := a.(type) {
					case uint32:
						list = append(list, args.U32(v))
					case float32:
						list = append(list, args.F32(v))
					case uint64:
						list = append(list, args.Ptr(v))
					default:
						require.Fail(t, "an argument of an unexpected type", "%T", a)
					}
				}
				g := k.Grid(sizes...)
				r, err := s.Begin()
				require.NoError(t, err)
				require.NoError(t, r.Launch(kernel, Launch{Grid: [3]uint32{uint32(g[0]), uint32(g[1]), uint32(g[2])},
					Shared: uint32(j.Shared)}, list...), "%v", sizes)
				x, err := r.Submit()
				require.NoError(t, err)
				_, err = x.Wait(t.Context())
				require.NoError(t, err, "%v", sizes)
				require.NoError(t, j.Check(), "%v", sizes)
				m.close()
			}
		})
	}
}
