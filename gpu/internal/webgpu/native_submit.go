//go:build cgo && !js

package webgpu

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
)

// pending is a submission that has not completed.
type pending struct {
	s *Submission
	// commands are C's, until they are submitted.
	commands *[]C.wl_command
	words    []int32 // C memory, which callbacks write to; see shim.h
	stamps   C.wl_stamps
	failed   error // why some of it was not recorded
}

// commandBuffers recycles the C commands of submissions; handles in them are integers, so the collector skips them.
var commandBuffers = sync.Pool{New: func() any { return new([]C.wl_command) }}

func (d *native) Submit(s *Submission) error {
	if err := checkMapped(s); err != nil {
		return err
	}
	list := commandBuffers.Get().(*[]C.wl_command)
	cs := (*list)[:0]
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.Timestamp {
			cs = append(cs, C.wl_command{kind: C.WL_TIMESTAMP})
			continue
		}
		if c.Pipeline == nil {
			cs = append(cs, C.wl_command{
				kind: C.WL_COPY, a: c.From.(*nativeBuffer).ref, b: c.To.(*nativeBuffer).ref,
				from: C.uint64_t(c.FromOffset), to: C.uint64_t(c.ToOffset), size: C.uint64_t(c.Size),
			})
			continue
		}
		p := c.Pipeline.(*nativePipeline)
		x := C.wl_command{
			kind: C.WL_DISPATCH, a: p.c.pipeline, b: c.Group.(*nativeGroup).ref,
			x: C.uint32_t(c.Grid[0]), y: C.uint32_t(c.Grid[1]), z: C.uint32_t(c.Grid[2]),
		}
		if p.uniform {
			x.has_dynamic, x.dynamic = 1, C.uint32_t(c.Dynamic)
		}
		cs = append(cs, x)
	}
	*list = cs

	f := &pending{s: s, commands: list}
	for _, o := range s.Staging {
		o.(*nativeBuffer).at = nil // until complete
	}
	d.mu.Lock()
	if d.submitting || len(d.inFlight) > 0 {
		d.queue = append(d.queue, f)
		start := !d.submitting
		d.submitting = true
		d.mu.Unlock()
		if start {
			go d.submitQueue()
		}
		return nil
	}
	d.submitting = true
	d.mu.Unlock()
	err := d.launch(f)
	d.mu.Lock()
	d.submitting = len(d.queue) > 0
	more := d.submitting
	d.mu.Unlock()
	if more {
		go d.submitQueue()
	}
	return err
}

// submitQueue submits what was handed over while the device was busy. The library may block in a submission for as long as what was
// submitted before takes, and callers do not wait for that.
func (d *native) submitQueue() {
	for {
		d.mu.Lock()
		if d.submitting = len(d.queue) > 0; !d.submitting {
			d.mu.Unlock()
			return
		}
		f := d.queue[0]
		d.queue = slices.Delete(d.queue, 0, 1)
		d.mu.Unlock()
		err := d.Lost() // submitting to a lost device aborts the process
		if err == nil {
			err = d.launch(f)
		}
		if err != nil {
			f.s.Done(err)
		}
	}
}

// checkMapped refuses buffers that would be mapped when they reach the queue, which ends the process: upload buffers that
// are not handed over with the submission, and readback buffers that nobody has unmapped.
func checkMapped(s *Submission) error {
	for _, o := range s.Staging {
		if b := o.(*nativeBuffer); (b.kind == UploadBuffer) != (b.at != nil) {
			return fmt.Errorf("internal error: %v buffer with mapping %v submitted", b.kind, b.at)
		}
	}
	for i := range s.Commands {
		for _, o := range []Object{s.Commands[i].From, s.Commands[i].To} {
			b, _ := o.(*nativeBuffer)
			if b != nil && (b.kind == UploadBuffer || b.kind == ReadbackBuffer) && !slices.Contains(s.Staging, o) {
				return fmt.Errorf("internal error: %v buffer used without being handed over", b.kind)
			}
		}
	}
	return nil
}

