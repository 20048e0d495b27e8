//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

func (d *library) ModuleLoadData(image []byte, o *driver.JIT) (driver.Module, driver.Result) {
	j := newJIT(o)
	defer j.finish()
	text := terminated(image) // PTX ends at a NUL; a binary knows its size
	f := take()
	r := f.call(d.cuModuleLoadDataEx, f.at(0), f.held(unsafe.Pointer(&text[0])), j.count(), j.options(), j.values())
	m := driver.Module(f.handle(0))
	f.give()
	return m, r
}

func (d *library) Compile(ptx []byte, o *driver.JIT) (cubin []byte, r driver.Result) {
	j := newJIT(o)
	defer j.finish() // the linker writes the logs until it is gone
	f := take()
	defer f.give()
	if r := f.call(d.cuLinkCreate, j.count(), j.options(), j.values(), f.at(0)); r != driver.Success {
		return nil, r
	}
	linker := f.handle(0)
	defer func() {
		if destroyed := call(d.cuLinkDestroy, linker); r == driver.Success && destroyed != driver.Success {
			cubin, r = nil, destroyed
		}
	}()

	const inputPTX = 1 // CU_JIT_INPUT_PTX
	const noName, noOptions = 0, 0
	text := terminated(ptx)
	r = f.call(d.cuLinkAddData, linker, inputPTX, f.held(unsafe.Pointer(&text[0])), uintptr(len(text)), noName,
		noOptions, 0, 0)
	if r != driver.Success {
		return nil, r
	}
	r = f.call(d.cuLinkComplete, linker, f.at(0), f.at(1))
	if r != driver.Success {
		return nil, r
	}
	return bytes.Clone(unsafe.Slice((*byte)(f.pointer(0)), f.out[1])), r // theirs goes with the linker
}

func (d *library) ModuleUnload(m driver.Module) driver.Result {
	return call(d.cuModuleUnload, uintptr(m))
}

func (d *library) ModuleGetFunction(m driver.Module, name string) (driver.Function, driver.Result) {
	if strings.IndexByte(name, 0) >= 0 {
		return 0, driver.NotFound // C would look for what is before the NUL
	}
	text := terminated([]byte(name))
	f := take()
	r := f.call(d.cuModuleGetFunction, f.at(0), uintptr(m), f.held(unsafe.Pointer(&text[0])))
	h := driver.Function(f.handle(0))
	f.give()
	return h, r
}

func (d *library) ModuleGetGlobal(m driver.Module, name string) (at driver.Ptr, bytes uint64, r driver.Result) {
	if strings.IndexByte(name, 0) >= 0 {
		return 0, 0, driver.NotFound
	}
	text := terminated([]byte(name))
	f := take()
	r = f.call(d.cuModuleGetGlobal, f.at(0), f.at(1), uintptr(m), f.held(unsafe.Pointer(&text[0])))
	at, bytes = driver.Ptr(f.out[0]), f.out[1]
	f.give()
	return at, bytes, r
}

func (d *library) FuncGetAttribute(a driver.FuncAttribute, fn driver.Function) (int, driver.Result) {
	f := take()
	r := f.call(d.cuFuncGetAttribute, f.at(0), uintptr(a), uintptr(fn))
	value := f.int(0)
	f.give()
	return value, r
}

func (d *library) FuncSetAttribute(a driver.FuncAttribute, fn driver.Function, value int) driver.Result {
	return call(d.cuFuncSetAttribute, uintptr(fn), uintptr(a), uintptr(value))
}

func (d *library) FuncLoad(fn driver.Function) driver.Result {
	if d.cuFuncLoad == 0 {
		return driver.Success
	}
	return call(d.cuFuncLoad, uintptr(fn))
}

func (d *library) FuncGetParamInfo(fn driver.Function, i int) (offset, size uint64, r driver.Result) {
	f := take()
	r = f.call(d.cuFuncGetParamInfo, uintptr(fn), uintptr(i), f.at(0), f.at(1))
	offset, size = f.out[0], f.out[1]
	f.give()
	return offset, size, r
}

// terminated is a copy with a NUL after it.
func terminated(text []byte) []byte {
	c := make([]byte, len(text)+1)
	copy(c, text)
	return c
}
