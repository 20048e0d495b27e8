//go:build !android && (amd64 || arm64)

package libcuda

import (
	"os"
	"runtime"

	"github.com/ebitengine/purego"
)

const systemLibrary = "libcuda.so.1"

// wslLibrary is where Windows puts the library into its Linux guests, which not every guest's loader searches.
const wslLibrary = "/usr/lib/wsl/lib/" + systemLibrary

const hintMissing = "install NVIDIA's driver, or put the library's folder into LD_LIBRARY_PATH"

func loadSystem() (uintptr, error) {
	return loadFirst(systemLibrary, wslLibrary)
}

// loadFirst loads a library by its name or, if the loader does not find that, by another path. The error is that of the name
// unless a file has the other path.
func loadFirst(name, fallback string) (uintptr, error) {
	handle, err := load(name)
	if err == nil {
		return handle, nil
	}
	if _, missing := os.Stat(fallback); missing != nil {
		return 0, err
	}
	return load(fallback)
}

// load loads a library. Like lookUp it stays on one thread: the loader keeps its last error by thread, and purego reads it in
// a second call.
func load(path string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func lookUp(handle uintptr, name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(handle, name)
}