// poll completes submissions. It is the only goroutine that does, and it ends when nothing is in flight.
//
// It asks again and again instead of waiting inside the library, because a waiting poll holds the lock that a submit
// needs. The pause between two questions grows with the time waited for: the delay it adds stays near an eighth.
func (d *native) poll() {
	waiting := time.Now() // since the last completion
	pause := time.Duration(0)
	var e C.wl_error // of which C sees the address: one for all questions
	for {
		lost := d.Lost()
		if lost == nil { // asking a lost device aborts the process
			C.wl_device_poll(d.dev, C.int64_t(pause), &e)
			lost = callError("wait for the device", &e)
		}
		if done := d.completed(lost); len(done) > 0 {
			for _, f := range done {
				f.s.Done(d.complete(f, lost))
			}
			waiting = time.Now()
		}
		d.mu.Lock()
		if len(d.inFlight) == 0 {
			d.polling = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		pause = min(max(time.Since(waiting)/8, 10*time.Microsecond), time.Millisecond)
	}
}

// completed takes the submissions that are through, or all of them if the device is lost.
func (d *native) completed(lost error) []*pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	var done []*pending
	d.inFlight = slices.DeleteFunc(d.inFlight, func(f *pending) bool {
		ended := lost != nil || f.through()
		if ended {
			done = append(done, f)
		}
		return ended
	})
	return done
}

func (f *pending) through() bool {
	for i := range f.words {
		if atomic.LoadInt32(&f.words[i]) == C.WL_PENDING {
			return false
		}
	}
	return true
}

// complete ends a submission: it collects mappings and timestamps, and returns what went wrong.
func (d *native) complete(f *pending, lost error) error {
	if lost != nil {
		return lost // the status stays allocated: callbacks may still come
	}
	defer f.freeWords()
	if f.failed != nil {
		return f.failed
	}
	for i := range f.words {
		if atomic.LoadInt32(&f.words[i]) != C.WL_DONE {
			return fmt.Errorf("submission failed: %s", [...]string{"work", "timestamps", "mapping"}[min(i, C.WL_STAGING)])
		}
	}
	for _, o := range f.s.Staging {
		b := o.(*nativeBuffer)
		b.at = C.wl_buffer_mapped(b.ref, C.uint64_t(b.size), b2i(b.kind == UploadBuffer))
	}
	if !f.s.Timed {
		return nil
	}
	defer d.giveStamps(f.stamps)
	t := unsafe.Slice((*uint64)(C.wl_buffer_mapped(f.stamps.staging, C.uint64_t(8*f.stamps.count), 0)), f.stamps.count)
	between := func(from, to uint64) time.Duration {
		if to < from { // counters may wrap, or start over after a suspend
			return 0
		}
		return time.Duration(float64(to-from) * d.period)
	}
	f.s.GPUTime = between(t[0], t[1])
	for i := 1; i < f.s.Timestamps; i++ {
		f.s.Times = append(f.s.Times, between(t[1+i], t[2+i]))
	}
	var e C.wl_error
	C.wl_buffer_unmap(d.dev, f.stamps.staging, &e)
	return callError("unmap timestamps", &e)
}

// launch submits, and has what was submitted completed. It fails if nothing was.
func (d *native) launch(f *pending) (err error) {
	if f.s.Timed {
		if err := d.calibrated(); err != nil {
			return fmt.Errorf("%w: %w", err, compute.ErrUnsupported)
		}
		if f.stamps, err = d.takeStamps(2 + f.s.Timestamps); err != nil {
			return err
		}
	}
	err = d.record(f)
	commandBuffers.Put(f.commands)
	f.commands = nil
	if err != nil {
		d.giveStamps(f.stamps)
		return err
	}
	d.mu.Lock()
	d.inFlight = append(d.inFlight, f)
	start := !d.polling
	d.polling = true
	d.mu.Unlock()
	if start {
		go d.poll()
	}
	return nil
}

