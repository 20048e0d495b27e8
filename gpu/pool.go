package gpu

import (
	"container/list"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
)

// Memory is a device's use of buffers, in bytes except where it says otherwise. Buffers are counted with the size that
// they have, which the pool rounds up by at most an eighth.
type Memory struct {
	InUse   uint64 `json:"in_use"` // held by tensors, compiled programs and runs in flight
	Cached  uint64 `json:"cached"` // free, kept for reuse
	Peak    uint64 `json:"peak"`   // largest InUse ever
	Limit   uint64 `json:"limit"`  // of InUse and Cached together; 0 for none but the machine's
	Buffers int    `json:"buffers"`
}

// buffer is a reference-counted buffer; at zero it returns to the pool.
type buffer struct {
	webgpu.Object
	id   uint64 // never reused, unlike addresses
	kind webgpu.BufferKind
	size uint64 // of the bucket
	refs atomic.Int32
	pool *pool                 // nil: the memory is not the pool's
	base uint64                // offset in the object
	bad  atomic.Pointer[error] // why its contents are not valid
	idle *list.Element         // place among the free ones
}

func (b *buffer) retain() *buffer {
	b.refs.Add(1)
	return b
}

func (b *buffer) release() {
	if b.refs.Add(-1) == 0 && b.pool != nil {
		b.pool.put(b, true)
	}
}

// poison marks a buffer that was not created, or that a failed run should have filled. Runs that use it fail.
func (b *buffer) poison(err error) { b.bad.CompareAndSwap(nil, &err) }

// fault returns why the buffer must not be used, or nil.
func (b *buffer) fault() error {
	if err := b.bad.Load(); err != nil {
		return *err
	}
	return nil
}

// discard releases a buffer that must not be used again.
func (b *buffer) discard() {
	if b.refs.Add(-1) == 0 && b.pool != nil {
		b.pool.put(b, false)
	}
}

// foreign returns a buffer with one owner over memory that is not the pool's.
func (p *pool) foreign(o webgpu.Object, base, size uint64) *buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	b := &buffer{Object: o, id: p.lastID, kind: webgpu.StorageBuffer, size: size, base: base}
	b.refs.Store(1)
	return b
}

// pool keeps free buffers by kind and size. Sizes are rounded up to buckets, eight per power of two.
type pool struct {
	drv       webgpu.Driver
	maxBuffer uint64
	limit     uint64
	reclaim   func() // makes holders of idle buffers release them

	mu     sync.Mutex
	free   [webgpu.BufferKinds]map[uint64][]*buffer
	lru    list.List // of free *buffer, least recently freed first
	live   map[*buffer]bool
	use    Memory
	lastID uint64
	closed bool
}

// keep is the number of bytes that the pool may always hold for reuse.
const keep = 64 << 20

func newPool(drv webgpu.Driver, maxBuffer, limit uint64, reclaim func()) *pool {
	p := &pool{drv: drv, maxBuffer: maxBuffer, limit: limit, reclaim: reclaim, live: map[*buffer]bool{}}
	for k := range p.free {
		p.free[k] = map[uint64][]*buffer{}
	}
	return p
}

// bucket rounds a size up.
func bucket(n uint64) uint64 {
	const least = 256
	if n <= least {
		return least
	}
	step := uint64(1) << max(bits.Len64(n-1)-4, 4) // an eighth of the power of two below n, at least 16
	return (n + step - 1) &^ (step - 1)
}

// get returns a buffer of at least n bytes with one owner. Its contents are undefined.
func (p *pool) get(kind webgpu.BufferKind, n uint64) (*buffer, error) {
	if n > p.maxBuffer {
		return nil, fmt.Errorf("a buffer of %d bytes, the device allows %d: %w", n, p.maxBuffer, compute.ErrTooLarge)
	}
	size := min(bucket(n), p.maxBuffer)
	b, err := p.tryGet(kind, size)
	for err == nil && b.fault() != nil { // it failed while it was free
		b.discard()
		b, err = p.tryGet(kind, size)
	}
	if errors.Is(err, compute.ErrOutOfMemory) {
		p.reclaim()
		p.trim(0)
		b, err = p.tryGet(kind, size)
	}
	return b, err
}

func (p *pool) tryGet(kind webgpu.BufferKind, size uint64) (*buffer, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, compute.ErrClosed
	}
	if list := p.free[kind][size]; len(list) > 0 {
		b := list[len(list)-1]
		p.free[kind][size] = list[:len(list)-1]
		p.lru.Remove(b.idle)
		p.use.Cached -= size
		p.take(size)
		b.refs.Store(1)
		p.mu.Unlock()
		return b, nil
	}
	if used := p.use.InUse + p.use.Cached; p.limit > 0 && used+size > p.limit {
		use := p.use
		p.mu.Unlock()
		return nil, fmt.Errorf("%d bytes more would exceed the limit of %d (in use %d, cached %d): %w",
			size, p.limit, use.InUse, use.Cached, compute.ErrOutOfMemory)
	}
	p.lastID++
	b := &buffer{id: p.lastID, kind: kind, size: size, pool: p}
	p.take(size) // reserve before the lock is given up: creating may take long
	p.use.Buffers++
	p.mu.Unlock()

	object, err := p.drv.NewBuffer(kind, size)
	if err == nil {
		p.drv.Ready(object, func(err error) {
			if err != nil {
				b.poison(err)
			}
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.use.InUse -= size
		p.use.Buffers--
		return nil, err
	}
	b.Object = object
	b.refs.Store(1)
	p.live[b] = true
	return b, nil
}

func (p *pool) take(size uint64) {
	p.use.InUse += size
	p.use.Peak = max(p.use.Peak, p.use.InUse)
}

func (p *pool) put(b *buffer, reusable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed { // close has freed it
		return
	}
	p.use.InUse -= b.size
	if !reusable || b.fault() != nil {
		p.drop(b)
		return
	}
	p.free[b.kind][b.size] = append(p.free[b.kind][b.size], b)
	p.use.Cached += b.size
	b.idle = p.lru.PushBack(b)
	p.shrink(max(keep, p.use.Peak))
}

// drop frees a buffer under the lock: after close the driver may be gone.
func (p *pool) drop(b *buffer) {
	p.use.Buffers--
	delete(p.live, b)
	b.Free()
}

// trim frees the least recently used free buffers until at most bound bytes of them are left.
func (p *pool) trim(bound uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shrink(bound)
}

func (p *pool) shrink(bound uint64) {
	for p.use.Cached > bound && p.lru.Len() > 0 {
		b := p.lru.Remove(p.lru.Front()).(*buffer)
		same := p.free[b.kind][b.size]
		i := slices.Index(same, b)
		p.free[b.kind][b.size] = slices.Delete(same, i, i+1)
		p.use.Cached -= b.size
		p.drop(b)
	}
}

func (p *pool) memory() Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.use
	m.Limit = p.limit
	return m
}

// close frees all buffers, whoever holds them; later releases do nothing.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for b := range p.live {
		b.Free()
	}
	p.live, p.use = nil, Memory{Peak: p.use.Peak}
	p.lru.Init()
}
