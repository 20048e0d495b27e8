package softgpu_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// capture records what f does on a stream.
func (r *rig) capture(s driver.Stream, f func()) driver.Graph {
	r.t.Helper()
	r.ok(r.StreamBeginCapture(s))
	f()
	g, res := r.StreamEndCapture(s)
	r.ok(res)
	return g
}

// word reads a word of the device.
func (r *rig) word(x driver.Ptr) uint32 {
	r.t.Helper()
	host, p := r.pinned(1)
	r.ok(r.CtxSynchronize())
	r.ok(r.MemcpyDtoHAsync(p, x, 4, 0))
	r.ok(r.StreamSynchronize(0))
	v := host[0]
	r.ok(r.MemFreeHost(p))
	return v
}

// TestGraph captures copies, memsets and launches, replays them, and changes a launch.
func TestGraph(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x, y := r.alloc(64), r.alloc(64)
	host, p := r.pinned(2)
	s := r.stream()
	add := r.fn("add")
	r.ok(r.MemsetD32Async(x, 100, 16, 0))
	r.ok(r.CtxSynchronize())
	var node driver.GraphNode
	g := r.capture(s, func() {
		_, res := r.StreamCaptureNode(s)
		r.is(driver.InvalidValue, res)
		r.ok(r.MemcpyHtoDAsync(x, p, 4, s))
		l := one(32, x, 16, 1)
		r.ok(r.LaunchKernel(add, l, s))
		clear(l.Params) // the graph has its own
		node, res = r.StreamCaptureNode(s)
		r.ok(res)
		again, res := r.StreamCaptureNode(s)
		r.ok(res)
		require.Equal(t, node, again)
		r.ok(r.MemcpyDtoDAsync(y, x, 64, s))
		r.ok(r.MemsetD8Async(y+4, 0, 4, s))
		r.ok(r.MemcpyDtoHAsync(unsafe.Add(p, 4), y, 4, s))
	})
	require.Equal(t, uint32(100), r.word(x), "nothing has run")
	_, res := r.StreamCaptureNode(s)
	require.NotEqual(t, driver.Success, res)
	exec, res := r.GraphInstantiate(g)
	r.ok(res)
	other, res := r.GraphInstantiate(g)
	r.ok(res)
	r.ok(r.GraphUpload(exec, s))
	host[0] = 7
	r.ok(r.GraphLaunch(exec, s))
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(8), host[1])
	require.Equal(t, uint32(101), r.word(x+4))
	require.Equal(t, uint32(0), r.word(y+4))
	host[0] = 20
	r.ok(r.GraphLaunch(exec, s))
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(21), host[1])
	require.Equal(t, uint32(102), r.word(x+4))

	// Launches that are queued keep what they had, and so does the other executable.
	release := r.Hold(s)
	r.ok(r.GraphLaunch(exec, s))
	r.ok(r.GraphExecKernelNodeSetParams(exec, node, add, one(32, x, 16, 1000)))
	release()
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(21), host[1])
	r.ok(r.GraphLaunch(exec, s))
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(1020), host[1])
	r.ok(r.GraphLaunch(other, s))
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(21), host[1])
	r.ok(r.GraphExecKernelNodeSetParams(exec, node, r.fn("slow"), one(1, x, 5, 4)))
	r.ok(r.GraphLaunch(exec, s))
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(4), host[1])

	// What does not fit.
	bad := one(32, x, 16, 1)
	bad.Params = bad.Params[:8]
	r.is(driver.InvalidValue, r.GraphExecKernelNodeSetParams(exec, node, add, bad))
	bad = one(32, x, 16, 1)
	bad.Cluster = [3]uint32{1, 1, 1}
	r.is(driver.InvalidValue, r.GraphExecKernelNodeSetParams(exec, node, add, bad))
	bad = one(32, x, 16, 1)
	bad.Cooperative = true
	r.is(driver.InvalidValue, r.GraphExecKernelNodeSetParams(exec, node, add, bad))
	var copied driver.GraphNode
	h := r.capture(s, func() {
		r.ok(r.MemsetD8Async(x, 0, 1, s))
		copied, res = r.StreamCaptureNode(s)
		r.ok(res)
	})
	r.is(driver.InvalidValue, r.GraphExecKernelNodeSetParams(exec, copied, add, one(32, x, 16, 1)))
	hx, res := r.GraphInstantiate(h)
	r.ok(res)
	r.is(driver.InvalidValue, r.GraphExecKernelNodeSetParams(hx, copied, add, one(32, x, 16, 1)))
	r.ok(r.GraphExecDestroy(hx))
	r.ok(r.GraphDestroy(h))
	r.is(driver.InvalidValue, r.GraphDestroy(h))
	r.ok(r.GraphDestroy(g))
	r.is(driver.InvalidValue, r.GraphExecKernelNodeSetParams(exec, node, add, one(32, x, 16, 1)))

	// Executables outlive the graph, launches the executable.
	release = r.Hold(s)
	r.ok(r.GraphLaunch(other, s))
	r.ok(r.GraphExecDestroy(other))
	r.is(driver.InvalidValue, r.GraphLaunch(other, s))
	release()
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(21), host[1])
	r.ok(r.GraphExecDestroy(exec))
	r.ok(r.StreamDestroy(s))
	r.free(x, y)
	r.ok(r.MemFreeHost(p))
}

