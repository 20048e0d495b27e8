//go:build linux && !android && (amd64 || arm64)

package libcuda

import (
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// hot are the calls that run again and again.
func hot(d driver.Driver) map[string]func() driver.Result {
	params := make([]byte, 64)
	plain := &driver.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{128, 1, 1}, Params: params, Offsets: []int{0, 8, 16, 56}}
	clustered := *plain
	clustered.Cluster = [3]uint32{1, 1, 1}
	host := unsafe.Pointer(&params[0])
	return map[string]func() driver.Result{
		"CtxGetCurrent":   func() driver.Result { _, r := d.CtxGetCurrent(); return r },
		"CtxSetCurrent":   func() driver.Result { return d.CtxSetCurrent(1) },
		"LaunchKernel":    func() driver.Result { return d.LaunchKernel(1, plain, 2) },
		"LaunchKernelEx":  func() driver.Result { return d.LaunchKernel(1, &clustered, 2) },
		"MemAlloc":        func() driver.Result { _, r := d.MemAlloc(256); return r },
		"MemcpyHtoDAsync": func() driver.Result { return d.MemcpyHtoDAsync(1, host, 64, 2) },
		"MemcpyDtoHAsync": func() driver.Result { return d.MemcpyDtoHAsync(host, 1, 64, 2) },
		"MemcpyDtoDAsync": func() driver.Result { return d.MemcpyDtoDAsync(1, 2, 64, 2) },
		"MemcpyPeerAsync": func() driver.Result { return d.MemcpyPeerAsync(1, 2, 3, 4, 64, 2) },
		"MemsetD8Async":   func() driver.Result { return d.MemsetD8Async(1, 2, 64, 2) },
		"MemsetD32Async":  func() driver.Result { return d.MemsetD32Async(1, 2, 16, 2) },
		"StreamQuery":     func() driver.Result { return d.StreamQuery(2) },
		"StreamWaitEvent": func() driver.Result { return d.StreamWaitEvent(2, 3) },
		"EventRecord":     func() driver.Result { return d.EventRecord(3, 2) },
		"EventQuery":      func() driver.Result { return d.EventQuery(3) },
		"EventElapsed":    func() driver.Result { _, r := d.EventElapsed(3, 4); return r },
		"GraphLaunch":     func() driver.Result { return d.GraphLaunch(5, 2) },
		"GraphExecKernelNodeSetParams": func() driver.Result {
			return d.GraphExecKernelNodeSetParams(5, 6, 1, plain)
		},
	}
}

func BenchmarkCall(b *testing.B) {
	s := openStub(b)
	s.trace(0)
	d := s.Driver.(*library)
	// What the call of a function costs at least: the same arguments, laid out once.
	b.Run("bare", func(b *testing.B) {
		args := make([]uintptr, maxArguments)
		b.ReportAllocs()
		for b.Loop() {
			purego.SyscallN(d.cuLaunchKernel, args...)
		}
	})
	for name, f := range hot(d) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f() != driver.Success {
					b.Fatal("failed")
				}
			}
		})
	}
}
