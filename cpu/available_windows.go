package cpu

import (
	"syscall"
	"unsafe"
)

var memoryStatus = syscall.NewLazyDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// available returns how many bytes the process can still have: what the system can commit.
func available() uint64 {
	status := struct {
		length, load                                                                      uint32
		physical, freePhysical, commit, freeCommit, virtual, freeVirtual, extendedVirtual uint64
	}{}
	status.length = uint32(unsafe.Sizeof(status))
	if ok, _, _ := memoryStatus.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return addressSpace
	}
	return min(status.freeCommit, addressSpace)
}
