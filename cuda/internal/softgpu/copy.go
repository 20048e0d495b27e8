package softgpu

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/sim"
)

// hostCopy copies between the device and pinned memory.
type hostCopy struct {
	done
	at     uint64
	memory *hostMemory
	data   []byte // in it
	toHost bool
}

func (o *hostCopy) run(c *primary) error {
	c.gpu.mu.Lock()
	freed := o.memory.freed
	c.gpu.mu.Unlock()
	switch {
	case freed: // only graphs get here: frees wait for what is queued
		return &sim.Fault{Kind: sim.OutOfBounds, Detail: "a copy of pinned memory that has been freed"}
	case o.toHost:
		return c.sim.Read(o.data, o.at)
	}
	return c.sim.Write(o.at, o.data)
}

// deviceCopy copies on a device.
type deviceCopy struct {
	done
	on       *primary
	dst, src uint64
	n        int
}

func (o *deviceCopy) run(*primary) error { return o.on.sim.Copy(o.dst, o.src, o.n) }

// peerCopy copies between devices.
type peerCopy struct {
	done
	dst, src uint64
	to, from *primary
	n        int
}

func (o *peerCopy) run(*primary) error {
	b := make([]byte, o.n)
	if err := o.from.sim.Read(b, o.src); err != nil {
		return err
	}
	return o.to.sim.Write(o.dst, b)
}

// fill writes a pattern of one or four bytes.
type fill struct {
	done
	dst     uint64
	pattern []byte
	n       uint64 // bytes
}

func (o *fill) run(c *primary) error {
	chunk := bytes.Repeat(o.pattern, int(min(o.n, 1<<16))/len(o.pattern))
	for off := uint64(0); off < o.n; off += uint64(len(chunk)) {
		if err := c.sim.Write(o.dst+off, chunk[:min(o.n-off, uint64(len(chunk)))]); err != nil {
			return err
		}
	}
	return nil
}

// MemcpyHtoDAsync copies pinned memory to the device.
func (g *GPU) MemcpyHtoDAsync(dst driver.Ptr, src unsafe.Pointer, n uint64, s driver.Stream) driver.Result {
	return g.copyHost("MemcpyHtoDAsync", dst, src, n, s, false)
}

// MemcpyDtoHAsync copies to pinned memory.
func (g *GPU) MemcpyDtoHAsync(dst unsafe.Pointer, src driver.Ptr, n uint64, s driver.Stream) driver.Result {
	return g.copyHost("MemcpyDtoHAsync", src, dst, n, s, true)
}

func (g *GPU) copyHost(call string, at driver.Ptr, host unsafe.Pointer, n uint64, h driver.Stream, toHost bool) driver.Result {
	c, s, r := g.order(call, h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	base := uint64(uintptr(host))
	m, ok := g.host.around(base, n)
	if _, on := c.memory.around(uint64(at), n); n > 0 && (!ok || !on) {
		return driver.InvalidValue
	}
	if n == 0 {
		return driver.Success
	}
	return s.submit(&hostCopy{at: uint64(at), memory: m, data: m.data[base-m.base:][:n], toHost: toHost})
}

// MemcpyDtoDAsync copies on the device. The two ranges may not overlap.
func (g *GPU) MemcpyDtoDAsync(dst, src driver.Ptr, n uint64, h driver.Stream) driver.Result {
	c, s, r := g.order("MemcpyDtoDAsync", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if n == 0 {
		return driver.Success
	}
	_, to := c.memory.around(uint64(dst), n)
	_, from := c.memory.around(uint64(src), n)
	if !to || !from || uint64(dst-src)+n-1 < 2*n-1 {
		return driver.InvalidValue
	}
	return s.submit(&deviceCopy{on: c, dst: uint64(dst), src: uint64(src), n: int(n)})
}

// MemcpyPeerAsync copies between the devices of two contexts, which may be the same.
func (g *GPU) MemcpyPeerAsync(dst driver.Ptr, dstCtx driver.Context, src driver.Ptr, srcCtx driver.Context, n uint64,
	h driver.Stream) driver.Result {
	_, s, r := g.order("MemcpyPeerAsync", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	to, ok := lookup[*primary](g, uintptr(dstCtx))
	from, ok2 := lookup[*primary](g, uintptr(srcCtx))
	switch {
	case !ok || !ok2:
		return driver.InvalidContext
	case worse(to.fault, from.fault) != driver.Success:
		return worse(to.fault, from.fault)
	case n == 0:
		return driver.Success
	}
	_, ok = to.memory.around(uint64(dst), n)
	_, ok2 = from.memory.around(uint64(src), n)
	switch {
	case !ok || !ok2 || to == from && uint64(dst-src)+n-1 < 2*n-1:
		return driver.InvalidValue
	case to == from:
		return s.submit(&deviceCopy{on: to, dst: uint64(dst), src: uint64(src), n: int(n)})
	}
	return s.submit(&peerCopy{dst: uint64(dst), src: uint64(src), to: to, from: from, n: int(n)})
}

// MemsetD8Async sets bytes.
func (g *GPU) MemsetD8Async(dst driver.Ptr, value uint8, n uint64, s driver.Stream) driver.Result {
	return g.set("MemsetD8Async", dst, []byte{value}, n, s)
}

// MemsetD32Async sets words of four bytes, which have to be aligned.
func (g *GPU) MemsetD32Async(dst driver.Ptr, value uint32, words uint64, s driver.Stream) driver.Result {
	return g.set("MemsetD32Async", dst, binary.LittleEndian.AppendUint32(nil, value), words, s)
}

func (g *GPU) set(call string, dst driver.Ptr, pattern []byte, count uint64, h driver.Stream) driver.Result {
	c, s, r := g.order(call, h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	size := uint64(len(pattern))
	if count == 0 {
		return driver.Success
	}
	if count > g.cfg.Memory/size || uint64(dst)%size != 0 {
		return driver.InvalidValue
	}
	if _, ok := c.memory.around(uint64(dst), count*size); !ok {
		return driver.InvalidValue
	}
	return s.submit(&fill{dst: uint64(dst), pattern: pattern, n: count * size})
}

// order begins a call that queues work in a stream.
func (g *GPU) order(call string, h driver.Stream) (*primary, *stream, driver.Result) {
	c, r := g.enter(call, anyCall)
	if r != driver.Success {
		return nil, nil, r
	}
	s := g.streamOf(c, h)
	if s == nil {
		g.mu.Unlock()
		return nil, nil, driver.InvalidHandle
	}
	return c, s, r
}

// submit queues an operation, or captures it.
func (s *stream) submit(o operation) driver.Result {
	if s.capture != nil {
		return s.record(o)
	}
	s.push(o)
	return driver.Success
}
