package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/wavelane/wavelane/compute"
)

// WebAssembly addresses 4 GiB, and a Go program that finds no memory ends. Large pieces are therefore requested first, and
// refused while there is still room for what goes with them: the same again for a copy, and the garbage of earlier calls.
const (
	addressable = 4 << 30
	large       = 8 << 20
	deviceLimit = 3 << 29 // of tensors and temporaries of a CPU device
)

// reserve refuses a slice of that size if it would not leave room.
func reserve(bytes int) error {
	if bytes < large {
		return nil
	}
	var s runtime.MemStats
	free := func() int {
		runtime.ReadMemStats(&s)
		return addressable - int(s.Sys-s.HeapReleased) + int(s.HeapIdle-s.HeapReleased)
	}
	if bytes <= free()/4 {
		return nil
	}
	debug.FreeOSMemory() // collects garbage, too
	if n := free(); bytes > n/2 {
		return fmt.Errorf("%d MiB of the %d MiB that WebAssembly has left: %w", bytes>>20, n>>20, compute.ErrOutOfMemory)
	}
	return nil
}
