package softgpu_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/sim"
)

// TestCopiesHappenWhenTheyRun queues copies after other work and changes what they read afterwards.
func TestCopiesHappenWhenTheyRun(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x := r.alloc(8)
	host, p := r.pinned(2)
	host[0], host[1] = 10, 20
	s := r.stream()
	release := r.Hold(s)
	r.ok(r.MemcpyHtoDAsync(x, p, 4, s))
	r.ok(r.LaunchKernel(r.fn("slow"), one(1, x+4, 50_000, 77), s))
	r.ok(r.MemcpyDtoHAsync(unsafe.Add(p, 4), x+4, 4, s))
	r.is(driver.NotReady, r.StreamQuery(s))
	require.Equal(t, uint32(20), host[1], "not copied yet")
	host[0] = 11 // the copy takes this
	release()
	r.ok(r.StreamSynchronize(s))
	r.ok(r.StreamQuery(s))
	require.Equal(t, uint32(77), host[1])
	r.ok(r.MemcpyDtoHAsync(p, x, 4, 0))
	r.ok(r.CtxSynchronize())
	require.Equal(t, uint32(11), host[0])

	// What is freed is freed when the queue has run.
	slow := func(x driver.Ptr, v int) {
		r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 50_000, v), s))
	}
	slow(x, 1)
	r.ok(r.MemcpyDtoHAsync(p, x, 4, s))
	r.free(x)
	r.ok(r.StreamQuery(s))
	require.Equal(t, uint32(1), host[0])
	y := r.alloc(8)
	slow(y, 2)
	r.ok(r.MemcpyHtoDAsync(y, p, 4, s))
	r.ok(r.MemFreeHost(p))
	r.ok(r.StreamQuery(s))
	m := r.load(kernelText)
	f, res := r.ModuleGetFunction(m, "slow")
	r.ok(res)
	r.ok(r.LaunchKernel(f, one(1, y, 50_000, 3), s))
	r.ok(r.ModuleUnload(m))
	r.ok(r.StreamQuery(s))
	r.is(driver.InvalidHandle, r.LaunchKernel(f, one(1, y, 1, 3), s))
	release = r.Hold(s)
	slow(y, 4)
	r.ok(r.StreamDestroy(s)) // does not wait
	release()
	r.free(y)
}

// TestStreamsAreUnordered runs work of one stream while another waits, and orders them by events.
func TestStreamsAreUnordered(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x := r.alloc(8)
	host, p := r.pinned(2)
	s, u := r.stream(), r.stream()
	e, late := r.event(true), r.event(true)
	r.ok(r.EventQuery(e))
	r.ok(r.EventSynchronize(e))
	r.ok(r.StreamWaitEvent(u, e)) // nothing to wait for
	_, res := r.EventElapsed(e, late)
	r.is(driver.InvalidHandle, res)

	r.ok(r.EventRecord(e, s))
	r.ok(r.EventSynchronize(e))
	release := r.Hold(s)
	r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 1000, 5), s))
	r.ok(r.EventRecord(late, s))
	r.is(driver.NotReady, r.EventQuery(late))
	_, res = r.EventElapsed(e, late)
	r.is(driver.NotReady, res)
	r.ok(r.StreamWaitEvent(u, late))
	r.ok(r.EventRecord(late, 0)) // u waits for the earlier record all the same
	r.ok(r.MemcpyDtoHAsync(p, x, 4, u))
	r.ok(r.StreamSynchronize(0))
	r.is(driver.NotReady, r.StreamQuery(u))
	time.Sleep(2 * time.Millisecond)
	release()
	r.ok(r.StreamSynchronize(u))
	require.Equal(t, uint32(5), host[0])

	r.ok(r.EventRecord(late, s))
	r.ok(r.EventSynchronize(late))
	ms, res := r.EventElapsed(e, late)
	r.ok(res)
	require.Greater(t, ms, float32(1))
	require.Less(t, ms, float32(60_000))
	back, res := r.EventElapsed(late, e)
	r.ok(res)
	require.Equal(t, -ms, back)
	untimed := r.event(false)
	r.ok(r.EventRecord(untimed, s))
	r.ok(r.EventSynchronize(untimed))
	_, res = r.EventElapsed(e, untimed)
	r.is(driver.InvalidHandle, res)

	for _, e := range []driver.Event{e, late, untimed} {
		r.ok(r.EventDestroy(e))
		r.is(driver.InvalidHandle, r.EventDestroy(e))
	}
	r.ok(r.StreamDestroy(s))
	r.is(driver.InvalidHandle, r.StreamDestroy(s))
	r.is(driver.InvalidHandle, r.StreamDestroy(0))
	r.ok(r.StreamDestroy(u))
	r.free(x)
	r.ok(r.MemFreeHost(p))
	least, greatest, res := r.StreamPriorityRange()
	r.ok(res)
	require.Equal(t, [2]int{0, -5}, [2]int{least, greatest})
}