// TestGraphOfWhatIsGone launches graphs whose memory or kernel does not exist any more.
func TestGraphOfWhatIsGone(t *testing.T) {
	for what, want := range map[string]driver.Result{"device": driver.IllegalAddress, "host": driver.IllegalAddress,
		"module": driver.LaunchFailed} {
		r := newRig(t, softgpu.Config{})
		x := r.alloc(64)
		_, p := r.pinned(16)
		s := r.stream()
		m := r.load(kernelText)
		f, res := r.ModuleGetFunction(m, "add")
		r.ok(res)
		g := r.capture(s, func() {
			r.ok(r.MemcpyHtoDAsync(x, p, 64, s))
			r.ok(r.LaunchKernel(f, one(16, x, 16, 1), s))
		})
		exec, res := r.GraphInstantiate(g)
		r.ok(res)
		r.ok(r.GraphLaunch(exec, s))
		switch what {
		case "device":
			r.free(x)
		case "host":
			r.ok(r.MemFreeHost(p))
		case "module":
			r.ok(r.ModuleUnload(m))
		}
		r.ok(r.CtxSynchronize())
		r.ok(r.GraphLaunch(exec, s))
		r.is(want, r.CtxSynchronize())
		require.Contains(t, r.Detail(r.ctx), map[string]string{"device": "freed", "host": "freed", "module": "unloaded"}[what])
	}
}

// TestLaunchesOfAGraphDoNotOverlap launches an executable on two streams.
func TestLaunchesOfAGraphDoNotOverlap(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x := r.alloc(4)
	s, u := r.stream(), r.stream()
	g := r.capture(s, func() { r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 1000, 1), s)) })
	exec, res := r.GraphInstantiate(g)
	r.ok(res)
	release := r.Hold(s)
	r.ok(r.GraphLaunch(exec, s))
	r.ok(r.GraphLaunch(exec, u))
	time.Sleep(5 * time.Millisecond)
	r.is(driver.NotReady, r.StreamQuery(u))
	release()
	r.ok(r.StreamSynchronize(u))
	r.ok(r.GraphExecDestroy(exec))
	r.ok(r.GraphDestroy(g))
	r.ok(r.StreamDestroy(s))
	r.ok(r.StreamDestroy(u))
	r.free(x)
}

// invalidating are the calls that may not be made on a thread that captures.
var invalidating = map[string]bool{"CtxSynchronize": true, "Compile": true, "ModuleLoadData": true, "ModuleUnload": true,
	"MemAlloc": true,
	"MemFree":  true, "MemHostAlloc": true, "MemFreeHost": true, "StreamSynchronize": true, "StreamQuery": true,
	"EventSynchronize": true, "EventQuery": true, "GraphInstantiate": true}

