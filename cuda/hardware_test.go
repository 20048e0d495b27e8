//go:build hardware

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
)

// What is in files with the tag hardware needs an NVIDIA GPU and fails without one. With WAVELANE_TEST_SOFTWARE=1 the software
// GPU takes its place, with small sizes: so that the tests themselves are tested on machines without a GPU.
var onSoftware = os.Getenv("WAVELANE_TEST_SOFTWARE") == "1"

// hardwareOptions are those of the GPU under test.
func hardwareOptions(opts ...Option) []Option {
	if onSoftware {
		opts = append(opts, WithSoftware())
	}
	return opts
}

// openHardware opens the GPU under test.
func openHardware(t testing.TB, opts ...Option) *Device {
	t.Helper()
	d, err := Open(context.Background(), hardwareOptions(append(opts, WithCache(t.TempDir()))...)...)
	require.NoError(t, err, "these tests need an NVIDIA GPU")
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// either is the first on hardware, the second on the software GPU.
func either[T any](hardware, software T) T {
	if onSoftware {
		return software
	}
	return hardware
}

func hardwareRandom(t testing.TB) *rand.Rand {
	return testseed.Rand(t)
}

// noise fills p.
func noise(rng *rand.Rand, p []byte) {
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, rng.Uint64())
		p = p[8:]
	}
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
}

func TestHardwareIs(t *testing.T) {
	d := openHardware(t)
	i := d.Info()
	t.Logf("%v", i)
	require.Equal(t, onSoftware, i.Software)
	require.Positive(t, i.Multiprocessors)
	require.Positive(t, i.Memory)
	require.GreaterOrEqual(t, i.Capability[0], 5)
	m, err := d.Memory()
	require.NoError(t, err)
	require.Positive(t, m.DeviceTotal)
	if !onSoftware {
		require.NotEmpty(t, i.PCIBus)
		require.LessOrEqual(t, m.DeviceTotal, i.Memory)
	}
}

// Copies of any size through staging, from pinned memory, and on the device: every byte arrives, none beside.
func TestHardwareCopies(t *testing.T) {
	const beside = 64
	d := openHardware(t)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	rng := hardwareRandom(t)
	sizes := []int{1, 3, 4, 17, 255, 256, 4097, 1<<16 - 1, 1<<20 + 5}
	if !onSoftware {
		sizes = append(sizes, 1<<25+1, 1<<28-3, 1<<30-1, 1<<30)
	}
	for _, n := range sizes {
		data := make([]byte, n+2*beside)
		noise(rng, data)
		inner := data[beside : beside+n]
		a, err := Alloc[byte](d, len(data))
		require.NoError(t, err)
		require.NoError(t, a.Upload(t.Context(), data))
		// The inner part is replaced through pinned memory, moved on the device, and read back through pinned memory.
		pinned, err := AllocHost[byte](d, n)
		require.NoError(t, err)
		noise(rng, pinned.Slice())
		copy(inner, pinned.Slice())
		part, err := a.Slice(beside, beside+n)
		require.NoError(t, err)
		b, err := Alloc[byte](d, n)
		require.NoError(t, err)
		back, err := AllocHost[byte](d, n)
		require.NoError(t, err)
		r, err := s.Begin()
		require.NoError(t, err)
		require.NoError(t, CopyToDevice(r, part, pinned))
		require.NoError(t, CopyOnDevice(r, b, part))
		require.NoError(t, CopyToHost(r, back, b))
		x, err := r.Submit()
		require.NoError(t, err)
		_, err = x.Wait(t.Context())
		require.NoError(t, err)
		require.True(t, bytes.Equal(inner, back.Slice()), "%d bytes by way of the device", n)
		all := make([]byte, len(data))
		require.NoError(t, a.Download(t.Context(), all))
		require.True(t, bytes.Equal(data, all), "%d bytes, and what is beside them", n)
		for _, c := range []interface{ Close() error }{part, a, b, pinned, back} {
			require.NoError(t, c.Close())
		}
	}
}

