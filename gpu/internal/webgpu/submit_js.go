package webgpu

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall/js"
	"time"
)

// pending is a submission that has not completed.
type pending struct {
	d        *browser
	s        *Submission
	stamps   stamps
	waiting  int   // for how many outcomes
	err      error // the first that went wrong
	rejected error // why a mapping was refused, often for want of a better reason
}

func (f *pending) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (d *browser) Submit(s *Submission) error {
	if d.lostErr != nil {
		return d.lostErr
	}
	if err := checkMapped(s); err != nil {
		return err
	}
	f := &pending{d: d, s: s, err: d.stray}
	d.stray = nil
	if s.Timed {
		f.stamps = d.takeStamps(2 + s.Timestamps)
	}
	var mappings []any
	submitted := false
	scope, thrown := d.scoped([]js.Value{d.w.validation}, nil, func(*creation) {
		d.record(s, f.stamps, func(commands js.Value) {
			for _, o := range s.Staging {
				if b := o.(*browserBuffer); b.kind == UploadBuffer && !submitted {
					b.closeMapping()
				}
			}
			d.w.submit.Invoke(d.queue, d.w.arrayOf.Invoke(commands))
			submitted = true
		})
		for _, o := range s.Staging {
			mode := mapRead
			b := o.(*browserBuffer)
			if b.kind == UploadBuffer {
				mode = mapWrite
			}
			mappings = append(mappings, d.w.mapAsync.Invoke(b.ref, mode))
		}
		if s.Timed {
			mappings = append(mappings, d.w.mapAsync.Invoke(f.stamps.staging, mapRead))
		}
	})
	if thrown != nil && !submitted {
		return fmt.Errorf("submit: %w", thrown)
	}
	if thrown != nil { // the rest; what was submitted runs to its end
		f.fail(fmt.Errorf("submit: %w", thrown))
		mappings = nil
	}
	if mappings == nil {
		mappings = append(mappings, d.w.onSubmittedWorkDone.Invoke(d.queue))
	}
	scope.after(func(err error) {
		if err != nil {
			f.fail(fmt.Errorf("submit: %w", err))
		}
	})
	f.waiting = 1 + len(d.making)
	d.inFlight = append(d.inFlight, f)
	for c := range d.making {
		c.after(func(error) { f.arrive() })
	}
	d.w.settle(d.w.all.Invoke(d.w.arrayOf.Invoke(mappings...)), func(_ js.Value, err error) {
		if f.rejected = err; err == nil {
			for _, o := range s.Staging {
				o.(*browserBuffer).mapped = true
			}
		}
		f.arrive()
	})
	return nil
}

// checkMapped refuses buffers that would be mapped when they reach the queue: upload buffers that are not handed over with
// the submission, and readback buffers that nobody has unmapped.
func checkMapped(s *Submission) error {
	for _, o := range s.Staging {
		if b := o.(*browserBuffer); (b.kind == UploadBuffer) != b.mapped {
			return fmt.Errorf("internal error: %v buffer with mapping %v submitted", b.kind, b.mapped)
		}
	}
	for i := range s.Commands {
		for _, o := range []Object{s.Commands[i].From, s.Commands[i].To} {
			b, _ := o.(*browserBuffer)
			if b != nil && (b.kind == UploadBuffer || b.kind == ReadbackBuffer) && !slices.Contains(s.Staging, o) {
				return fmt.Errorf("internal error: %v buffer used without being handed over", b.kind)
			}
		}
	}
	return nil
}

