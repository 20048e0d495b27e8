package cuda

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/args"
)

// machine is a software GPU that fails when told to.
type machine struct {
	*softgpu.GPU
	fail atomic.Pointer[func(call string) driver.Result]
}

// newMachine makes one, on which nothing may be left when the test ends.
func newMachine(t testing.TB, c softgpu.Config) *machine {
	t.Helper()
	m := &machine{}
	c.Inject = func(call string) driver.Result {
		if f := m.fail.Load(); f != nil {
			return (*f)(call)
		}
		return driver.Success
	}
	m.GPU = softgpu.New(c)
	t.Cleanup(func() {
		// Who gave up waiting leaves something to a goroutine.
		require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
		require.NoError(t, m.Leaks())
	})
	return m
}

func (m *machine) inject(f func(call string) driver.Result) {
	if f == nil {
		m.fail.Store(nil)
		return
	}
	m.fail.Store(&f)
}

// on is the option to take the machine.
func (m *machine) on(c *config) error {
	c.load = func() (driver.Driver, error) { return m.GPU, nil }
	return nil
}

// device opens a device until the test ends.
func (m *machine) device(t testing.TB, opts ...Option) *Device {
	t.Helper()
	d, err := Open(t.Context(), append([]Option{m.on, WithoutCache()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		m.inject(nil)
		require.NoError(t, d.Synchronize())
		require.NoError(t, d.Close())
	})
	return d
}

func softDevice(t testing.TB, opts ...Option) *Device {
	t.Helper()
	return newMachine(t, softgpu.Config{}).device(t, opts...)
}

// in runs f with the device's context on the thread.
func (d *state) in(t testing.TB, f func()) {
	t.Helper()
	require.NoError(t, d.enter())
	defer d.leave()
	f()
}

// memoryThen is the memory when nothing is pending.
func (d *Device) memoryThen(t testing.TB) (m Memory) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		m, err = d.Memory()
		require.NoError(t, err)
		return m.Pending == 0
	}, time.Minute, time.Millisecond)
	return m
}

// emptied is when nothing is in use: who does not wait for work lets a goroutine give back what it keeps.
func (d *Device) emptied(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		m := d.memoryThen(t)
		d.in(t, d.stager.trim) // it has pinned memory otherwise
		return m.InUse+m.Host.InUse == 0
	}, time.Minute, time.Millisecond)
}

const moveText = `.version 7.0
.target sm_80
.address_size 64

// move: to[i] = from[i] for 256 words
.visible .entry move(.param .u64 to, .param .u64 from)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd3, %r2, 4;
	add.u64 %rd1, %rd1, %rd3;
	add.u64 %rd2, %rd2, %rd3;
	ld.global.u32 %r3, [%rd2];
	st.global.u32 [%rd1], %r3;
	ret;
}
`

// gate holds streams up until it is opened, and has a kernel for what comes after.
type gate struct {
	t       testing.TB
	d       *state
	moving  driver.Function
	mu      sync.Mutex
	release []func()
}

func newGate(t testing.TB, d *Device) *gate {
	t.Helper()
	g := &gate{t: t, d: d.state}
	var m driver.Module
	d.in(t, func() {
		var r driver.Result
		m, r = d.drv.ModuleLoadData([]byte(moveText), &driver.JIT{})
		require.Equal(t, driver.Success, r)
		g.moving, r = d.drv.ModuleGetFunction(m, "move")
		require.Equal(t, driver.Success, r)
	})
	t.Cleanup(func() {
		g.open()
		d.enterDead()
		defer d.leave()
		d.drv.CtxSynchronize()
		d.drv.ModuleUnload(m)
	})
	return g
}

// shut holds a stream up until open is called; the caller has entered the context.
func (g *gate) shut(s driver.Stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release = append(g.release, g.d.drv.(*softgpu.GPU).Hold(s))
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.release {
		f()
	}
	g.release = nil
}

// late opens the gate after a while, in which the test gets to where it waits. If it does not, it tests less, but does not
// fail.
func (g *gate) late() { time.AfterFunc(10*time.Millisecond, g.open) }

// move copies 1 KiB by a kernel; the caller has entered the context.
func (g *gate) move(s driver.Stream, to, from driver.Ptr) {
	g.t.Helper()
	l := driver.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: make([]byte, 16)}
	putAddress(l.Params, to)
	putAddress(l.Params[8:], from)
	require.Equal(g.t, driver.Success, g.d.drv.LaunchKernel(g.moving, &l, s))
}

