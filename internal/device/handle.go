package device

import (
	"runtime"
	"sync"
)

// Handle is the use of memory by a tensor or a buffer, of which it is a field. It ends with Close, or when the garbage collector finds
// the whole unreachable. It is safe for concurrent use.
type Handle[M any] struct {
	mu      sync.Mutex
	memory  M
	open    bool
	release func(M)
	cleanup runtime.Cleanup
}

// Open takes over one use of memory, which release will end.
func (h *Handle[M]) Open(memory M, release func(M)) {
	h.memory, h.open, h.release = memory, true, release
	h.cleanup = runtime.AddCleanup(h, release, memory)
}

// Acquire returns the memory after retain has added a use, or false if the handle is closed.
func (h *Handle[M]) Acquire(retain func(M) M) (m M, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open {
		return m, false
	}
	return retain(h.memory), true
}

// IsOpen reports whether the handle has not been closed.
func (h *Handle[M]) IsOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Close ends the use of the memory. It is idempotent.
func (h *Handle[M]) Close() {
	h.mu.Lock()
	m, open := h.memory, h.open
	var none M
	h.memory, h.open = none, false
	h.mu.Unlock()
	if open {
		h.cleanup.Stop()
		h.release(m)
	}
}
