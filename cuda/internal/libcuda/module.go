//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"runtime"
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

// terminated is a copy with a NUL behind it.
func terminated(text []byte) []byte {
	c := make([]byte, len(text)+1)
	copy(c, text)
	return c
}

// logBytes is the size of each log of a compilation. The driver cuts what is longer.
const logBytes = 64 << 10

// jit are the options of a compilation in C's form: keys, and values that are numbers or pointers, both in a void*. The logs are
// always asked for.
type jit struct {
	keys        [6]uint32
	vals        [6]uintptr
	n           int
	info, error *[logBytes]byte
	pins        runtime.Pinner
	o           *driver.JIT
}

// Keys of options, CU_JIT_….
const (
	jitMaxRegisters     = 0
	jitInfoLog          = 3
	jitInfoLogSize      = 4
	jitErrorLog         = 5
	jitErrorLogSize     = 6
	jitGenerateLineInfo = 13
)

// The places of the logs' sizes, which C overwrites with what it wrote.
const infoSizeAt, errorSizeAt = 1, 3

func newJIT(o *driver.JIT) *jit {
	j := &jit{info: new([logBytes]byte), error: new([logBytes]byte), o: o}
	j.pins.Pin(j)
	j.pins.Pin(j.info)
	j.pins.Pin(j.error)
	j.add(jitInfoLog, uintptr(unsafe.Pointer(j.info)))
	j.add(jitInfoLogSize, logBytes)
	j.add(jitErrorLog, uintptr(unsafe.Pointer(j.error)))
	j.add(jitErrorLogSize, logBytes)
	if o != nil && o.MaxRegisters > 0 {
		j.add(jitMaxRegisters, uintptr(o.MaxRegisters))
	}
	if o != nil && o.LineInfo {
		j.add(jitGenerateLineInfo, 1)
	}
	return j
}

func (j *jit) add(key uint32, value uintptr) {
	j.keys[j.n], j.vals[j.n] = key, value
	j.n++
}

func (j *jit) count() uintptr   { return uintptr(j.n) }
func (j *jit) options() uintptr { return uintptr(unsafe.Pointer(&j.keys)) }
func (j *jit) values() uintptr  { return uintptr(unsafe.Pointer(&j.vals)) }

// finish hands out the logs.
func (j *jit) finish() {
	if j.o != nil {
		j.o.InfoLog = j.log(j.info, infoSizeAt)
		j.o.ErrorLog = j.log(j.error, errorSizeAt)
	}
	j.pins.Unpin()
}

// log is what C wrote into a log: up to the size that it wrote back, an unsigned int, and to the first NUL.
func (j *jit) log(b *[logBytes]byte, size int) string {
	n := *(*uint32)(unsafe.Pointer(&j.vals[size]))
	return cut(b[:min(n, logBytes)])
}
