package cuda

import (
	"errors"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
)

// Memory is the use of a device's memory: counts, and sizes in bytes. InUse, Pending and Cached together are what the device
// has taken from the driver.
type Memory struct {
	InUse         uint64  `json:"in_use"`        // of buffers, tensors and runs, each rounded up to 256
	Pending       uint64  `json:"pending"`       // closed, but perhaps still in use by the GPU
	Cached        uint64  `json:"cached"`        // free, kept for reuse
	Peak          uint64  `json:"peak"`          // the most that was in use and pending
	LargestFree   uint64  `json:"largest_free"`  // the largest block that Cached has in one piece
	Fragmentation float64 `json:"fragmentation"` // 1 − LargestFree ÷ Cached; 0 if nothing is cached
	Segments      int     `json:"segments"`      // allocations of the driver that make up the memory
	Blocks        int     `json:"blocks"`        // in use and pending
	Allocations   uint64  `json:"allocations"`   // of the driver, so far
	Reused        uint64  `json:"reused"`        // blocks so far that needed none

	DeviceFree  uint64 `json:"device_free"` // of the whole GPU, other processes included, as the driver says
	DeviceTotal uint64 `json:"device_total"`

	Host HostMemory `json:"host"`
}

// HostMemory is pinned memory of the host: sizes in bytes.
type HostMemory struct {
	InUse       uint64 `json:"in_use"`
	Cached      uint64 `json:"cached"`
	Peak        uint64 `json:"peak"`
	Segments    int    `json:"segments"`
	Blocks      int    `json:"blocks"`
	Allocations uint64 `json:"allocations"` // of the driver, so far
	Reused      uint64 `json:"reused"`
}

// Memory returns the state of the device's memory.
func (d *Device) Memory() (Memory, error) {
	if err := d.lifetime().Begin(); err != nil {
		return Memory{}, err
	}
	defer d.life.End()
	if err := d.enter(); err != nil {
		return Memory{}, err
	}
	defer d.leave()
	m, err := d.pool.memory()
	m.Host = d.host.memory()
	return m, err
}

// Trim returns cached memory, that of compiled programs included, to the driver. It waits until the GPU no longer uses closed
// memory.
func (d *Device) Trim() error {
	if err := d.lifetime().Begin(); err != nil {
		return err
	}
	defer d.life.End()
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	d.dropIdle()
	d.stager.trim()
	return errors.Join(d.pool.trim(), d.host.trim())
}

// memory returns the state; the caller has entered the context.
func (m *pool) memory() (Memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Memory{}, device.Closed("device memory")
	}
	if err := m.collect(); err != nil {
		return Memory{}, err
	}
	a := &m.arena
	x := Memory{
		InUse: a.inUse - m.pending, Pending: m.pending, Cached: a.cached, Peak: a.high, LargestFree: a.largest(),
		Segments: len(a.segments), Blocks: a.blocks, Allocations: a.obtained, Reused: a.gets - a.obtained,
	}
	if a.cached > 0 {
		x.Fragmentation = 1 - float64(x.LargestFree)/float64(a.cached)
	}
	var r driver.Result
	x.DeviceFree, x.DeviceTotal, r = m.p.drv.MemGetInfo()
	return x, m.p.check("cuMemGetInfo", r)
}

// explain says what memory there is when there is too little.
func (m *pool) explain(asked uint64, err error) error {
	if !errors.Is(err, compute.ErrOutOfMemory) {
		return err
	}
	free, total, r := m.p.drv.MemGetInfo()
	if e := m.p.check("cuMemGetInfo", r); e != nil {
		return e
	}
	return fmt.Errorf("memory: %d bytes requested, %d in use, %d pending, %d cached, %d of %d free on the device: %w", asked,
		m.arena.inUse-m.pending, m.pending, m.arena.cached, free, total, err)
}

func (m *hostPool) memory() HostMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &m.arena
	return HostMemory{InUse: a.inUse, Cached: a.cached, Peak: a.high, Segments: len(a.segments), Blocks: a.blocks,
		Allocations: a.obtained, Reused: a.gets - a.obtained}
}
