package softgpu_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// TestForeign has a function work on memory in the order of a stream, and in each replay of a graph.
func TestForeign(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x, y := r.alloc(64), r.alloc(64)
	s := r.stream()
	calls := make(chan driver.Stream, 10)
	double := func(at []unsafe.Pointer, given driver.Stream) {
		from, to := unsafe.Slice((*uint32)(at[0]), 4), unsafe.Slice((*uint32)(at[1]), 4)
		for i := range to {
			to[i] = 2 * from[i]
		}
		calls <- given
	}
	memory := []driver.Memory{{At: x, Bytes: 16}, {At: y, Bytes: 16, Written: true}}
	words := func() uint32 {
		host, res := r.MemHostAlloc(16)
		r.ok(res)
		r.ok(r.MemcpyDtoHAsync(host, y, 16, s))
		r.ok(r.StreamSynchronize(s))
		defer func() { r.ok(r.MemFreeHost(host)) }()
		return *(*uint32)(host)
	}
	release := r.Hold(s)
	r.ok(r.MemsetD32Async(x, 21, 4, s))
	r.ok(r.LaunchForeign(s, memory, double))
	require.Empty(t, calls) // the stream has not come there
	release()
	require.EqualValues(t, 42, words())
	require.Equal(t, s, <-calls)

	r.ok(r.StreamBeginCapture(s))
	r.ok(r.LaunchForeign(s, memory, double))
	g, res := r.StreamEndCapture(s)
	r.ok(res)
	exec, res := r.GraphInstantiate(g)
	r.ok(res)
	require.Empty(t, calls)
	for i := range uint32(2) {
		r.ok(r.MemsetD32Async(x, i, 4, s))
		r.ok(r.GraphLaunch(exec, s))
		require.Equal(t, 2*i, words())
		<-calls
	}
	r.ok(r.GraphExecDestroy(exec))
	r.ok(r.GraphDestroy(g))

	r.is(driver.InvalidValue, r.LaunchForeign(s, []driver.Memory{{At: x, Bytes: 65}}, double))
	r.is(driver.InvalidValue, r.LaunchForeign(s, memory, nil))
	r.ok(r.MemFree(x))
	r.ok(r.MemFree(y))
	r.ok(r.StreamDestroy(s))
}
