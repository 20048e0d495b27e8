package cuda

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
)

// pool is the memory of a device, in two kinds of blocks.
//
// Blocks of get are for the default stream. Blocks put back can be reused on it at once, even if the GPU still uses them: the
// stream's order keeps the old work before the new.
//
// Blocks of getAny are for any stream. They are handed out only when the default stream is done with the memory; since that
// would often mean waiting, they have segments of their own unless memory is short. Once put back, they are not reused before
// all work submitted by then on every stream of the device is done: a fence of events tells.
//
// Fences need the driver, but blocks are put back from anywhere, by the garbage collector too: they queue until the next call
// that has entered the context. All methods are safe for concurrent use; the callers of all but watch have entered the context.
type pool struct {
	p             *primary
	defaultStream driver.Stream
	relief        func() bool // frees what is not needed right now, and tells whether there was something; may be nil

	mu      sync.Mutex
	arena   arena
	streams []driver.Stream // that may use blocks of getAny; defaultStream is the first
	queue   []*block        // put back, not fenced yet
	fences  []fence         // the oldest first
	pending uint64          // bytes in queue and fences
	events  events
	spare   []*block
	closed  bool

	clock  uint64 // counts blocks put back by the default stream
	passed uint64 // the clock up to which the default stream's work is known to be done
}

// block is a piece of device memory with a count of users.
type block struct {
	ptr   driver.Ptr
	bytes uint64

	pool   *pool
	span   *span
	shared bool // of getAny
	users  atomic.Int32

	module *Module // whose variable it is; the pool has nothing to do with it then
}

// fence is what blocks wait for.
type fence struct {
	events []driver.Event
	blocks []*block
	clock  uint64
}

// newPool makes the pool of a device whose default stream is given. Segments take at most limit bytes, if that is not 0. The default
// stream must never be capturing.
func newPool(p *primary, defaultStream driver.Stream, limit uint64) *pool {
	if limit == 0 {
		limit = math.MaxUint64
	}
	m := &pool{p: p, defaultStream: defaultStream, streams: []driver.Stream{defaultStream}, events: events{p: p}}
	m.arena = arena{from: deviceMemory{p}, limit: limit, reclaim: m.drain}
	return m
}

// deviceMemory is a context's own allocator.
type deviceMemory struct{ p *primary }

func (d deviceMemory) alloc(bytes uint64) (uint64, error) {
	at, r := d.p.drv.MemAlloc(bytes)
	return uint64(at), d.p.check("cuMemAlloc", r)
}

func (d deviceMemory) free(at uint64) error {
	return d.p.check("cuMemFree", d.p.drv.MemFree(driver.Ptr(at)))
}

// watch adds a stream that may use blocks of getAny.
func (m *pool) watch(s driver.Stream) {
	m.mu.Lock()
	m.streams = append(m.streams, s)
	m.mu.Unlock()
}

// unwatch removes a stream that will be destroyed, or that begins to capture, when no event may be recorded on it. What it has
// been given is still waited for: the default stream does, or, if that fails, the host, now.
func (m *pool) unwatch(s driver.Stream) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams = slices.DeleteFunc(m.streams, func(x driver.Stream) bool { return x == s })
	e, err := m.record(s)
	if err == nil {
		err = m.p.check("cuStreamWaitEvent", m.p.drv.StreamWaitEvent(m.defaultStream, e))
		m.events.put(e, false) // the wait takes the event as it is now
	}
	if err != nil {
		err = m.p.check("cuStreamSynchronize", m.p.drv.StreamSynchronize(s))
	}
	return err
}

// get returns a block of at least the given size, 0 included, for work on the default stream. The caller is its user, until
// release. Errors wrap compute.ErrOutOfMemory.
func (m *pool) get(bytes uint64) (*block, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.request(bytes, false)
}

// getAny returns a block for work on any stream. It waits if the default stream still uses the memory, without blocking
// others.
func (m *pool) getAny(bytes uint64) (*block, error) {
	m.mu.Lock()
	b, err := m.request(bytes, true)
	if err != nil || b.span.touched <= m.passed {
		m.mu.Unlock()
		return b, err
	}
	clock := m.clock
	e, err := m.record(m.defaultStream)
	m.mu.Unlock() // others need not wait
	if err == nil {
		err = m.p.check("cuEventSynchronize", m.p.drv.EventSynchronize(e))
		m.events.put(e, false)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, device.Closed("device memory")
	}
	if err != nil {
		m.put(b, 0)
		return nil, err
	}
	m.passed = max(m.passed, clock)
	return b, nil
}

// request is take, repeated after reclaiming if memory is short. The lock is held except while reclaiming.
func (m *pool) request(bytes uint64, shared bool) (*block, error) {
	b, err := m.take(bytes, shared)
	if m.relief == nil || !errors.Is(err, compute.ErrOutOfMemory) {
		return b, err
	}
	m.mu.Unlock()
	came := m.relief()
	m.mu.Lock()
	if !came {
		return nil, err
	}
	return m.take(bytes, shared)
}