// record makes the command buffers of a submission and submits each before it goes on. A pass is held open from dispatch to
// dispatch.
func (d *browser) record(s *Submission, t stamps, submit func(commands js.Value)) {
	w := d.w
	cut := func(i int) bool { return slices.Contains(s.Cuts, i) }
	first, last := -1, -1 // where the first and the last pass begin
	for i := range s.Commands {
		if s.Commands[i].Pipeline != nil && (i == 0 || s.Commands[i-1].Pipeline == nil || cut(i)) {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	offsets := d.dynamic.fill(w, s.Commands)
	encoder := w.createCommandEncoder.Invoke(d.device)
	var pass js.Value
	var pipeline Object
	open, uniforms, stamp := false, 0, 2
	for i := range s.Commands {
		c := &s.Commands[i]
		if open && (c.Pipeline == nil || cut(i)) {
			w.end.Invoke(pass)
			open = false
		}
		if cut(i) {
			submit(w.finish.Invoke(encoder))
			encoder = w.createCommandEncoder.Invoke(d.device)
		}
		if c.Pipeline == nil {
			if c.Timestamp { // only passes write timestamps
				w.end.Invoke(w.beginComputePass.Invoke(encoder, t.one(w, stamp)))
				stamp++
				continue
			}
			w.copyBufferToBuffer.Invoke(encoder, c.From.(*browserBuffer).ref, float64(c.FromOffset), c.To.(*browserBuffer).ref,
				float64(c.ToOffset), float64(c.Size))
			continue
		}
		if !open {
			if s.Timed && (i == first || i == last) {
				pass = w.beginComputePass.Invoke(encoder, t.writes(w, i == first, i == last))
			} else {
				pass = w.beginComputePass.Invoke(encoder)
			}
			open, pipeline = true, nil
		}
		p := c.Pipeline.(*browserPipeline)
		if c.Pipeline != pipeline {
			w.setPipeline.Invoke(pass, p.ref)
			pipeline = c.Pipeline
		}
		if group := c.Group.(*browserGroup).ref; p.uniform {
			w.setBindGroup.Invoke(pass, 0, group, offsets, uniforms, 1)
			uniforms++
		} else {
			w.setBindGroup.Invoke(pass, 0, group)
		}
		w.dispatchWorkgroups.Invoke(pass, int(c.Grid[0]), int(c.Grid[1]), int(c.Grid[2]))
	}
	if open {
		w.end.Invoke(pass)
	}
	if s.Timed {
		w.resolveQuerySet.Invoke(encoder, t.queries, 0, t.count, t.resolve, 0)
		w.copyBufferToBuffer.Invoke(encoder, t.resolve, 0, t.staging, 0, 8*t.count)
	}
	submit(w.finish.Invoke(encoder))
}

// dynamicOffsets hands the uniform offsets of a submission to JavaScript in one piece.
type dynamicOffsets struct {
	local []byte
	words js.Value // a Uint32Array
	bytes js.Value // the same memory
}

// fill returns a Uint32Array that begins with the offsets of the dispatches that have one.
func (o *dynamicOffsets) fill(w *functions, commands []Command) js.Value {
	o.local = o.local[:0]
	for i := range commands {
		if p, _ := commands[i].Pipeline.(*browserPipeline); p != nil && p.uniform {
			o.local = binary.LittleEndian.AppendUint32(o.local, commands[i].Dynamic) // as every browser's processor
		}
	}
	if o.words.IsUndefined() || o.words.Length()*4 < len(o.local) {
		o.words = w.uint32.New(max(64, cap(o.local)/4))
		o.bytes = w.uint8.New(o.words.Get("buffer"))
	}
	js.CopyBytesToJS(o.bytes, o.local)
	return o.words
}

// arrive counts one of the outcomes that a submission waits for.
func (f *pending) arrive() {
	f.waiting--
	f.d.complete()
}

// complete ends the submissions that wait for nothing any more, in the order of their submissions.
func (d *browser) complete() {
	for len(d.inFlight) > 0 && d.inFlight[0].waiting <= 0 {
		f := d.inFlight[0]
		d.inFlight = slices.Delete(d.inFlight, 0, 1)
		go f.end()
	}
}

// lossDelay is how long after a rejection the news that the device is lost may come.
const lossDelay = 100 * time.Millisecond

// awaitLoss waits until the device is lost, if it is.
func (d *browser) awaitLoss() {
	select {
	case <-d.lostSignal:
	case <-time.After(lossDelay):
	}
}

// end tells the outcome. It runs in a goroutine of its own.
func (f *pending) end() {
	err := f.err
	if err == nil && f.rejected != nil && f.d.lostErr == nil {
		f.d.awaitLoss()
		err = fmt.Errorf("submission failed: %w", f.rejected)
	}
	if f.d.lostErr != nil {
		err = f.d.lostErr
	}
	if f.s.Timed {
		if err == nil {
			f.stamps.Read(f.d.w, f.s)
		}
		if err == nil && f.stamps.count == 2 {
			f.d.stamps = append(f.d.stamps, f.stamps)
		} else {
			f.stamps.Free(f.d)
		}
	}
	f.s.Done(err)
}

// stamps are timestamps, the first and the last of a submission and its commands that are timestamps, with the buffers to read them.
type stamps struct {
	queries, resolve, staging js.Value
	count                     int
}

func (d *browser) takeStamps(count int) stamps {
	if n := len(d.stamps); n > 0 && count == 2 {
		s := d.stamps[n-1]
		d.stamps = d.stamps[:n-1]
		return s
	}
	w := d.w
	buffer := func(usage int) js.Value {
		return w.createBuffer.Invoke(d.device, w.literal("size", 8*count, "usage", usage))
	}
	return stamps{
		queries: w.createQuerySet.Invoke(d.device, w.literal("type", "timestamp", "count", count)),
		resolve: buffer(usageQueryResolve | usageCopySrc), staging: buffer(usageMapRead | usageCopyDst), count: count,
	}
}

func (s stamps) Free(d *browser) {
	s.queries.Call("destroy")
	d.w.destroy.Invoke(s.resolve)
	d.w.destroy.Invoke(s.staging)
}

// writes describes a pass that writes the first or the second timestamp, or both.
func (s stamps) writes(w *functions, first, last bool) js.Value {
	writes := w.literal("querySet", s.queries)
	if first {
		writes.Set("beginningOfPassWriteIndex", 0)
	}
	if last {
		writes.Set("endOfPassWriteIndex", 1)
	}
	return w.literal("timestampWrites", writes)
}

// one describes a pass that writes a timestamp and nothing else.
func (s stamps) one(w *functions, i int) js.Value {
	return w.literal("timestampWrites", w.literal("querySet", s.queries, "beginningOfPassWriteIndex", i))
}

// Read tells a submission the times between the stamps, which browsers give in nanoseconds and round for the sake of privacy.
func (s stamps) Read(w *functions, sub *Submission) {
	bytes := make([]byte, 8*s.count)
	js.CopyBytesToGo(bytes, w.uint8.New(w.getMappedRange.Invoke(s.staging)))
	w.unmap.Invoke(s.staging)
	between := func(from, to int) time.Duration {
		a, b := binary.LittleEndian.Uint64(bytes[8*from:]), binary.LittleEndian.Uint64(bytes[8*to:])
		return time.Duration(max(a, b) - a)
	}
	sub.GPUTime = between(0, 1)
	for i := 1; i < sub.Timestamps; i++ {
		sub.Times = append(sub.Times, between(1+i, 2+i))
	}
}