// TestBounds copies beside what is allocated.
func TestBounds(t *testing.T) {
	r := newRig(t, softgpu.Config{Memory: 1 << 20})
	x, y := r.alloc(100), r.alloc(100)
	_, p := r.pinned(25)
	pageable := make([]byte, 100)
	for _, n := range []uint64{1, 99, 100} {
		off := driver.Ptr(100 - n)
		r.ok(r.MemcpyHtoDAsync(x+off, p, n, 0))
		r.ok(r.MemcpyDtoHAsync(unsafe.Add(p, int(off)), x, n, 0))
		r.ok(r.MemcpyDtoDAsync(x+off, y, n, 0))
		r.ok(r.MemsetD8Async(x+off, 1, n, 0))
		r.ok(r.MemcpyPeerAsync(x+off, r.ctx, y, r.ctx, n, 0))
		for _, n := range []uint64{n + 1, n + 1<<20, 1<<63 - 1, ^uint64(0)} {
			r.is(driver.InvalidValue, r.MemcpyHtoDAsync(x+off, p, n, 0))
			r.is(driver.InvalidValue, r.MemcpyHtoDAsync(x, unsafe.Add(p, int(off)), n, 0))
			r.is(driver.InvalidValue, r.MemcpyDtoHAsync(unsafe.Add(p, int(off)), x, n, 0))
			r.is(driver.InvalidValue, r.MemcpyDtoDAsync(x+off, y, n, 0))
			r.is(driver.InvalidValue, r.MemcpyDtoDAsync(x, y+off, n, 0))
			r.is(driver.InvalidValue, r.MemcpyPeerAsync(x+off, r.ctx, y, r.ctx, n, 0))
			r.is(driver.InvalidValue, r.MemsetD8Async(x+off, 1, n, 0))
			r.is(driver.InvalidValue, r.MemsetD32Async(x+off&^3, 1, n, 0))
		}
		r.is(driver.InvalidValue, r.MemcpyHtoDAsync(x, unsafe.Pointer(&pageable[0]), n, 0))
		r.is(driver.InvalidValue, r.MemcpyDtoHAsync(unsafe.Pointer(&pageable[0]), x, n, 0))
		r.is(driver.InvalidValue, r.MemcpyDtoHAsync(nil, x, n, 0))
	}
	r.is(driver.InvalidValue, r.MemcpyDtoDAsync(x+1, x, 99, 0)) // overlap
	r.is(driver.InvalidValue, r.MemcpyPeerAsync(x, r.ctx, x+1, r.ctx, 99, 0))
	r.ok(r.MemcpyDtoDAsync(x+50, x, 50, 0))
	r.is(driver.InvalidValue, r.MemsetD32Async(x+2, 1, 1, 0))
	r.is(driver.InvalidValue, r.MemsetD32Async(x, 1, 26, 0))
	r.ok(r.MemsetD32Async(x, 1, 25, 0))
	r.ok(r.MemcpyHtoDAsync(0, nil, 0, 0))
	r.ok(r.MemcpyDtoDAsync(0, 0, 0, 0))
	r.ok(r.MemcpyPeerAsync(0, r.ctx, 0, r.ctx, 0, 0))
	r.ok(r.MemsetD8Async(0, 0, 0, 0))
	r.is(driver.InvalidContext, r.MemcpyPeerAsync(0, 0, 0, r.ctx, 0, 0))

	free, total, res := r.MemGetInfo()
	r.ok(res)
	require.Equal(t, [2]uint64{1<<20 - 200 - 16, 1 << 20}, [2]uint64{free, total}, "16 bytes are variables")
	_, res = r.MemAlloc(free + 1)
	r.is(driver.OutOfMemory, res)
	_, res = r.MemAlloc(^uint64(0))
	r.is(driver.OutOfMemory, res)
	_, res = r.MemAlloc(0)
	r.is(driver.InvalidValue, res)
	rest := r.alloc(int(free))
	require.Zero(t, rest%256)
	_, res = r.MemAlloc(1)
	r.is(driver.OutOfMemory, res)
	_, res = r.MemHostAlloc(0)
	r.is(driver.InvalidValue, res)
	_, res = r.MemHostAlloc(1 << 50)
	r.is(driver.OutOfMemory, res)
	require.Equal(t, softgpu.Live{Contexts: 1, Modules: 1, Allocations: 3, Bytes: 1<<20 - 16, HostAllocations: 1, HostBytes: 100},
		r.Live())
	r.is(driver.InvalidValue, r.MemFree(x+1))
	r.is(driver.InvalidValue, r.MemFreeHost(unsafe.Add(p, 1)))
	at, n, res := r.ModuleGetGlobal(r.module, "table")
	r.ok(res)
	require.Equal(t, uint64(16), n)
	r.is(driver.InvalidValue, r.MemFree(at))
	host := unsafe.Slice((*uint32)(p), 25)
	r.ok(r.MemcpyDtoHAsync(p, at, 16, 0))
	r.ok(r.CtxSynchronize())
	require.Equal(t, []uint32{1, 2, 3, 4}, host[:4])
	r.free(x, y, rest)
	r.ok(r.MemFreeHost(p))
}

