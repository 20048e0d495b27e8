package monotime

import (
	"math/bits"
	"syscall"
	"time"
	"unsafe"
)

var (
	counter   = syscall.NewLazyDLL("kernel32.dll").NewProc("QueryPerformanceCounter")
	frequency = func() (ticks int64) { // in a second; never 0 since Windows XP
		syscall.NewLazyDLL("kernel32.dll").NewProc("QueryPerformanceFrequency").Call(uintptr(unsafe.Pointer(&ticks)))
		return ticks
	}()
)

// Now returns the current moment.
func Now() Time {
	var ticks int64
	syscall.SyscallN(counter.Addr(), uintptr(unsafe.Pointer(&ticks))) // LazyProc.Call allocates
	high, low := bits.Mul64(uint64(ticks), uint64(time.Second))
	nanoseconds, _ := bits.Div64(high, low, uint64(frequency))
	return Time(nanoseconds)
}
