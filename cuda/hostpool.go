package cuda

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
)

// hostPool is pinned host memory. A block that is put back can be reused at once: callers put it back when the GPU is done
// with it. All methods are safe for concurrent use; the callers of all but release have entered the context.
type hostPool struct {
	p *primary

	mu     sync.Mutex
	arena  arena
	from   *hostMemory
	spare  []*hostBlock
	relief func() bool // as the pool's
	closed bool
}

// hostBlock is a piece of pinned memory with a count of users.
type hostBlock struct {
	at    unsafe.Pointer
	size  uint64
	pool  *hostPool
	span  *span
	users atomic.Int32
}

func newHostPool(p *primary) *hostPool {
	from := &hostMemory{p: p, base: map[uint64]unsafe.Pointer{}}
	return &hostPool{p: p, from: from, arena: arena{from: from, limit: math.MaxUint64}}
}

// hostMemory is the driver's allocator of pinned memory. Arenas work with numbers; the corresponding pointers are kept here,
// where the garbage collector sees them if the memory is the software GPU's.
type hostMemory struct {
	p    *primary
	base map[uint64]unsafe.Pointer
}

func (h *hostMemory) alloc(bytes uint64) (uint64, error) {
	at, r := h.p.drv.MemHostAlloc(bytes)
	if err := h.p.check("cuMemHostAlloc", r); err != nil {
		return 0, err
	}
	h.base[uint64(uintptr(at))] = at
	return uint64(uintptr(at)), nil
}

func (h *hostMemory) free(at uint64) error {
	p := h.base[at]
	delete(h.base, at)
	return h.p.check("cuMemFreeHost", h.p.drv.MemFreeHost(p))
}

// get returns a block of at least the given size, 0 included. The caller is its user, until release. Errors wrap
// compute.ErrOutOfMemory.
func (m *hostPool) get(bytes uint64) (*hostBlock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, device.Closed("pinned memory")
	}
	s, err := m.arena.get(bytes, 0)
	if err != nil {
		if errors.Is(err, compute.ErrOutOfMemory) {
			err = fmt.Errorf("pinned memory of the host: %d bytes requested, %d in use, %d cached: %w", bytes, m.arena.inUse,
				m.arena.cached, err)
		}
		return nil, err
	}
	var b *hostBlock
	if n := len(m.spare); n > 0 {
		b, m.spare = m.spare[n-1], m.spare[:n-1]
	} else {
		b = &hostBlock{pool: m}
	}
	b.at, b.size, b.span = unsafe.Add(m.from.base[s.segment.at], s.at-s.segment.at), s.size, s
	b.users.Store(1)
	return b, nil
}

// bytes is the memory, until release. Its size is the requested one, rounded up to 256.
func (b *hostBlock) bytes() []byte { return unsafe.Slice((*byte)(b.at), b.size) }

// pointer is where the memory is, from an offset on.
func (b *hostBlock) pointer(offset uint64) unsafe.Pointer { return unsafe.Add(b.at, offset) }

// retain adds a user.
func (b *hostBlock) retain() *hostBlock {
	b.users.Add(1)
	return b
}

// release ends one user's use; the last one's puts the block back. It may be called from any thread, without a context, after
// the pool was closed too.
func (b *hostBlock) release() {
	if b.users.Add(-1) > 0 {
		return
	}
	m := b.pool
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.arena.put(b.span, 0)
	b.at, b.span = nil, nil
	m.spare = append(m.spare, b)
}

// trim gives segments without blocks back to the driver.
func (m *hostPool) trim() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return device.Closed("pinned memory")
	}
	return m.arena.trim()
}

// close frees everything, blocks in use included. Their release then does nothing.
func (m *hostPool) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed, m.spare = true, nil
	return m.arena.close()
}