func (m *pool) take(bytes uint64, shared bool) (*block, error) {
	if m.closed {
		return nil, device.Closed("device memory")
	}
	if err := m.collect(); err != nil {
		return nil, err
	}
	var c class
	if shared {
		c = kind
	}
	s, err := m.arena.get(bytes, c)
	if err != nil {
		return nil, m.explain(bytes, err)
	}
	var b *block
	if n := len(m.spare); n > 0 {
		b, m.spare = m.spare[n-1], m.spare[:n-1]
	} else {
		b = &block{pool: m}
	}
	b.ptr, b.bytes, b.span, b.shared = driver.Ptr(s.at), s.size, s, shared
	b.users.Store(1)
	return b, nil
}

// retain adds a user.
func (b *block) retain() *block {
	b.users.Add(1)
	return b
}

// release ends one user's use; the last one's puts the block back. It may be called from any thread, without a context, after
// the pool was closed too. A user of a block of get has submitted, on the default stream, all that uses it.
func (b *block) release() {
	if b.users.Add(-1) > 0 {
		return
	}
	if b.module != nil {
		b.module.release()
		return
	}
	m := b.pool
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
	case b.shared:
		m.queue = append(m.queue, b)
		m.pending += b.bytes
	default:
		m.clock++
		m.put(b, m.clock)
	}
}

func (m *pool) put(b *block, touched uint64) {
	m.arena.put(b.span, touched)
	b.span = nil
	m.spare = append(m.spare, b)
}

// collect fences what was queued and puts back what waits for fences that have passed.
func (m *pool) collect() error {
	if len(m.queue) > 0 {
		if err := m.fence(); err != nil {
			return err
		}
	}
	for len(m.fences) > 0 {
		f := &m.fences[0]
		for len(f.events) > 0 {
			e := f.events[len(f.events)-1]
			r := m.p.drv.EventQuery(e)
			if r == driver.NotReady {
				return nil
			}
			if err := m.p.check("cuEventQuery", r); err != nil {
				return err
			}
			f.events = f.events[:len(f.events)-1]
			m.events.put(e, false)
		}
		m.open()
	}
	return nil
}

// fence makes the queue wait for all that was submitted so far.
func (m *pool) fence() error {
	events, err := m.marks()
	if err != nil {
		return err
	}
	m.fences = append(m.fences, fence{events, m.queue, m.clock})
	m.queue = nil
	return nil
}

// mark returns events after what all streams have been given, for putEvents.
func (m *pool) mark() ([]driver.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks()
}

func (m *pool) marks() ([]driver.Event, error) {
	var all []driver.Event
	for _, s := range m.streams {
		e, err := m.record(s)
		if err != nil {
			m.putEvents(all)
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (m *pool) putEvents(all []driver.Event) {
	for _, e := range all {
		m.events.put(e, false)
	}
}

// open puts back what waited for the oldest fence, which has passed.
func (m *pool) open() {
	f := m.fences[0]
	m.fences = m.fences[1:]
	m.passed = max(m.passed, f.clock)
	for _, b := range f.blocks {
		m.pending -= b.bytes
		m.put(b, 0)
	}
}

// record returns an event after what the stream has been given.
func (m *pool) record(s driver.Stream) (driver.Event, error) {
	e, err := m.events.get(false)
	if err != nil {
		return 0, err
	}
	if err := m.p.check("cuEventRecord", m.p.drv.EventRecord(e, s)); err != nil {
		m.events.put(e, false)
		return 0, err
	}
	return e, nil
}

// drain waits until all memory that was put back is free for everybody.
func (m *pool) drain() error {
	if len(m.queue) > 0 {
		if err := m.fence(); err != nil {
			return err
		}
	}
	for _, f := range m.fences {
		for _, e := range f.events {
			if err := m.p.check("cuEventSynchronize", m.p.drv.EventSynchronize(e)); err != nil {
				return err
			}
		}
	}
	if m.passed < m.clock {
		clock := m.clock
		if err := m.p.check("cuStreamSynchronize", m.p.drv.StreamSynchronize(m.defaultStream)); err != nil {
			return err
		}
		m.passed = clock
	}
	return m.collect()
}

// trim gives segments without blocks back to the driver. It waits for what is pending.
func (m *pool) trim() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return device.Closed("device memory")
	}
	if err := m.drain(); err != nil {
		return err
	}
	return m.arena.trim()
}

// close gives everything back, blocks in use included; nothing on the GPU uses them any more. Their release does nothing.
func (m *pool) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	for _, f := range m.fences {
		m.putEvents(f.events)
	}
	m.events.close()
	m.queue, m.fences, m.spare, m.pending = nil, nil, nil, 0
	return m.arena.close()
}
