//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

func (d *library) MemGetInfo() (free, total uint64, r driver.Result) {
	f := take()
	r = f.call(d.cuMemGetInfo, f.at(0), f.at(1))
	free, total = f.out[0], f.out[1]
	f.give()
	return free, total, r
}

func (d *library) MemAlloc(bytes uint64) (driver.Ptr, driver.Result) {
	h, r := create(d.cuMemAlloc, uintptr(bytes))
	return driver.Ptr(h), r
}

func (d *library) MemFree(p driver.Ptr) driver.Result { return call(d.cuMemFree, uintptr(p)) }

func (d *library) MemHostAlloc(bytes uint64) (unsafe.Pointer, driver.Result) {
	const portable = 1 // CU_MEMHOSTALLOC_PORTABLE: pinned for every context, not for the current one only
	f := take()
	r := f.call(d.cuMemHostAlloc, f.at(0), uintptr(bytes), portable)
	p := f.pointer(0)
	f.give()
	return p, r
}

func (d *library) MemFreeHost(p unsafe.Pointer) driver.Result {
	return call(d.cuMemFreeHost, uintptr(p))
}

func (d *library) MemcpyHtoDAsync(dst driver.Ptr, src unsafe.Pointer, bytes uint64, s driver.Stream) driver.Result {
	f := take()
	r := f.call(d.cuMemcpyHtoDAsync, uintptr(dst), f.held(src), uintptr(bytes), uintptr(s))
	f.give()
	return r
}

func (d *library) MemcpyDtoHAsync(dst unsafe.Pointer, src driver.Ptr, bytes uint64, s driver.Stream) driver.Result {
	f := take()
	r := f.call(d.cuMemcpyDtoHAsync, f.held(dst), uintptr(src), uintptr(bytes), uintptr(s))
	f.give()
	return r
}

func (d *library) MemcpyDtoDAsync(dst, src driver.Ptr, bytes uint64, s driver.Stream) driver.Result {
	return call(d.cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s))
}

func (d *library) MemcpyPeerAsync(dst driver.Ptr, dstCtx driver.Context, src driver.Ptr, srcCtx driver.Context, bytes uint64,
	s driver.Stream) driver.Result {
	return call(d.cuMemcpyPeerAsync, uintptr(dst), uintptr(dstCtx), uintptr(src), uintptr(srcCtx), uintptr(bytes), uintptr(s))
}

func (d *library) MemsetD8Async(dst driver.Ptr, value uint8, bytes uint64, s driver.Stream) driver.Result {
	return call(d.cuMemsetD8Async, uintptr(dst), uintptr(value), uintptr(bytes), uintptr(s))
}

func (d *library) MemsetD32Async(dst driver.Ptr, value uint32, words uint64, s driver.Stream) driver.Result {
	return call(d.cuMemsetD32Async, uintptr(dst), uintptr(value), uintptr(words), uintptr(s))
}
