//go:build amd64 || arm64

package libcuda

import (
	"syscall"
	"unsafe"
)

const systemLibrary = "nvcuda.dll"

const hintMissing = "install NVIDIA's driver"

// loadLibraryEx is the one that takes flags: syscall.LoadLibrary would look into the current folder too.
var loadLibraryEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LoadLibraryExW")

const searchSystem32 = 0x800 // LOAD_LIBRARY_SEARCH_SYSTEM32

func loadSystem() (uintptr, error) {
	name, err := syscall.UTF16PtrFromString(systemLibrary)
	if err != nil {
		return 0, err
	}
	handle, _, err := loadLibraryEx.Call(uintptr(unsafe.Pointer(name)), 0, searchSystem32)
	if handle == 0 {
		return 0, err
	}
	return handle, nil
}

func load(path string) (uintptr, error) {
	handle, err := syscall.LoadLibrary(path)
	return uintptr(handle), err
}

func lookUp(handle uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(handle), name)
}