func randomWords(r *rand.Rand, n int) []uint32 {
	x := make([]uint32, n)
	for i := range x {
		x[i] = r.Uint32()
	}
	return x
}

func TestMemoryStatistics(t *testing.T) {
	d := softDevice(t)
	memory := func() Memory { return d.memoryThen(t) }
	start := memory()
	require.Zero(t, start.InUse+start.Cached+start.Pending+start.Host.InUse)
	require.EqualValues(t, d.Info().Memory, start.DeviceTotal)
	a, err := Alloc[float32](d, 1000) // 4000 bytes
	require.NoError(t, err)
	b, err := Alloc[uint8](d, 1)
	require.NoError(t, err)
	h, err := AllocHost[uint16](d, 1000)
	require.NoError(t, err)
	m := memory()
	require.Equal(t, Memory{
		InUse: 4096 + 256, Cached: smallSegment - 4352, Peak: 4352, LargestFree: smallSegment - 4352, Segments: 1,
		Blocks:      2,
		Allocations: 1, Reused: 1, DeviceTotal: start.DeviceTotal, DeviceFree: start.DeviceFree - smallSegment,
		Host: HostMemory{InUse: 2048, Cached: smallSegment - 2048, Peak: 2048, Segments: 1, Blocks: 1, Allocations: 1},
	}, m)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.NoError(t, h.Close())
	m = memory()
	require.EqualValues(t, 256, m.InUse)
	require.EqualValues(t, 4352, m.Peak)
	require.EqualValues(t, smallSegment-4352, m.LargestFree)
	require.InDelta(t, 1-float64(smallSegment-4352)/(smallSegment-256), m.Fragmentation, 1e-12)
	require.NoError(t, b.Close())
	require.NoError(t, d.Trim())
	m = memory()
	require.Zero(t, m.InUse+m.Cached+m.Pending+m.Host.InUse+m.Host.Cached+m.LargestFree)
	require.Zero(t, m.Fragmentation)
	require.Equal(t, start.DeviceFree, m.DeviceFree)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.Contains(t, string(text), `"peak":4352`)
}

func TestMemoryLimit(t *testing.T) {
	d := softDevice(t, WithMemoryLimit(3<<20))
	a, err := Alloc[byte](d, 2<<20)
	require.NoError(t, err)
	_, err = Alloc[byte](d, 2<<20)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.ErrorContains(t, err, "2097152 bytes requested, 2097152 in use")
	require.ErrorContains(t, err, "a limit of 3145728 bytes")
	b, err := Alloc[byte](d, 1<<19) // in what the larger one's segment has left: the limit allows no other
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = Alloc[byte](d, 5<<19+1)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	c, err := Alloc[byte](d, 2<<20)
	require.NoError(t, err)
	m, err := d.Memory()
	require.NoError(t, err)
	require.LessOrEqual(t, m.InUse+m.Cached, uint64(3<<20))
	require.NoError(t, b.Close())
	require.NoError(t, c.Close())
}

