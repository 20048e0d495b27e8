package softgpu

import (
	"bytes"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/sim"
)

// deviceMemory is an allocation, or a variable of a module.
type deviceMemory struct {
	base, size uint64
	variable   bool
}

func (m *deviceMemory) extent() (at, bytes uint64) { return m.base, m.size }

// hostMemory is pinned memory.
type hostMemory struct {
	context *primary
	base    uint64
	data    []byte
	freed   bool
}

func (m *hostMemory) extent() (at, bytes uint64) { return m.base, uint64(len(m.data)) }

// garbage is what new memory is full of, and host memory that was freed.
const garbage = 0xff

var garbageBytes = bytes.Repeat([]byte{garbage}, 1<<20)

// discard frees pinned memory.
func (g *GPU) discard(m *hostMemory) {
	m.freed = true
	g.pinned -= uint64(len(m.data))
	scribble(m.data)
}

func scribble(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, garbageBytes):]
	}
}

// maxPinned is how much memory may be pinned at a time.
const maxPinned = 8 << 30

// pageSize is what pinned memory begins at a multiple of.
const pageSize = 4096

// MemGetInfo is what is free on the device of the current context, and what it has.
func (g *GPU) MemGetInfo() (free, total uint64, r driver.Result) {
	c, r := g.enter("MemGetInfo", anyCall)
	if r != driver.Success {
		return 0, 0, r
	}
	defer g.mu.Unlock()
	return g.cfg.Memory - c.used, g.cfg.Memory, driver.Success
}

// MemAlloc allocates memory of the device, at a multiple of 256.
func (g *GPU) MemAlloc(n uint64) (driver.Ptr, driver.Result) {
	c, r := g.enter("MemAlloc", unsafeCall)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	switch {
	case n == 0:
		return 0, driver.InvalidValue
	case n > g.cfg.Memory-c.used:
		return 0, driver.OutOfMemory
	}
	c.used += n
	g.mu.Unlock()
	at, err := c.sim.Alloc(int(n)) // waits for the operation that runs
	if err == nil && g.cfg.Sim.Checks&sim.CheckInit == 0 {
		for off := uint64(0); off < n && err == nil; off += uint64(len(garbageBytes)) {
			err = c.sim.Write(at+off, garbageBytes[:min(n-off, uint64(len(garbageBytes)))])
		}
	}
	g.mu.Lock()
	switch {
	case !c.open:
		return 0, driver.InvalidContext
	case err != nil:
		c.used -= n
		return 0, driver.OutOfMemory
	}
	c.memory.insert(&deviceMemory{base: at, size: n})
	return driver.Ptr(at), driver.Success
}

// MemFree frees what MemAlloc returned, when everything that is queued has run.
func (g *GPU) MemFree(p driver.Ptr) driver.Result {
	c, r := g.enter("MemFree", unsafeCall|destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	if m, ok := c.memory.at(uint64(p)); !ok || m.variable {
		return driver.InvalidValue
	}
	g.drain(c)
	m, ok := c.memory.at(uint64(p)) // it may be gone meanwhile
	if !ok {
		return driver.InvalidValue
	}
	c.memory.remove(m.base)
	c.used -= m.size
	g.mu.Unlock()
	err := c.sim.Free(m.base)
	g.mu.Lock()
	if err != nil {
		c.fail(err)
	}
	return c.fault
}

// MemHostAlloc returns pinned memory, which all contexts may copy from and to.
func (g *GPU) MemHostAlloc(n uint64) (unsafe.Pointer, driver.Result) {
	c, r := g.enter("MemHostAlloc", unsafeCall)
	if r != driver.Success {
		return nil, r
	}
	defer g.mu.Unlock()
	switch {
	case n == 0:
		return nil, driver.InvalidValue
	case n > maxPinned-g.pinned:
		return nil, driver.OutOfMemory
	}
	g.pinned += n
	buf := make([]byte, n+pageSize)
	skip := -uintptr(unsafe.Pointer(&buf[0])) % pageSize
	m := &hostMemory{context: c, data: buf[skip:][:n:n]}
	m.base = uint64(uintptr(unsafe.Pointer(&m.data[0])))
	scribble(m.data)
	g.host.insert(m)
	return unsafe.Pointer(&m.data[0]), driver.Success
}

// MemFreeHost frees what MemHostAlloc returned, when everything that is queued has run.
func (g *GPU) MemFreeHost(p unsafe.Pointer) driver.Result {
	c, r := g.enter("MemFreeHost", unsafeCall|destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	at := uint64(uintptr(p))
	if _, ok := g.host.at(at); !ok {
		return driver.InvalidValue
	}
	var all []*primary
	for _, d := range g.devices {
		if d.context != nil {
			all = append(all, d.context)
		}
	}
	g.drain(all...)
	m, ok := g.host.at(at)
	if !ok {
		return driver.InvalidValue
	}
	g.host.remove(at)
	g.discard(m)
	return c.fault
}
