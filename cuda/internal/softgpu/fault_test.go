package softgpu_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/sim"
)

// TestFaults runs kernels that do what no kernel may.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		kernel string
		checks sim.Checks
		launch func(r *rig) *driver.Launch
		want   driver.Result
		detail string
	}{
		{"store", 0, func(*rig) *driver.Launch { return one(1, driver.Ptr(0)) }, driver.IllegalAddress, "null pointer"},
		{"store", 0, func(r *rig) *driver.Launch { return one(1, r.alloc(8)+8) }, driver.IllegalAddress, "past the end"},
		{"store", 0, func(r *rig) *driver.Launch {
			p := r.alloc(8)
			r.free(p)
			return one(1, p)
		}, driver.IllegalAddress, "has been freed"},
		{"store", 0, func(r *rig) *driver.Launch { return one(1, r.alloc(8)+2) }, driver.MisalignedAddress, "multiple of 4"},
		{"trapped", 0, func(*rig) *driver.Launch { return one(1) }, driver.LaunchFailed, "trap"},
		{"asserted", 0, func(*rig) *driver.Launch { return one(1) }, driver.Assert, "assert"},
		{"forever", 0, func(*rig) *driver.Launch { return one(1) }, driver.LaunchTimeout, "the limit is 100000"},
		{"stuck", 0, func(*rig) *driver.Launch { return one(32) }, driver.LaunchTimeout, "no warp"},
		{"add", sim.CheckRace, func(r *rig) *driver.Launch {
			return one(32, r.alloc(128), 32, 1)
		}, driver.Success, ""},
		{"clash", sim.CheckRace, func(r *rig) *driver.Launch { return one(33, r.alloc(4)) }, driver.LaunchFailed, "race"},
		{"branch", sim.CheckInit, func(r *rig) *driver.Launch { return one(1, r.alloc(4)) }, driver.LaunchFailed,
			"nothing has written"},
	} {
		r := newRig(t, softgpu.Config{Sim: sim.Config{Checks: c.checks, MaxSteps: 100_000}})
		r.abandon()
		e := r.event(false)
		l, f := c.launch(r), r.fn(c.kernel)
		host, p := r.pinned(1)
		r.ok(r.LaunchKernel(f, l, 0))
		host[0] = 5
		x := r.ctx
		r.EventRecord(e, 0)
		res := r.CtxSynchronize()
		require.Equal(t, c.want.Name(), res.Name(), "%s: %s", c.kernel, r.Detail(x))
		require.Contains(t, r.Detail(x), c.detail)
		if c.want == driver.Success {
			continue
		}
		require.Contains(t, r.Detail(x), c.kernel)
		r.is(c.want, r.EventQuery(e))
		r.is(c.want, r.EventSynchronize(e))
		r.is(c.want, r.MemcpyHtoDAsync(16, p, 4, 0))
		require.Equal(t, uint32(5), host[0])
	}
}

// TestUninitialised copies to the host what nobody has written.
func TestUninitialised(t *testing.T) {
	r := newRig(t, softgpu.Config{Sim: sim.Config{Checks: sim.CheckInit}})
	x, y := r.alloc(64), r.alloc(64)
	_, p := r.pinned(16)
	r.ok(r.MemsetD8Async(x, 1, 32, 0))
	r.ok(r.MemcpyDtoDAsync(y, x, 64, 0)) // copying it on the device is no mistake
	r.ok(r.MemcpyDtoHAsync(p, y, 32, 0))
	r.ok(r.CtxSynchronize())
	r.ok(r.MemcpyDtoHAsync(p, y, 33, 0))
	r.is(driver.LaunchFailed, r.CtxSynchronize())
	require.Contains(t, r.Detail(r.ctx), "byte 32")
}

// TestGarbage finds new memory full of what looks wrong, and freed pinned memory overwritten.
func TestGarbage(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	n := 1<<18 + 3 // more than is written at a time
	x := r.alloc(4 * n)
	host, p := r.pinned(n)
	require.Equal(t, slices.Repeat([]uint32{^uint32(0)}, n), host)
	clear(host)
	r.ok(r.MemcpyDtoHAsync(p, x, uint64(4*n), 0))
	r.ok(r.CtxSynchronize())
	require.Equal(t, slices.Repeat([]uint32{^uint32(0)}, n), host)
	clear(host)
	r.ok(r.MemFreeHost(p))
	require.Equal(t, ^uint32(0), host[n-1])
	r.is(driver.InvalidValue, r.MemFreeHost(p))
	r.free(x)
	r.is(driver.InvalidValue, r.MemFree(x))
	r.is(driver.InvalidValue, r.MemFree(0))
}