// vectorAddOn loads out = x + y.
func vectorAddOn(t testing.TB, d *Device) (*Kernel, func(n int) [3]uint32) {
	const threads = 256
	m := ptx.NewModule()
	k := m.Kernel("vector_add")
	k.RequireThreads(threads, 1, 1)
	n := ptx.Param[uint32](k, "n")
	x := ptx.PointerParam[float32](k, "x")
	y := ptx.PointerParam[float32](k, "y")
	out := ptx.PointerParam[float32](k, "out")
	i := k.GlobalID(ptx.X)
	k.If(i.Lt(n), func() {
		out.At(i).Store(x.At(i).Load().Add(y.At(i).Load()))
	})
	built, err := m.Build()
	require.NoError(t, err)
	loaded, err := d.LoadModule(built)
	require.NoError(t, err)
	kernel, err := loaded.Kernel("vector_add")
	require.NoError(t, err)
	return kernel, func(n int) [3]uint32 { return [3]uint32{uint32((n + threads - 1) / threads), 1, 1} }
}

// Streams of several goroutines at once, each doubling a number of its own many times, with copies between them.
func TestHardwareStreams(t *testing.T) {
	d := openHardware(t)
	add, grid := vectorAddOn(t, d)
	n, iterations := either(1<<22+3, 3001), 23
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			check := func() error {
				s, err := d.NewStream(StreamOptions{Priority: -g % 3})
				if err != nil {
					return err
				}
				defer s.Close()
				pinned, err := AllocHost[float32](d, n)
				if err != nil {
					return err
				}
				defer pinned.Close()
				for i := range pinned.Slice() {
					pinned.Slice()[i] = float32(g + i%1000)
				}
				x, err := Alloc[float32](d, n)
				if err != nil {
					return err
				}
				defer x.Close()
				r, err := s.Begin()
				if err != nil {
					return err
				}
				if err := CopyToDevice(r, x, pinned); err != nil {
					return err
				}
				for range iterations {
					if err := r.Launch(add, Launch{Grid: grid(n)}, args.U32(uint32(n)), x.Arg(), x.Arg(), x.Arg()); err != nil {
						return err
					}
				}
				if err := CopyToHost(r, pinned, x); err != nil {
					return err
				}
				done, err := r.Submit()
				if err != nil {
					return err
				}
				if _, err := done.Wait(context.Background()); err != nil {
					return err
				}
				for i, v := range pinned.Slice() {
					if want := float32(g+i%1000) * float32(int(1)<<iterations); v != want {
						return fmt.Errorf("stream %d: element %d is %g, not %g", g, i, v, want)
					}
				}
				return nil
			}
			if err := check(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A graph computes what its launches compute, with changed arguments as well.
func TestHardwareGraph(t *testing.T) {
	d := openHardware(t)
	add, grid := vectorAddOn(t, d)
	rng := hardwareRandom(t)
	n, steps := either(1<<20+1, 1500), 50
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = rng.Float32(), rng.Float32()
	}
	dx, dy := uploaded(t, d, x), uploaded(t, d, y)
	plain, replayed, other := uploaded(t, d, x), uploaded(t, d, x), uploaded(t, d, x)
	s, err := d.NewStream(StreamOptions{Timed: true})
	require.NoError(t, err)
	step := func(out *Buffer[float32]) []Arg { return []Arg{args.U32(uint32(n)), out.Arg(), dy.Arg(), out.Arg()} }
	var nodes []Node
	g, err := s.Capture(func(c *Capture) error {
		for range steps {
			node, err := c.Launch(add, Launch{Grid: grid(n)}, step(replayed)...)
			if err != nil {
				return err
			}
			nodes = append(nodes, node)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, steps, g.Nodes())
	run := func(f func(r *Recording)) time.Duration {
		r, err := s.Begin()
		require.NoError(t, err)
		f(r)
		sub, err := r.Submit()
		require.NoError(t, err)
		fin, err := sub.Wait(t.Context())
		require.NoError(t, err)
		return fin.Elapsed()
	}
	read := func(b *Buffer[float32]) []float32 {
		out := make([]float32, n)
		require.NoError(t, b.Download(t.Context(), out))
		return out
	}
	launches := run(func(r *Recording) {
		for range steps {
			require.NoError(t, r.Launch(add, Launch{Grid: grid(n)}, step(plain)...))
		}
	})
	replay := run(func(r *Recording) { require.NoError(t, r.Replay(g)) })
	t.Logf("%d launches of %d elements: %v one by one, %v as a graph", steps, n, launches, replay)
	require.Positive(t, launches)
	require.Positive(t, replay)
	want := read(plain)
	require.Equal(t, want, read(replayed))
	require.NotEqual(t, x, want)

	for _, node := range nodes {
		require.NoError(t, g.SetArgs(node, step(other)...))
	}
	run(func(r *Recording) { require.NoError(t, r.Replay(g)) })
	require.Equal(t, want, read(other))
	require.Equal(t, want, read(replayed), "the graph still writes where it wrote before")
	require.Equal(t, x, read(dx))
}

// What the compiler refuses comes with the compiler's log.
func TestHardwareCompilerRefuses(t *testing.T) {
	d := openHardware(t)
	_, err := d.Load(`.version 7.0
.target sm_70
.address_size 64
.visible .entry greedy(.param .u64 out)
{
	.shared .align 4 .b8 own[400000];
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	mov.u32 %r1, own;
	ld.param.u64 %rd1, [out];
	st.global.u32 [%rd1], %r1;
	ret;
}
`)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, compute.ErrArgument)
	require.Contains(t, e.Log, "greedy")
	require.Contains(t, e.Log, "too much shared data")
	t.Logf("%v", err)
	add, grid := vectorAddOn(t, d) // the device is fine
	x := uploaded(t, d, []float32{1, 2, 3})
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	r, err := s.Begin()
	require.NoError(t, err)
	require.NoError(t, r.Launch(add, Launch{Grid: grid(3)}, args.U32(3), x.Arg(), x.Arg(), x.Arg()))
	sub, err := r.Submit()
	require.NoError(t, err)
	_, err = sub.Wait(t.Context())
	require.NoError(t, err)
}

// A second opening finds what the first compiled. The driver has a cache of its own, which the script that runs these tests turns
// off (CUDA_CACHE_DISABLE), as it would make the comparison pointless.
func TestHardwareCache(t *testing.T) {
	dir := t.TempDir()
	load := func() time.Duration {
		start := time.Now()
		d, err := Open(t.Context(), hardwareOptions(WithCache(dir))...)
		require.NoError(t, err)
		if onSoftware { // whose compiler does nothing
			fewFamilies(d)
		}
		_, err = d.Preload(t.Context())
		require.NoError(t, err)
		took := time.Since(start)
		require.NoError(t, d.Close())
		return took
	}
	files := func() (all []string) {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, f := range list {
			data, err := os.ReadFile(f)
			require.NoError(t, err)
			require.NotEmpty(t, data)
			all = append(all, f)
		}
		slices.Sort(all)
		return all
	}
	first := load()
	compiled := files()
	require.NotEmpty(t, compiled)
	second := load()
	require.Equal(t, compiled, files(), "compiled again, under another key")
	t.Logf("opening with all kernels: %v compiling, %v from the cache", first, second)
	if !onSoftware {
		require.Less(t, second, first)
	}
}

// Parameters have the sizes that the driver says: loading compares every kernel, and fails if not. Here it is made sure that it can.
func TestHardwareParams(t *testing.T) {
	d := openHardware(t)
	if d.Info().driverNumber < 12040 {
		t.Logf("CUDA %s does not say where parameters lie; 12.4 does", d.Info().Driver)
		return
	}
	n, elsewhere := 0, 0
	for name, k := range everyKernel(t, d) {
		for i := range k.layout.Len() {
			require.NoError(t, d.enter())
			offset, size, r := d.drv.FuncGetParamInfo(k.function, i)
			d.leave()
			require.Equal(t, driver.Success, r, "%s, parameter %d", name, i)
			require.EqualValues(t, k.layout.Param(i).Size, size, "%s, parameter %d", name, i)
			if at := k.layout.Param(i).Offset; uint64(at) != offset {
				elsewhere++
			}
			n++
		}
	}
	t.Logf("%d parameters, %d of them not where they are in our block", n, elsewhere)
}
