//go:build amd64 || arm64

package wgpu

import (
	"path/filepath"
	"syscall"
	"time"
	"unsafe"
)

// FileName is the name of the library where it has no path.
const FileName = "wgpu_native.dll"

var (
	kernel32           = syscall.NewLazyDLL("kernel32.dll")
	loadLibraryEx      = kernel32.NewProc("LoadLibraryExW")
	getCurrentThreadID = kernel32.NewProc("GetCurrentThreadId")
)

// Where LoadLibraryEx looks: never in the current folder.
const (
	searchDefaultDirs = 0x1000 // LOAD_LIBRARY_SEARCH_DEFAULT_DIRS: of the program, of the system, added ones
	searchDLLLoadDir  = 0x100  // LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR: of the library, for what it needs in turn
)

func load(path string) (uintptr, error) {
	flags := uintptr(searchDefaultDirs)
	if path != FileName {
		flags |= searchDLLLoadDir // wants an absolute path
		abs, err := filepath.Abs(path)
		if err != nil {
			return 0, err
		}
		path = abs
	}
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	handle, _, err := loadLibraryEx.Call(uintptr(unsafe.Pointer(name)), 0, flags)
	if handle == 0 {
		return 0, err
	}
	return handle, nil
}

// lookUp returns 0 for what the library does not have.
func lookUp(handle uintptr, name string) uintptr {
	address, err := syscall.GetProcAddress(syscall.Handle(handle), name)
	if err != nil {
		return 0
	}
	return address
}

func thread() uintptr {
	id, _, _ := syscall.SyscallN(getCurrentThreadID.Addr()) // Call allocates an error, whose number is that of an earlier call
	return id
}

// Pause sleeps.
func Pause(d time.Duration) { time.Sleep(d) }

// Quietly calls f.
func Quietly(f func()) { f() }
