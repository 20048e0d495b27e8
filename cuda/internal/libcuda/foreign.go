//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

func (d *library) LaunchForeign(s driver.Stream, memory []driver.Memory, call func(at []unsafe.Pointer, s driver.Stream)) driver.Result {
	at := make([]unsafe.Pointer, len(memory))
	for i := range memory {
		at[i] = *(*unsafe.Pointer)(unsafe.Pointer(&memory[i].At)) // the device's memory, not Go's
	}
	call(at, s)
	return driver.Success
}
