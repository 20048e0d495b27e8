package softgpu

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/sim"
)

// primary is a device's primary context, from the first retain to the last release.
type primary struct {
	gpu    *GPU
	device *device
	handle driver.Context
	sim    *sim.GPU
	zero   *stream // the default stream
	// stop ends what runs when the context is destroyed.
	alive context.Context
	stop  context.CancelFunc
	// workers are the goroutines of its streams.
	workers sync.WaitGroup

	// Under the lock of the GPU:
	open    bool
	fault   driver.Result // of the first operation that failed
	detail  string
	memory  ranges[*deviceMemory]
	used    uint64 // bytes allocated
	streams map[*stream]bool
}

// PrimaryCtxSetFlags takes the flags of scheduling, which change nothing here.
func (g *GPU) PrimaryCtxSetFlags(d driver.Device, flags uint32) driver.Result {
	if r := g.begin("PrimaryCtxSetFlags"); r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	dev := g.deviceOf(d)
	switch {
	case dev == nil:
		return driver.InvalidDevice
	case flags&^0x1f != 0 || flags&7 == 3 || flags&7 > 4:
		return driver.InvalidValue
	}
	dev.flags = flags
	return driver.Success
}

// PrimaryCtxRetain makes the device's context, or counts one more user of it.
func (g *GPU) PrimaryCtxRetain(d driver.Device) (driver.Context, driver.Result) {
	if r := g.begin("PrimaryCtxRetain"); r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	dev := g.deviceOf(d)
	if dev == nil {
		return 0, driver.InvalidDevice
	}
	dev.retains++
	if dev.context == nil {
		cfg := g.cfg.Sim
		cfg.Base = (0x7f + g.contexts) << 40 // pointers of another context are none of this one
		g.contexts++
		c := &primary{gpu: g, device: dev, sim: sim.New(cfg), open: true, streams: map[*stream]bool{}}
		c.alive, c.stop = context.WithCancel(context.Background())
		c.zero = &stream{context: c}
		c.streams[c.zero] = true
		c.handle = driver.Context(g.add(c))
		dev.context = c
	}
	return dev.context.handle, driver.Success
}

// PrimaryCtxRelease gives a retain back. The last one ends what runs, drops what is queued and destroys everything of the
// context.
func (g *GPU) PrimaryCtxRelease(d driver.Device) driver.Result {
	if r := g.begin("PrimaryCtxRelease"); r != driver.Success {
		return r
	}
	dev := g.deviceOf(d)
	if dev == nil || dev.retains == 0 {
		g.mu.Unlock()
		if dev == nil {
			return driver.InvalidDevice
		}
		return driver.InvalidContext
	}
	if dev.retains--; dev.retains > 0 {
		g.mu.Unlock()
		return driver.Success
	}
	c := dev.context
	dev.context, c.open = nil, false
	c.stop()
	g.mu.Unlock()
	c.workers.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(c)
	return driver.Success
}

// sweep removes everything of a context, and counts what its user has left, unless the context is dead.
func (g *GPU) sweep(c *primary) {
	if c.fault == driver.Success {
		left := g.live(c)
		left.Contexts = 0
		g.leaked.add(left)
	}
	for handle, o := range g.handles {
		if ownerOf(o) == c {
			delete(g.handles, handle)
		}
	}
	maps.DeleteFunc(g.current, func(_ uint64, cur *primary) bool { return cur == c })
	kept := g.host.list[:0:0]
	for _, h := range g.host.list {
		if h.context == c {
			g.discard(h)
		} else {
			kept = append(kept, h)
		}
	}
	g.host.list = kept
	for id, cur := range g.captures {
		open := cur[:0:0]
		for _, k := range cur {
			if k.origin.context != c {
				open = append(open, k)
			}
		}
		g.setCaptures(id, open)
	}
}

// CtxSetCurrent makes the context that of the calling OS thread; 0 for none.
func (g *GPU) CtxSetCurrent(h driver.Context) driver.Result {
	if r := g.begin("CtxSetCurrent"); r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if h == 0 {
		delete(g.current, thread())
		return driver.Success
	}
	c, ok := lookup[*primary](g, uintptr(h))
	if !ok || !c.open {
		return driver.InvalidContext
	}
	g.current[thread()] = c
	return driver.Success
}

// CtxGetCurrent is the context of the calling OS thread, 0 for none.
func (g *GPU) CtxGetCurrent() (driver.Context, driver.Result) {
	if r := g.begin("CtxGetCurrent"); r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	if c := g.current[thread()]; c != nil {
		return c.handle, driver.Success
	}
	return 0, driver.Success
}

// CtxSynchronize waits for all streams of the context.
func (g *GPU) CtxSynchronize() driver.Result {
	c, r := g.enter("CtxSynchronize", unsafeCall)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	g.drain(c)
	return c.fault
}

// CtxEnablePeerAccess refuses: devices cannot access each other's memory.
func (g *GPU) CtxEnablePeerAccess(peer driver.Context) driver.Result {
	c, r := g.enter("CtxEnablePeerAccess", anyCall)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if p, ok := lookup[*primary](g, uintptr(peer)); !ok || p == c {
		return driver.InvalidContext
	}
	return driver.PeerAccessUnsupported
}

// Detail is the text of the context's first fault.
func (g *GPU) Detail(h driver.Context) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, ok := lookup[*primary](g, uintptr(h)); ok {
		return c.detail
	}
	return ""
}

// fail notes what an operation met. The first fault stays, and ends what other streams are at.
func (c *primary) fail(err error) {
	if c.fault != driver.Success || !c.open {
		return
	}
	c.stop()
	c.fault, c.detail = driver.LaunchFailed, err.Error()
	var f *sim.Fault
	if !errors.As(err, &f) {
		return
	}
	switch f.Kind {
	case sim.Assertion:
		c.fault = driver.Assert
	case sim.OutOfBounds:
		c.fault = driver.IllegalAddress
	case sim.Misaligned:
		c.fault = driver.MisalignedAddress
	case sim.IllegalInstruction, sim.BadOperand:
		c.fault = driver.IllegalInstruction
	case sim.Timeout, sim.Deadlock:
		c.fault = driver.LaunchTimeout
	}
}

// drain waits for what the streams of a context have been given so far. The lock is given up meanwhile.
func (g *GPU) drain(contexts ...*primary) {
	var marks []*mark
	for _, c := range contexts {
		for s := range c.streams {
			if s.running {
				m := newMark()
				s.push(&recordOp{m})
				marks = append(marks, m)
			}
		}
	}
	g.mu.Unlock()
	for _, m := range marks {
		<-m.done
	}
	g.mu.Lock()
}