// TestMemset compares with a model.
func TestMemset(t *testing.T) {
	rng := random(t)
	r := newRig(t, softgpu.Config{})
	n := 70_000 + rng.IntN(1000)
	x := r.alloc(4 * n)
	host, p := r.pinned(n)
	want := make([]byte, 4*n)
	r.ok(r.MemsetD32Async(x, 0, uint64(n), 0))
	for range 20 {
		v := rng.Uint32()
		at := rng.IntN(n)
		k := rng.IntN(n - at)
		if rng.IntN(2) == 0 {
			r.ok(r.MemsetD32Async(x+driver.Ptr(4*at), v, uint64(k), 0))
			for i := range 4 * k {
				want[4*at+i] = byte(v >> (i % 4 * 8))
			}
		} else {
			r.ok(r.MemsetD8Async(x+driver.Ptr(at), byte(v), uint64(k), 0))
			for i := range k {
				want[at+i] = byte(v)
			}
		}
	}
	r.ok(r.MemcpyDtoHAsync(p, x, uint64(4*n), 0))
	r.ok(r.CtxSynchronize())
	require.Equal(t, want, unsafe.Slice((*byte)(unsafe.Pointer(&host[0])), 4*n))
	r.free(x)
	r.ok(r.MemFreeHost(p))
}

// TestPeers copies between two devices, and from one to the other's stream's point of view.
func TestPeers(t *testing.T) {
	needThreads(t)
	r := newRig(t, softgpu.Config{Devices: 2})
	store, x := r.fn("store"), r.alloc(64)
	r.ok(r.MemsetD32Async(x, 42, 16, 0))
	r.ok(r.CtxSynchronize())
	other, res := r.PrimaryCtxRetain(1)
	r.ok(res)
	can, res := r.DeviceCanAccessPeer(0, 1)
	r.ok(res)
	require.False(t, can)
	r.is(driver.PeerAccessUnsupported, r.CtxEnablePeerAccess(other))
	r.is(driver.InvalidContext, r.CtxEnablePeerAccess(r.ctx))
	r.ok(r.CtxSetCurrent(other))
	y := r.alloc(64)
	host, p := r.pinned(16)
	r.is(driver.InvalidValue, r.MemcpyDtoDAsync(y, x, 64, 0))
	r.is(driver.InvalidValue, r.MemcpyPeerAsync(y, r.ctx, x, other, 64, 0))
	r.ok(r.MemcpyPeerAsync(y, other, x, r.ctx, 64, 0))
	r.ok(r.MemcpyDtoHAsync(p, y, 64, 0))
	r.ok(r.CtxSynchronize())
	require.Equal(t, uint32(42), host[15])
	r.is(driver.InvalidHandle, r.LaunchKernel(store, one(1, x), 0))
	r.free(y)
	r.ok(r.MemFreeHost(p))
	r.ok(r.PrimaryCtxRelease(1))
	r.ok(r.CtxSetCurrent(r.ctx))
	r.free(x)
}

