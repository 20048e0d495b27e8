//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package wgpu

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// load loads a library. Like lookUp it stays on one thread: the loader keeps its last error by thread, and purego reads it in a
// second call.
func load(path string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// lookUp returns 0 for what the library does not have.
func lookUp(handle uintptr, name string) uintptr {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return address
}

// libc calls a function of C's library.
func libc(name string, args ...uintptr) uintptr {
	return Call(lookUp(purego.RTLD_DEFAULT, name), args...)
}