// TestSticky kills a context: queued work is dropped, another device lives on, and a new context is a fresh one.
func TestSticky(t *testing.T) {
	needThreads(t)
	r := newRig(t, softgpu.Config{Devices: 2})
	x := r.alloc(64)
	host, p := r.pinned(16)
	host[0] = 1
	s := r.stream()
	r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 100_000, 3), s))
	r.ok(r.LaunchKernel(r.fn("store"), one(1, driver.Ptr(0)), s))
	r.ok(r.MemcpyDtoHAsync(p, x, 4, s))
	r.is(driver.IllegalAddress, r.StreamSynchronize(s))
	require.Equal(t, uint32(1), host[0], "work after the fault is dropped")
	first := r.Detail(r.ctx)

	other, res := r.PrimaryCtxRetain(1)
	r.ok(res)
	r.ok(r.CtxSetCurrent(other))
	r.is(driver.InvalidHandle, r.StreamSynchronize(s))
	y := r.alloc(64)
	r.ok(r.MemsetD8Async(y, 0, 64, 0))
	r.is(driver.IllegalAddress, r.MemcpyPeerAsync(y, other, x, r.ctx, 64, 0))
	r.ok(r.CtxSynchronize())
	r.free(y)
	require.Empty(t, r.Detail(other))
	r.ok(r.PrimaryCtxRelease(1))

	r.is(driver.InvalidContext, r.CtxSynchronize())
	r.ok(r.CtxSetCurrent(r.ctx))
	r.is(driver.IllegalAddress, r.MemFree(x))
	require.Equal(t, first, r.Detail(r.ctx), "the first fault stays")
	again, res := r.PrimaryCtxRetain(0)
	r.ok(res)
	require.Equal(t, r.ctx, again)
	r.ok(r.PrimaryCtxRelease(0))
	r.is(driver.IllegalAddress, r.CtxSynchronize())
	r.ok(r.PrimaryCtxRelease(0))
	r.is(driver.InvalidContext, r.CtxSynchronize())
	r.is(driver.InvalidContext, r.CtxSetCurrent(r.ctx))

	fresh, res := r.PrimaryCtxRetain(0)
	r.ok(res)
	require.NotEqual(t, r.ctx, fresh)
	r.ok(r.CtxSetCurrent(fresh))
	r.ctx = fresh
	r.ok(r.CtxSynchronize())
	r.is(driver.InvalidValue, r.MemFree(x))
	r.module = r.load(kernelText)
}

// TestRelease counts what is left to the last release, and ends a kernel that runs.
func TestRelease(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	r.abandon()
	r.alloc(100)
	r.event(false)
	s := r.stream()
	if runtime.GOOS == "js" { // nothing else runs until a kernel ends
		r.Hold(s)
	} else {
		r.ok(r.LaunchKernel(r.fn("forever"), one(1), s))
	}
	r.is(driver.NotReady, r.StreamQuery(s))
	before := runtime.NumGoroutine()
	r.ok(r.PrimaryCtxRelease(0))
	for limit := time.Now().Add(time.Minute); runtime.NumGoroutine() >= before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(limit), "the stream's goroutine does not end")
	}
	require.Zero(t, r.Live())
	require.ErrorContains(t, r.Leaks(), "1 modules, 1 allocations, 1 streams, 1 events, 100 bytes on devices")
	r.is(driver.InvalidContext, r.PrimaryCtxRelease(0))
	r.is(driver.InvalidDevice, r.PrimaryCtxRelease(1))
	var res driver.Result
	r.ctx, res = r.PrimaryCtxRetain(0)
	r.ok(res)
	require.Equal(t, softgpu.Live{Contexts: 1}, r.Live())
}

// TestThreads has a context current on one thread and not on another.
func TestThreads(t *testing.T) {
	needThreads(t)
	r := newRig(t, softgpu.Config{})
	onThread(func() {
		r.is(driver.InvalidContext, r.CtxSynchronize())
		c, res := r.CtxGetCurrent()
		r.ok(res)
		require.Zero(t, c)
		r.ok(r.CtxSetCurrent(r.ctx))
		r.ok(r.CtxSynchronize())
		r.ok(r.CtxSetCurrent(0))
		r.is(driver.InvalidContext, r.CtxSynchronize())
	})
	c, res := r.CtxGetCurrent()
	r.ok(res)
	require.Equal(t, r.ctx, c)
}

// onThread runs f on an OS thread of its own.
func onThread(f func()) {
	end := make(chan struct{})
	go func() {
		defer close(end)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f()
	}()
	<-end
}