// What stays behind when every call of the driver fails in its turn: nothing, and the error is the right one.
func TestEveryCallFails(t *testing.T) {
	work := func(d *Device) error {
		var closers []interface{ Close() error }
		defer func() {
			for _, c := range closers {
				c.Close()
			}
		}()
		s, err := d.NewStream(StreamOptions{})
		if err != nil {
			return err
		}
		closers = append(closers, s)
		data := make([]uint32, 1001)
		b, err := Alloc[uint32](d, len(data))
		if err != nil {
			return err
		}
		closers = append(closers, b)
		if err := b.Upload(context.Background(), data); err != nil {
			return err
		}
		h, err := AllocHost[uint32](d, len(data))
		if err != nil {
			return err
		}
		closers = append(closers, h)
		r, err := s.Begin()
		if err != nil {
			return err
		}
		CopyToDevice(r, b, h)
		part, err := b.Slice(7, 107)
		if err != nil {
			return err
		}
		closers = append(closers, part)
		Fill(r, part, 0x01020304)
		CopyToHost(r, h, b)
		x, err := r.Submit()
		if err != nil {
			return err
		}
		if _, err := x.Wait(context.Background()); err != nil {
			return err
		}
		if err := b.Download(context.Background(), data); err != nil {
			return err
		}
		b.Close()
		if err := d.Trim(); err != nil {
			return err
		}
		c, err := Alloc[uint32](d, 100_001)
		if err != nil {
			return err
		}
		closers = append(closers, c)
		_, err = d.Memory()
		return err
	}
	m := newMachine(t, softgpu.Config{})
	var calls atomic.Int64
	stop := int64(-1)
	m.inject(func(call string) driver.Result {
		if strings.Contains(call, "Destroy") || strings.Contains(call, "Free") || call == "CtxGetCurrent" {
			return driver.Success // these leave something behind by definition, or fail without harm
		}
		if calls.Add(1)-1 == stop {
			return driver.OutOfMemory
		}
		return driver.Success
	})
	d := m.device(t)
	failed := 0
	for stop = 0; ; stop++ {
		calls.Store(0)
		err := work(d)
		done := calls.Load() <= stop
		calls.Store(stop + 1) // no more of them
		if err != nil {
			failed++
			require.ErrorIs(t, err, compute.ErrOutOfMemory, "call %d", stop)
		}
		require.NoError(t, d.Synchronize())
		require.NoError(t, d.Trim())
		now, err := d.Memory()
		require.NoError(t, err)
		require.Zero(t, now.InUse+now.Pending+now.Cached+now.Host.InUse+now.Host.Cached, "call %d", stop)
		require.Zero(t, m.Live().Bytes+m.Live().HostBytes, "call %d", stop)
		// A stream that has work when it is closed is given back in a goroutine.
		require.Eventually(t, func() bool { return m.Live().Streams == 2 }, 10*time.Second, time.Millisecond, "call %d", stop)
		if done {
			break
		}
	}
	require.Greater(t, failed, 30)
	t.Logf("%d calls, %d failures", stop, failed)
}

// A segment that the driver refuses is asked for once more when memory that waits, and idle segments, have been given back.
func TestOutOfMemoryReclaims(t *testing.T) {
	m := newMachine(t, softgpu.Config{Memory: 40 << 20})
	d := m.device(t)
	g := newGate(t, d)
	a, err := Alloc[byte](d, 20<<20)
	require.NoError(t, err)
	d.in(t, func() { g.shut(d.defaultStream.handle) })
	require.NoError(t, a.Close())
	m0, err := d.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 20<<20, m0.Pending)
	g.late()
	b, err := Alloc[byte](d, 30<<20)
	require.NoError(t, err)
	_, err = Alloc[byte](d, 30<<20)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "cuMemAlloc", e.Call)
	require.ErrorContains(t, err, "buffer of 31457280 elements of uint8")
	require.ErrorContains(t, err, "31457280 in use, 0 pending, 0 cached")
	require.NoError(t, b.Close())
}

// The collector closes what was forgotten, through the queue.
func TestForgottenBuffers(t *testing.T) {
	d := softDevice(t)
	for range 8 {
		_, err := Alloc[uint64](d, 1000)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		m, err := d.Memory()
		require.NoError(t, err)
		return m.InUse+m.Pending == 0
	}, time.Minute, time.Millisecond)
	b, err := Alloc[uint64](d, 1000)
	require.NoError(t, err)
	runtime.GC()
	m, err := d.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 8192, m.InUse)
	require.NoError(t, b.Close())
}

// Memory outlives neither a dead context nor a closed device, and nothing panics.
func TestMemoryOfDeadContext(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	b, err := Alloc[uint32](d, 256)
	require.NoError(t, err)
	h, err := AllocHost[uint32](d, 256)
	require.NoError(t, err)
	d.in(t, func() { newGate(t, d).move(d.defaultStream.handle, 64, b.at) }) // nothing is there
	require.ErrorIs(t, d.Synchronize(), ErrContextPoisoned)
	_, err = Alloc[uint32](d, 1)
	require.ErrorIs(t, err, compute.ErrDeviceLost)
	require.ErrorIs(t, b.Upload(t.Context(), make([]uint32, 256)), ErrContextPoisoned)
	_, err = d.Memory()
	require.ErrorIs(t, err, ErrContextPoisoned)
	require.NoError(t, b.Close())
	require.NoError(t, d.Close())
	require.NoError(t, h.Close())
	_, err = Alloc[uint32](d, 1)
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorIs(t, d.Trim(), compute.ErrClosed)
	require.Equal(t, args.Closed(), b.Arg())
}
