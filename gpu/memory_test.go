package gpu

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func TestBuckets(t *testing.T) {
	for n := uint64(1); n < 1<<40; n += 1 + n/7 {
		b := bucket(n)
		require.GreaterOrEqual(t, b, n)
		require.Zero(t, b%16, "n=%d", n)
		require.LessOrEqual(t, b, max(256, n+n/8+16), "n=%d", n)
		require.Equal(t, b, bucket(b), "n=%d: a bucket is its own bucket", n)
	}
}

func TestMemoryFigures(t *testing.T) {
	d := open(t)
	require.Equal(t, Memory{}, d.Memory())
	x, err := d.Upload(ctx, make([]float32, 1<<18))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.Memory().InUse == 1<<20 }, time.Minute, time.Millisecond)
	m := d.Memory()
	require.EqualValues(t, 1<<20, m.Cached, "the upload buffer waits for the next one")
	require.EqualValues(t, 2<<20, m.Peak)
	require.Equal(t, 2, m.Buffers)
	require.NoError(t, x.Close())
	m = d.Memory()
	require.Zero(t, m.InUse)
	require.EqualValues(t, 2<<20, m.Cached)
	y, err := d.Upload(ctx, make([]float32, 1<<18))
	require.NoError(t, err)
	require.Equal(t, 2, d.Memory().Buffers, "both buffers were reused")
	y.Close()
	idle(t, d)
	d.Trim()
	require.Equal(t, Memory{Peak: 2 << 20}, d.Memory())
}

func TestMemoryLimit(t *testing.T) {
	const limit = 5 << 20
	d := open(t, WithMemoryLimit(limit))
	big := make([]float32, 1<<18) // needs as much again for the upload
	var held []compute.Tensor
	for {
		x, err := d.Upload(ctx, big)
		if err != nil {
			require.ErrorIs(t, err, compute.ErrOutOfMemory)
			require.ErrorContains(t, err, "limit of 5242880")
			break
		}
		held = append(held, x)
		idleStaging(t, d)
		require.Less(t, len(held), 10)
	}
	require.Len(t, held, 4, "4 MiB of tensors and 1 MiB of staging fit")
	m := d.Memory()
	require.LessOrEqual(t, m.InUse+m.Cached, uint64(limit))
	require.EqualValues(t, limit, m.Limit)
	for _, x := range held {
		x.Close()
	}
	// What is cached is of the wrong size; it is given back, and the device goes on.
	x, err := d.Upload(ctx, make([]float32, 1<<19))
	require.NoError(t, err)
	x.Close()
	idle(t, d)
}

func idleStaging(t *testing.T, d *Device) {
	require.Eventually(t, func() bool { return d.Memory().Cached > 0 }, time.Minute, time.Millisecond)
}

// A compiled program keeps memory between runs, and gives it up when somebody else needs it.
func TestIdleProgramsGiveWay(t *testing.T) {
	d := open(t, WithMemoryLimit(1<<20))
	k := affine(t, d)
	const n = 1 << 15 // 128 KiB
	x, err := program.ExecutorOf(d).Compile(t.Context(), chain(t, k, n, 3))
	require.NoError(t, err)
	in, out := make([]float32, n), make([]float32, n)
	require.NoError(t, runOnce(x, in, out))
	require.Eventually(t, func() bool { return d.Memory().InUse >= 2*n*4 }, time.Minute, time.Millisecond)
	require.Less(t, d.Memory().InUse, uint64(3*n*4), "two blocks for four values")
	y, err := d.Upload(ctx, make([]float32, 100_000))
	require.NoError(t, err)
	y.Close()
	require.NoError(t, runOnce(x, in, out))
	require.Equal(t, float32(1+2+3), out[n-1])
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	idle(t, d)
	require.ErrorIs(t, runOnce(x, in, out), compute.ErrClosed)
}

func TestCacheIsBounded(t *testing.T) {
	d := open(t)
	for i := range 40 { // of sizes that cannot share buffers
		x, err := d.Upload(ctx, make([]float32, 1<<20+i<<17))
		require.NoError(t, err)
		x.Close()
		idle(t, d)
	}
	m := d.Memory()
	require.LessOrEqual(t, m.Cached, max(keep, m.Peak))
}

func TestForgottenTensor(t *testing.T) {
	d := open(t)
	func() {
		_, err := d.Upload(ctx, make([]float32, 1000))
		require.NoError(t, err)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return d.Memory().InUse == 0 }, time.Minute, 10*time.Millisecond)
	runtime.KeepAlive(d)
}

func TestForgottenDevice(t *testing.T) {
	_, f := openFaulty(t)
	f2 := func() *faulty {
		c, err := newConfig([]Option{WithSoftware(), WithTuneCache(tuneDir(t))})
		require.NoError(t, err)
		drv, info, err := openDriver(ctx, c)
		require.NoError(t, err)
		f := &faulty{Driver: drv, t: t, live: map[*watched]bool{}, inFlight: map[*watched]int{}}
		d := newDevice(f, info, c)
		_, err = NewKernel(ctx, d, affineDesc())
		require.NoError(t, err)
		return f
	}()
	require.Eventually(t, func() bool { runtime.GC(); f2.mu.Lock(); defer f2.mu.Unlock(); return f2.closed }, time.Minute, 10*time.Millisecond)
	require.False(t, f.closed)
}

func TestPipelineCache(t *testing.T) {
	d := open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := NewKernel(ctx, d, affineDesc()); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	s := d.Stats()
	require.EqualValues(t, 1, s.PipelineMisses)
	require.EqualValues(t, 7, s.PipelineHits)
	require.Equal(t, 1, s.Pipelines)
	_, err := NewKernel(ctx, d, KernelDesc{WGSL: "nonsense", Bindings: unary, Workgroup: [3]uint32{1, 1, 1}})
	require.Error(t, err)
	require.Equal(t, 1, d.Stats().Pipelines, "failures are not kept")
	add(t, d)
	require.Equal(t, 2, d.Stats().Pipelines)
}

func TestTimestamps(t *testing.T) {
	d := open(t, WithTimestamps())
	k, l := slow(t, d)
	require.NoError(t, k.Run(ctx, Launch{Grid: [3]uint32{1, 1, 1}, Params: []uint32{1}}, make([]float32, 1), []float32{1})) // warm up
	var wall, gpu time.Duration
	for range 5 { // a machine with other work to do may hold up one run, before its GPU work or after it
		before, start := d.Stats().GPUTime, time.Now()
		require.NoError(t, k.Run(ctx, l, make([]float32, 1), []float32{1}))
		wall, gpu = time.Since(start), d.Stats().GPUTime-before
		require.Positive(t, gpu)
		require.Less(t, gpu, wall+wall/10)
		if gpu > wall/20 {
			break
		}
	}
	require.Greater(t, gpu, wall/20, "a run of %v that is nearly all GPU work", wall)

	x, err := program.ExecutorOf(d).Compile(t.Context(), chain(t, affine(t, d), 1000, 4))
	require.NoError(t, err)
	require.Zero(t, x.(*executable).GPUTime())
	require.NoError(t, runOnce(x, make([]float32, 1000), make([]float32, 1000)))
	require.Positive(t, x.(*executable).GPUTime())
	x.Close()

	plain := open(t)
	require.NoError(t, affine(t, plain).Run(ctx, affineLaunch(1, 1, 1), make([]float32, 1), []float32{1}))
	require.Zero(t, plain.Stats().GPUTime)
}
