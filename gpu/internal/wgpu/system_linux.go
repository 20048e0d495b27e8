//go:build !android && (amd64 || arm64)

package wgpu

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// FileName is the name of the library where it has no path.
const FileName = "libwgpu_native.so"

func thread() uintptr { return uintptr(syscall.Gettid()) }

// Pause sleeps. Go's timers are good to a millisecond only when nothing else runs.
func Pause(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&t, nil)
	}
}

// Quietly calls f without noise. Mesa's device-select layer looks for a Wayland compositor whenever devices are enumerated, and
// libwayland complains on stderr when XDG_RUNTIME_DIR is unset, as it is in services and containers. Any absolute path silences it;
// this one cannot be anybody's socket. Only C's environment changes, only where it was unset, and only for the call. Callers take
// turns.
func Quietly(f func()) {
	name, value := append([]byte("XDG_RUNTIME_DIR"), 0), append([]byte("/nonexistent"), 0)
	at := uintptr(unsafe.Pointer(&name[0]))
	if libc("getenv", at) == 0 {
		libc("setenv", at, uintptr(unsafe.Pointer(&value[0])), 0)
		defer func() {
			libc("unsetenv", at)
			runtime.KeepAlive(name)
			runtime.KeepAlive(value)
		}()
	}
	f()
}