// TestConcurrent has eight threads, each with a stream and memory of its own, share a context.
func TestConcurrent(t *testing.T) {
	needThreads(t)
	r := newRig(t, softgpu.Config{})
	add, seed := r.fn("add"), random(t).Uint32()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			onThread(func() { errs[i] = r.worker(add, seed+uint32(i)) })
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, softgpu.Live{Contexts: 1, Modules: 1}, r.Live())
}

// worker makes and destroys, copies and computes, and checks.
func (r *rig) worker(add driver.Function, seed uint32) error {
	var first driver.Result
	ok := func(res driver.Result) {
		if first == driver.Success {
			first = res
		}
	}
	ok(r.CtxSetCurrent(r.ctx))
	defer r.CtxSetCurrent(0)
	for round := range uint32(20) {
		s, res := r.StreamCreate(0)
		ok(res)
		e, res := r.EventCreate(true)
		ok(res)
		x, res := r.MemAlloc(4 * 64)
		ok(res)
		p, res := r.MemHostAlloc(4 * 64)
		ok(res)
		if first != driver.Success {
			break
		}
		host := unsafe.Slice((*uint32)(p), 64)
		for i := range host {
			host[i] = seed + round
		}
		ok(r.MemcpyHtoDAsync(x, p, 4*64, s))
		for range 5 {
			ok(r.LaunchKernel(add, one(64, x, 64, 1), s))
		}
		ok(r.MemcpyDtoHAsync(p, x, 4*64, s))
		ok(r.EventRecord(e, s))
		for res := driver.NotReady; res == driver.NotReady; res = r.EventQuery(e) {
			time.Sleep(10 * time.Microsecond)
		}
		for i := range host {
			if host[i] != seed+round+5 {
				return fmt.Errorf("round %d, element %d: %d", round, i, host[i])
			}
		}
		ok(r.MemFree(x))
		ok(r.MemFreeHost(p))
		ok(r.EventDestroy(e))
		ok(r.StreamDestroy(s))
	}
	if first != driver.Success {
		return fmt.Errorf("%s: %s", first.Name(), r.Detail(r.ctx))
	}
	return nil
}

// TestDriversShareModules loads the same text into several drivers at once.
func TestDriversShareModules(t *testing.T) {
	var wg sync.WaitGroup
	got := make([]driver.Result, 6)
	for i := range got {
		wg.Go(func() {
			onThread(func() {
				g := softgpu.New(softgpu.Config{Sim: sim.Config{Checks: sim.Checks(i) & sim.AllChecks}})
				c, _ := g.PrimaryCtxRetain(0)
				g.CtxSetCurrent(c)
				m, _ := g.ModuleLoadData([]byte(kernelText+"// "+t.Name()), nil)
				f, _ := g.ModuleGetFunction(m, "add")
				x, _ := g.MemAlloc(400)
				g.MemsetD8Async(x, 0, 400, 0)
				g.LaunchKernel(f, one(100, x, 100, 1), 0)
				got[i] = g.CtxSynchronize()
				g.PrimaryCtxRelease(0)
			})
		})
	}
	wg.Wait()
	require.Equal(t, make([]driver.Result, len(got)), got)
}

// TestManyLaunches leaves nothing behind.
func TestManyLaunches(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x := r.alloc(4)
	host, p := r.pinned(1)
	r.ok(r.MemsetD32Async(x, 0, 1, 0))
	f := r.fn("add")
	for i := range 10_000 {
		r.ok(r.LaunchKernel(f, one(1, x, 1, 1), 0))
		if i%1000 == 999 {
			r.ok(r.StreamSynchronize(0))
		}
	}
	r.ok(r.MemcpyDtoHAsync(p, x, 4, 0))
	r.ok(r.CtxSynchronize())
	require.Equal(t, uint32(10_000), host[0])
	require.Equal(t, uint64(10_000), r.Calls()["LaunchKernel"])
	r.free(x)
	r.ok(r.MemFreeHost(p))
}
