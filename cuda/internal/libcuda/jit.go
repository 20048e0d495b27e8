//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"runtime"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// logBytes is the size of each log of a compilation. The driver cuts what is longer.
const logBytes = 64 << 10

// jit are the options of a compilation in C's form: keys, and values that are numbers or pointers, both in a void*. The logs
// are always requested.
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
