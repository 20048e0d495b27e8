//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/wgpu"
	"github.com/wavelane/wavelane/internal/monotime"
)

// pending is a submission that has not completed.
type pending struct {
	s      *Submission
	words  []atomic.Int32 // which the library's callbacks change
	few    [6]atomic.Int32
	stamps *stamps
	failed error // why some of it was not recorded
}

// Words of a submission: one for the work, one for the timestamps, one per staging buffer.
const (
	wordWork = iota
	wordStamps
	wordStaging
)

func (d *native) Submit(s *Submission) error {
	if err := checkMapped(s); err != nil {
		return err
	}
	f := &pending{s: s}
	for _, o := range s.Staging {
		o.(*nativeBuffer).at = nil // until complete
	}
	d.mu.Lock()
	if d.submitting || len(d.inFlight) > 0 {
		d.waiting = append(d.waiting, f)
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
	d.submitting = len(d.waiting) > 0
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
		if d.submitting = len(d.waiting) > 0; !d.submitting {
			d.mu.Unlock()
			return
		}
		f := d.waiting[0]
		d.waiting = slices.Delete(d.waiting, 0, 1)
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
	waiting := monotime.Now() // since the last completion
	pause := time.Duration(0)
	for {
		lost := d.Lost()
		if lost == nil { // asking a lost device aborts the process
			wgpu.Pause(pause)
			lost = d.ask()
		}
		if done := d.completed(lost); len(done) > 0 {
			for _, f := range done {
				f.s.Done(d.complete(f, lost))
			}
			waiting = monotime.Now()
		}
		d.mu.Lock()
		if len(d.inFlight) == 0 {
			d.polling = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		pause = min(max(monotime.Since(waiting)/8, 10*time.Microsecond), time.Millisecond)
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
		if f.words[i].Load() == wgpu.Pending {
			return false
		}
	}
	return true
}

// complete ends a submission: it collects mappings and timestamps, and returns what went wrong.
func (d *native) complete(f *pending, lost error) error {
	if lost != nil {
		abandon(f.words) // callbacks may still come
		return lost
	}
	if f.failed != nil {
		return f.failed
	}
	for i := range f.words {
		if f.words[i].Load() != wgpu.Done {
			return fmt.Errorf("submission failed: %s", [...]string{"work", "timestamps", "mapping"}[min(i, wordStaging)])
		}
	}
	c := d.begin()
	defer c.End()
	for _, o := range f.s.Staging {
		o.(*nativeBuffer).mapped(c)
	}
	if !f.s.Timed {
		return nil
	}
	defer d.giveStamps(f.stamps)
	t := f.stamps.read(c)
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
	c.Call(d.l.BufferUnmap, f.stamps.staging.ref)
	return callError("unmap timestamps", c)
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

// record records and submits everything, in command buffers that end at the cuts and at the end, then asks for the staging buffers to
// be mapped. It fails if nothing was submitted; if only some of it was, f.failed says why.
func (d *native) record(f *pending) error {
	c := d.begin()
	defer c.End()
	if n := wordStaging + len(f.s.Staging); n <= len(f.few) {
		f.words = f.few[:n]
	} else {
		f.words = make([]atomic.Int32, n)
	}
	submitted, stamp := false, uint32(2) // the first two are those of the submission
	for i, from := 0, 0; i <= len(f.s.Cuts) && !c.Failed(); i++ {
		to := len(f.s.Commands)
		if i < len(f.s.Cuts) {
			to = f.s.Cuts[i]
		}
		buffer := d.commandBuffer(c, f, f.s.Commands[from:to], &stamp, i == 0, i == len(f.s.Cuts))
		// A buffer still mapped, or a command buffer that failed to finish, must never reach the queue: it ends the process.
		for _, o := range f.s.Staging {
			if b := o.(*nativeBuffer); i == 0 && b.kind == UploadBuffer && !c.Failed() {
				c.Call(d.l.BufferUnmap, b.ref)
			}
		}
		if !c.Failed() {
			c.Handle = buffer
			c.Call(d.l.QueueSubmit, d.queue, 1, wgpu.Address(&c.Handle))
			submitted = true
		}
		if buffer != 0 {
			c.Call(d.l.CommandBufferRelease, buffer)
		}
		from = to
	}
	err := callError("submit", c) // what the rest of the work failed with, if anything was submitted
	if !submitted {
		return err
	}
	f.failed = err
	// The mappings wait for the submission; their callbacks fire from the same poll as the work's. Errors of theirs are in the words.
	c.WhenDone(d.l, d.queue, &f.words[wordWork])
	for i, o := range f.s.Staging {
		mode := uintptr(wgpu.MapMode_Read)
		b := o.(*nativeBuffer)
		if b.kind == UploadBuffer {
			mode = wgpu.MapMode_Write
		}
		c.Map(d.l, b.ref, mode, b.size, &f.words[wordStaging+i])
	}
	if f.stamps != nil {
		c.Map(d.l, f.stamps.staging.ref, wgpu.MapMode_Read, f.stamps.staging.size, &f.words[wordStamps])
	} else {
		f.words[wordStamps].Store(wgpu.Done)
	}
	c.Forget()
	return nil
}

// commandBuffer records commands; the first and the last buffer of a submission take the time, if it has stamps. It returns 0 if that
// fails before the end.
func (d *native) commandBuffer(c *wgpu.Frame, f *pending, commands []Command, stamp *uint32, first, last bool) uintptr {
	l := d.l
	c.Encoder = wgpu.CommandEncoderDescriptor{}
	encoder := c.Call(l.DeviceCreateCommandEncoder, d.device, wgpu.Address(&c.Encoder))
	defer c.Call(l.CommandEncoderRelease, encoder)
	if f.stamps != nil && first {
		c.Call(l.CommandEncoderWriteTimestamp, encoder, f.stamps.queries, 0)
	}
	var pass uintptr // held open from dispatch to dispatch: a pass of its own costs more than a dispatch
	var bound *nativePipeline
	end := func() {
		if pass != 0 {
			c.Call(l.ComputePassEncoderEnd, pass) // reports what dispatches did wrong
			c.Call(l.ComputePassEncoderRelease, pass)
			pass, bound = 0, nil
		}
	}
	for i := range commands {
		x := &commands[i]
		switch {
		case c.Failed():
		case x.Timestamp:
			end()
			c.Call(l.CommandEncoderWriteTimestamp, encoder, f.stamps.queries, uintptr(*stamp))
			*stamp++
		case x.Pipeline == nil:
			end()
			c.Call(l.CommandEncoderCopyBufferToBuffer, encoder, x.From.(*nativeBuffer).ref, uintptr(x.FromOffset),
				x.To.(*nativeBuffer).ref, uintptr(x.ToOffset), uintptr(x.Size))
		default:
			if pass == 0 {
				c.Pass = wgpu.ComputePassDescriptor{}
				pass = c.Call(l.CommandEncoderBeginComputePass, encoder, wgpu.Address(&c.Pass))
			}
			p := x.Pipeline.(*nativePipeline)
			if p != bound {
				c.Call(l.ComputePassEncoderSetPipeline, pass, p.ref)
				bound = p
			}
			offsets := uintptr(0)
			if p.uniform {
				offsets, c.Offset = 1, x.Dynamic
			}
			c.Call(l.ComputePassEncoderSetBindGroup, pass, 0, x.Group.(*nativeGroup).ref, offsets, wgpu.Address(&c.Offset))
			c.Call(l.ComputePassEncoderDispatchWorkgroups, pass, uintptr(x.Grid[0]), uintptr(x.Grid[1]), uintptr(x.Grid[2]))
		}
	}
	end()
	if c.Failed() {
		return 0
	}
	if f.stamps != nil && last {
		f.stamps.resolve(c, encoder)
	}
	return c.Call(l.CommandEncoderFinish, encoder, 0)
}

// ask lets the library find out what is done, and call back.
func (d *native) ask() error {
	c := d.begin()
	defer c.End()
	c.Call(d.l.DevicePoll, d.device, 0, 0)
	return callError("wait for the device", c)
}
