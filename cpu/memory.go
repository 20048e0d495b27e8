package cpu

import (
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Memory is the memory that a device holds, in bytes.
type Memory struct {
	InUse  uint64 `json:"in_use"` // held by tensors and runs in flight
	Cached uint64 `json:"cached"` // free, kept for reuse
	Peak   uint64 `json:"peak"`   // largest InUse ever
	Limit  uint64 `json:"limit"`  // of InUse and Cached together; 0 for none but the machine's
}

// view is the elements of a value; its methods return them as slices of their type.
type view struct {
	p unsafe.Pointer
	n int
}

func viewOf(data any, n int) view {
	b := program.Bytes(data)
	if len(b) == 0 {
		return view{}
	}
	return view{unsafe.Pointer(&b[0]), n}
}

func (v view) f32() []float32       { return unsafe.Slice((*float32)(v.p), v.n) }
func (v view) f64() []float64       { return unsafe.Slice((*float64)(v.p), v.n) }
func (v view) i32() []int32         { return unsafe.Slice((*int32)(v.p), v.n) }
func (v view) u32() []uint32        { return unsafe.Slice((*uint32)(v.p), v.n) }
func (v view) f16() []compute.F16   { return unsafe.Slice((*compute.F16)(v.p), v.n) }
func (v view) bf16() []compute.BF16 { return unsafe.Slice((*compute.BF16)(v.p), v.n) }
func (v view) u8() []uint8          { return unsafe.Slice((*uint8)(v.p), v.n) }
func (v view) u16() []uint16        { return unsafe.Slice((*uint16)(v.p), v.n) }

func (v view) bytes(d compute.DType) []byte { return unsafe.Slice((*byte)(v.p), v.n*d.Size()) }

// memory hands out blocks in size classes and keeps free ones for reuse.
type memory struct {
	mu     sync.Mutex
	free   map[int][]*block
	used   Memory
	closed bool
	poison bool // for tests: blocks are full of NaN

	available func() uint64 // bytes that the system has for this process
}

// maxCached bounds what is kept for reuse.
const maxCached = 1 << 30

// block is reference-counted memory; at zero it returns to its pool.
type block struct {
	from *memory
	data []uint64 // 8-byte words, for their alignment
	refs atomic.Int32
	lock tensorLock // of the runs that use it as a tensor
}

func newMemory(limit uint64) *memory {
	return &memory{free: map[int][]*block{}, used: Memory{Limit: limit}, available: available}
}

// class rounds a size in bytes up to one of eight steps per power of two.
func class(n int) int {
	const least = 4096
	if n <= least {
		return least
	}
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) &^ (step - 1)
}

// Take returns a block of at least n bytes with one owner; nil for none. Its contents are undefined.
func (m *memory) Take(n int) (*block, error) {
	if n == 0 {
		return nil, nil
	}
	size := class(n)
	m.mu.Lock()
	defer m.mu.Unlock()
	var b *block
	if list := m.free[size]; len(list) > 0 {
		b = list[len(list)-1]
		m.free[size] = list[:len(list)-1]
		m.used.Cached -= uint64(size)
	} else {
		if m.used.Limit > 0 && m.used.InUse+m.used.Cached+uint64(size) > m.used.Limit {
			m.drop()
			if m.used.InUse+uint64(size) > m.used.Limit {
				return nil, fmt.Errorf("%d bytes beside %d in use, limit %d: %w", n, m.used.InUse, m.used.Limit, compute.ErrOutOfMemory)
			}
		}
		if size >= checkedSize {
			if err := m.fits(size); err != nil {
				return nil, err
			}
		}
		b = &block{from: m, data: make([]uint64, size/8)}
		if size >= hugeSize {
			hugePages(b.data)
		}
	}
	if m.poison {
		for i := range b.data {
			b.data[i] = 0xffff_ffff_ffff_ffff // NaN as float64, float32, float16 and bfloat16
		}
	}
	b.refs.Store(1)
	m.used.InUse += uint64(size)
	m.used.Peak = max(m.used.Peak, m.used.InUse)
	return b, nil
}

// addressSpace is what a process of 64 bits can address, in bytes. Beyond it the runtime panics.
const addressSpace = 1 << 47

// hugeSize is from how many bytes on a block is worth large pages, of 2 MB mostly.
const hugeSize = 1 << 22

// checkedSize is from how many bytes on a new block is held against what the system has: asking takes some ten microseconds.
const checkedSize = 1 << 24

// fits tells whether the system has memory for a new block: where it has not, the Go runtime would end the process. The caller holds
// the lock.
func (m *memory) fits(size int) error {
	if uint64(size) <= m.available() {
		return nil
	}
	m.drop()
	debug.FreeOSMemory()
	if free := m.available(); uint64(size) > free {
		return fmt.Errorf("%d bytes beside %d in use, the system has %d: %w", size, m.used.InUse, free, compute.ErrOutOfMemory)
	}
	return nil
}

func (b *block) retain() *block {
	if b != nil {
		b.refs.Add(1)
	}
	return b
}

func (b *block) release() {
	if b == nil || b.refs.Add(-1) != 0 {
		return
	}
	m, size := b.from, len(b.data)*8
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.InUse -= uint64(size)
	if !m.closed && m.used.Cached+uint64(size) <= maxCached {
		m.used.Cached += uint64(size)
		m.free[size] = append(m.free[size], b)
	}
}

// view is n elements from a byte offset on.
func (b *block) view(offset, n int) view {
	if b == nil || n == 0 {
		return view{}
	}
	return view{unsafe.Pointer(&b.data[offset/8]), n}
}

func (m *memory) figures() Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

func (m *memory) drop() {
	clear(m.free)
	m.used.Cached = 0
}

func (m *memory) trim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop()
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.drop()
}
