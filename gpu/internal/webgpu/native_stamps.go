//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"errors"
	"math"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/gpu/internal/wgpu"
	"github.com/wavelane/wavelane/internal/monotime"
)

// stamps are the timestamps of a submission: the first and the last, then its commands that are timestamps.
type stamps struct {
	d       *native
	count   uint32
	queries uintptr
	// Queries are resolved into the first, and read from the second.
	resolved, staging *nativeBuffer
}

func (s *stamps) free(d *native) {
	wgpu.Call(d.l.QuerySetRelease, s.queries)
	wgpu.Call(d.l.BufferRelease, s.resolved.ref)
	wgpu.Call(d.l.BufferRelease, s.staging.ref)
}

// resolve records the last timestamp, and the copy to the staging buffer.
func (s *stamps) resolve(c *wgpu.Frame, encoder uintptr) {
	c.Call(s.d.l.CommandEncoderWriteTimestamp, encoder, s.queries, 1)
	c.Call(s.d.l.CommandEncoderResolveQuerySet, encoder, s.queries, 0, uintptr(s.count), s.resolved.ref, 0)
	c.Call(s.d.l.CommandEncoderCopyBufferToBuffer, encoder, s.resolved.ref, 0, s.staging.ref, 0, uintptr(s.staging.size))
}

// read returns the ticks, which last until the staging buffer is unmapped.
func (s *stamps) read(c *wgpu.Frame) []uint64 {
	s.staging.mapped(c)
	return unsafe.Slice((*uint64)(s.staging.at), s.count)
}

func (d *native) takeStamps(count int) (*stamps, error) {
	d.mu.Lock()
	if n := len(d.stamps); n > 0 && count == 2 {
		s := d.stamps[n-1]
		d.stamps = d.stamps[:n-1]
		d.mu.Unlock()
		return s, nil
	}
	d.mu.Unlock()
	c := d.begin()
	defer c.End()
	s := &stamps{d: d, count: uint32(count)}
	buffer := func(kind BufferKind, usage uint64) *nativeBuffer {
		b := &nativeBuffer{d: d, kind: kind, size: 8 * uint64(count)}
		if !c.Failed() {
			b.ref = d.newBuffer(c, usage, b.size, false)
		}
		return b
	}
	c.Queries = wgpu.QuerySetDescriptor{Type: wgpu.QueryType_Timestamp, Count: s.count}
	s.queries = c.Call(d.l.DeviceCreateQuerySet, d.device, wgpu.Address(&c.Queries))
	s.resolved = buffer(StorageBuffer, wgpu.BufferUsage_QueryResolve|wgpu.BufferUsage_CopySrc)
	s.staging = buffer(ReadbackBuffer, usages[ReadbackBuffer])
	if c.Failed() {
		c.Call(d.l.QuerySetRelease, s.queries)
		for _, b := range []*nativeBuffer{s.resolved, s.staging} {
			if b.ref != 0 {
				c.Call(d.l.BufferRelease, b.ref)
			}
		}
		return nil, callError("create timestamp queries", c)
	}
	return s, nil
}

func (d *native) giveStamps(s *stamps) {
	switch {
	case s == nil:
		return
	case s.count != 2: // the next run may need more or fewer
		s.free(d)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stamps = append(d.stamps, s)
}

// clock is a reading of the GPU's clock: it showed ticks at some moment within spread of at.
type clock struct {
	ticks  uint64
	at     monotime.Time
	spread time.Duration
}

// calibrate finds the length of a timestamp tick, which this version of the library does not tell: it reads the GPU's clock
// twice, so far apart that when exactly matters to no more than a percent.
func (d *native) calibrate() error {
	const (
		percent  = 100
		patience = time.Second // on a machine too busy for good readings the last one has to do
	)
	s, err := d.takeStamps(2)
	if err != nil {
		return err
	}
	defer d.giveStamps(s)
	if _, err := d.readClock(s); err != nil { // the first submission of a device is slow
		return err
	}
	from, err := d.bestClock(s)
	if err != nil {
		return err
	}
	for apart := 20 * time.Millisecond; ; apart *= 2 {
		time.Sleep(apart)
		to, err := d.bestClock(s)
		if err != nil {
			return err
		}
		passed := to.at.Sub(from.at)
		if (from.spread+to.spread)*percent > passed && passed < patience {
			continue
		}
		if d.period = 1; to.ticks > from.ticks {
			d.period = float64(passed) / float64(to.ticks-from.ticks)
		}
		if d.period > 0.97 && d.period < 1.03 { // most clocks tick in nanoseconds
			d.period = 1
		}
		return nil
	}
}

// bestClock returns the most exact of a few readings.
func (d *native) bestClock(s *stamps) (clock, error) {
	best := clock{spread: math.MaxInt64}
	for range 5 {
		c, err := d.readClock(s)
		if err != nil {
			return clock{}, err
		}
		if c.spread < best.spread {
			best = c
		}
	}
	return best, nil
}

// readClock reads the GPU's clock once.
func (d *native) readClock(s *stamps) (clock, error) {
	f := &pending{s: &Submission{}, stamps: s}
	before := monotime.Now()
	if err := d.record(f); err != nil {
		return clock{}, err
	}
	for !f.through() {
		if err := d.ask(); err != nil {
			abandon(f.words)
			return clock{}, err
		}
	}
	after := monotime.Now()
	if f.words[wordStamps].Load() != wgpu.Done {
		return clock{}, errors.New("read the GPU's clock: the timestamps cannot be mapped")
	}
	c := d.begin()
	defer c.End()
	ticks := s.read(c)[0]
	c.Call(d.l.BufferUnmap, s.staging.ref)
	half := after.Sub(before) / 2
	return clock{ticks, before.Add(half), half}, callError("read the GPU's clock", c)
}