// TestCallsDuringCapture makes every call while the thread captures a stream that the call is not about.
func TestCallsDuringCapture(t *testing.T) {
	for _, m := range calls() {
		if m.Name == "PrimaryCtxRelease" || m.Name == "CtxSetCurrent" || m.Name == "CtxEnablePeerAccess" {
			continue
		}
		r := newRig(t, softgpu.Config{})
		r.abandon()
		s, e := r.stream(), r.event(false)
		in := arguments(r, m)
		r.ok(r.StreamBeginCapture(s))
		r.ok(r.EventRecord(e, s))
		res := call(r.GPU, m.Name, in)
		_, end := r.StreamEndCapture(s)
		if invalidating[m.Name] {
			require.Equal(t, driver.CaptureUnsupported.Name(), res.Name(), m.Name)
			require.Equal(t, driver.CaptureInvalidated.Name(), end.Name(), m.Name)
		} else {
			require.Equal(t, "CUDA_SUCCESS", res.Name(), m.Name)
			require.Equal(t, "CUDA_SUCCESS", end.Name(), m.Name)
		}
		if m.Name == "PrimaryCtxRetain" {
			r.ok(r.PrimaryCtxRelease(0))
		}
	}
}

// TestCaptureRules breaks them.
func TestCaptureRules(t *testing.T) {
	needThreads(t)
	r := newRig(t, softgpu.Config{})
	x := r.alloc(64)
	s, u := r.stream(), r.stream()
	e, done := r.event(false), r.event(false)
	r.is(driver.CaptureUnsupported, r.StreamBeginCapture(0))
	_, res := r.StreamEndCapture(s)
	r.is(401, res)
	end := func(want driver.Result) {
		t.Helper()
		g, res := r.StreamEndCapture(s)
		r.is(want, res)
		if want == driver.Success {
			r.ok(r.GraphDestroy(g))
		}
		r.ok(r.StreamSynchronize(s)) // it is a stream like others again
		r.ok(r.StreamSynchronize(u))
	}
	begin := func() { t.Helper(); r.ok(r.StreamBeginCapture(s)) }

	begin()
	r.is(401, r.StreamBeginCapture(s))
	onThread(func() {
		r.ok(r.CtxSetCurrent(r.ctx))
		_, res := r.StreamEndCapture(s)
		r.is(driver.CaptureWrongThread, res)
		r.ok(r.CtxSynchronize()) // another thread may
		r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 10, 1), s))
		r.ok(r.CtxSetCurrent(0))
	})
	r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 10, 1), s))
	end(driver.Success)

	// An invalid capture refuses everything until it ends.
	begin()
	r.is(driver.CaptureUnsupported, r.StreamSynchronize(s))
	r.is(driver.CaptureInvalidated, r.MemsetD8Async(x, 0, 1, s))
	r.is(driver.CaptureInvalidated, r.EventRecord(e, s))
	_, res = r.StreamCaptureNode(s)
	r.is(driver.CaptureInvalidated, res)
	r.ok(r.MemsetD8Async(x, 0, 1, u))
	end(driver.CaptureInvalidated)

	// A call that is wrong leaves the capture as it is.
	begin()
	r.is(driver.InvalidValue, r.MemsetD8Async(x, 0, 65, s))
	end(driver.Success)

	// Asking about the captured stream or event breaks it from other threads too.
	for _, ask := range []func() driver.Result{
		func() driver.Result { return r.StreamQuery(s) }, func() driver.Result { return r.EventQuery(e) },
		func() driver.Result { return r.EventSynchronize(e) },
	} {
		begin()
		r.ok(r.EventRecord(e, s))
		onThread(func() {
			r.ok(r.CtxSetCurrent(r.ctx))
			require.Contains(t, []driver.Result{driver.CaptureUnsupported, 907}, ask())
			r.ok(r.CtxSetCurrent(0))
		})
		end(driver.CaptureInvalidated)
	}

	// Events of other work, and of a capture that is over.
	r.ok(r.EventRecord(done, u))
	begin()
	r.is(905, r.StreamWaitEvent(s, done))
	end(driver.CaptureInvalidated)
	begin()
	r.ok(r.EventRecord(e, s))
	end(driver.Success)
	r.is(907, r.StreamWaitEvent(u, e))
	r.ok(r.EventRecord(e, u))
	r.ok(r.EventSynchronize(e))

	// Graphs in graphs.
	g := r.capture(s, func() { r.ok(r.MemsetD8Async(x, 1, 1, s)) })
	exec, res := r.GraphInstantiate(g)
	r.ok(res)
	begin()
	r.is(driver.CaptureUnsupported, r.GraphLaunch(exec, s))
	end(driver.CaptureInvalidated)
	r.ok(r.GraphExecDestroy(exec))
	r.ok(r.GraphDestroy(g))

	// The stream goes.
	begin()
	r.ok(r.StreamDestroy(s))
	r.ok(r.CtxSynchronize())
	s = r.stream()

	// A fault ends the capture with it.
	begin()
	r.ok(r.LaunchKernel(r.fn("store"), one(1, driver.Ptr(0)), u))
	for res = driver.Success; res == driver.Success; _, _, res = r.StreamPriorityRange() {
	}
	_, res = r.StreamEndCapture(s)
	r.is(driver.IllegalAddress, res)
	r.is(driver.IllegalAddress, r.CtxSynchronize())
}

