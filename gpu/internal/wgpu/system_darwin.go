//go:build amd64 || arm64

package wgpu

import (
	"sync"
	"time"

	"github.com/ebitengine/purego"
)

// FileName is the name of the library where it has no path.
const FileName = "libwgpu_native.dylib"

var pthreadSelf = sync.OnceValue(func() uintptr { return lookUp(purego.RTLD_DEFAULT, "pthread_self") })

func thread() uintptr { return Call(pthreadSelf()) }

// Pause sleeps.
func Pause(d time.Duration) { time.Sleep(d) }

// Quietly calls f.
func Quietly(f func()) { f() }