// record crosses into C, where everything is recorded and submitted in one call. It fails if nothing was.
func (d *native) record(f *pending) error {
	var few [8]C.wl_staging
	staging := few[:0]
	for _, o := range f.s.Staging {
		b := o.(*nativeBuffer)
		staging = append(staging, C.wl_staging{
			buffer: b.ref, size: C.uint64_t(b.size), upload: C.uint32_t(b2i(b.kind == UploadBuffer)),
		})
	}
	n := C.WL_STAGING + len(staging)
	p := (*int32)(C.calloc(C.size_t(n), 4))
	if p == nil {
		return fmt.Errorf("submit: no host memory: %w", compute.ErrOutOfMemory)
	}
	f.words = unsafe.Slice(p, n)
	var e C.wl_error
	commands, cuts := *f.commands, f.s.Cuts
	at := (*C.size_t)(unsafe.Pointer(unsafe.SliceData(cuts)))
	submitted := C.wl_submit(d.dev, unsafe.SliceData(commands), C.size_t(len(commands)), at, C.size_t(len(cuts)),
		unsafe.SliceData(staging), C.size_t(len(staging)), f.stamps, (*C.int32_t)(p), &e)
	err := callError("submit", &e)
	if submitted == 0 {
		f.freeWords()
		return err
	}
	f.failed = err
	return nil
}

func (f *pending) freeWords() {
	C.free(unsafe.Pointer(unsafe.SliceData(f.words)))
	f.words = nil
}

func b2i(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (d *native) takeStamps(count int) (C.wl_stamps, error) {
	d.mu.Lock()
	if n := len(d.stamps); n > 0 && count == 2 {
		s := d.stamps[n-1]
		d.stamps = d.stamps[:n-1]
		d.mu.Unlock()
		return s, nil
	}
	d.mu.Unlock()
	var s C.wl_stamps
	var e C.wl_error
	C.wl_stamps_new(d.dev, C.uint32_t(count), &s, &e)
	return s, callError("create timestamp queries", &e)
}

func (d *native) giveStamps(s C.wl_stamps) {
	switch s.count {
	case 0:
		return
	case 2:
	default: // the next run may need more or fewer
		C.wl_stamps_free(s)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stamps = append(d.stamps, s)
}

// clock is a reading of the GPU's clock: it showed ticks at some moment within spread of at.
type clock struct {
	ticks  uint64
	at     time.Time
	spread time.Duration
}

// calibrate finds the length of a timestamp tick, which this version of the library does not tell: it reads the GPU's clock
// twice, so far apart that when exactly matters to no more than a percent.
func (d *native) calibrate() error {
	const (
		percent  = 100
		patience = time.Second // on a machine too busy for good readings the last one has to do
	)
	stamps, err := d.takeStamps(2)
	if err != nil {
		return err
	}
	defer d.giveStamps(stamps)
	if _, err := d.readClock(stamps); err != nil { // the first submission of a device is slow
		return err
	}
	from, err := d.bestClock(stamps)
	if err != nil {
		return err
	}
	for apart := 20 * time.Millisecond; ; apart *= 2 {
		time.Sleep(apart)
		to, err := d.bestClock(stamps)
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
func (d *native) bestClock(stamps C.wl_stamps) (clock, error) {
	best := clock{spread: math.MaxInt64}
	for range 5 {
		c, err := d.readClock(stamps)
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
func (d *native) readClock(stamps C.wl_stamps) (clock, error) {
	f := &pending{s: &Submission{}, commands: new([]C.wl_command), stamps: stamps}
	before := time.Now()
	if err := d.record(f); err != nil {
		return clock{}, err
	}
	for !f.through() {
		var e C.wl_error
		C.wl_device_poll(d.dev, 0, &e)
		if err := callError("read the GPU's clock", &e); err != nil {
			return clock{}, err
		}
	}
	after := time.Now()
	defer f.freeWords()
	if f.words[C.WL_STAMPS] != C.WL_DONE {
		return clock{}, errors.New("read the GPU's clock: the timestamps cannot be mapped")
	}
	ticks := *(*uint64)(C.wl_buffer_mapped(stamps.staging, 16, 0))
	var e C.wl_error
	C.wl_buffer_unmap(d.dev, stamps.staging, &e)
	half := after.Sub(before) / 2
	return clock{ticks, before.Add(half), half}, callError("read the GPU's clock", &e)
}