// TestCaptureOfTwoStreams forks and joins.
func TestCaptureOfTwoStreams(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x := r.alloc(64)
	s, u, v := r.stream(), r.stream(), r.stream()
	fork, join := r.event(false), r.event(false)
	slow := func(s driver.Stream, v int) { t.Helper(); r.ok(r.LaunchKernel(r.fn("slow"), one(1, x, 10, v), s)) }
	end := func(s driver.Stream, want driver.Result) driver.Graph {
		t.Helper()
		g, res := r.StreamEndCapture(s)
		r.is(want, res)
		return g
	}
	forked := func() {
		t.Helper()
		r.ok(r.StreamBeginCapture(s))
		slow(s, 1)
		r.ok(r.EventRecord(fork, s))
		r.ok(r.StreamWaitEvent(u, fork))
		slow(u, 2)
	}
	forked()
	r.is(driver.CaptureUnsupported, r.StreamQuery(u))
	end(s, driver.CaptureInvalidated)
	r.ok(r.StreamQuery(u))

	forked()
	end(s, 904) // not joined
	forked()
	end(u, 903) // not the one that began
	end(s, driver.CaptureInvalidated)

	forked()
	r.ok(r.EventRecord(join, u))
	slow(u, 3)
	r.ok(r.StreamWaitEvent(s, join))
	end(s, 904) // not all of it

	// s and v are two captures: they cannot be joined.
	forked()
	r.ok(r.StreamBeginCapture(v))
	r.is(902, r.StreamWaitEvent(v, fork))
	end(v, driver.CaptureInvalidated)
	end(s, driver.CaptureInvalidated)

	forked()
	r.ok(r.EventRecord(join, u))
	r.ok(r.StreamWaitEvent(v, join)) // by way of a third
	r.ok(r.EventRecord(fork, v))
	r.ok(r.StreamWaitEvent(s, fork))
	slow(s, 9)
	g := end(s, driver.Success)
	exec, res := r.GraphInstantiate(g)
	r.ok(res)
	r.ok(r.GraphLaunch(exec, v))
	require.Equal(t, uint32(9), r.word(x))
	forked()
	r.is(driver.CaptureImplicit, r.StreamWaitEvent(0, fork))
	end(s, driver.CaptureInvalidated)
	r.ok(r.GraphExecDestroy(exec))
	r.ok(r.GraphDestroy(g))
	for _, s := range []driver.Stream{s, u, v} {
		r.ok(r.StreamDestroy(s))
	}
	for _, e := range []driver.Event{fork, join} {
		r.ok(r.EventDestroy(e))
	}
	r.free(x)
}
