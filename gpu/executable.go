package gpu

import (
	"runtime"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// executable is a compiled program. It is safe for concurrent use; runs may overlap.
type executable struct {
	dev *Device
	*compiled
}

// compiled is the part of an executable that runs in flight refer to.
type compiled struct {
	d *core
	*plan
	timed bool

	idle device.Idle[*instance]

	mu      sync.Mutex
	gpuTime time.Duration
}

// instance is the memory of one run at a time, with the bind groups that name it.
type instance struct {
	buffers []*buffer // by allocation; of unstable ones only during a run
	groups  []group   // by action
	uniform []byte    // contents of the arena; nil until it has some
	scalars []float32 // in them
	run     run
}

type group struct {
	webgpu.Object
	ids []uint64 // of the buffers that it binds
}

// maxIdle is how many instances an executable keeps between runs.
const maxIdle = 2

func newExecutable(dev *Device, pl *plan) *executable {
	e := &compiled{d: dev.core, plan: pl, timed: dev.timed}
	x := &executable{dev, e}
	e.d.executables.Add(e)
	runtime.AddCleanup(x, func(e *compiled) { e.close() }, e) // in case Close is forgotten
	return x
}

// Close releases the memory of the compiled program. Runs in flight finish. It is idempotent.
func (x *executable) Close() error {
	x.close()
	return nil
}

// GPUTime returns the GPU's time for the last completed run, 0 if none has completed or the device was opened without
// [WithTimestamps].
func (x *executable) GPUTime() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.gpuTime
}

func (e *compiled) close() {
	e.idle.Close()
	if e.d.life.Hold() != nil {
		return // teardown has freed the rest, or will
	}
	e.d.executables.Remove(e)
	e.dropIdle()
	e.d.life.End()
}

func (e *compiled) dropIdle() {
	for _, in := range e.idle.Drop() {
		in.free()
	}
}

func (in *instance) free() {
	for i := range in.groups {
		if g := in.groups[i].Object; g != nil {
			g.Free()
		}
	}
	for _, b := range in.buffers {
		if b != nil {
			b.release()
		}
	}
}

// acquire returns an instance with memory for every stable allocation.
func (e *compiled) acquire() (*instance, error) {
	if in, ok, err := e.idle.Take(); ok || err != nil {
		return in, err
	}
	in := &instance{buffers: make([]*buffer, len(e.sizes)), groups: make([]group, len(e.actions))}
	in.run = run{compiled: e, in: in}
	in.run.sub.Done = in.run.done
	for i, n := range e.sizes {
		if !e.stable[i] {
			continue
		}
		kind := webgpu.StorageBuffer
		if i == e.arena {
			kind = webgpu.UniformBuffer
		}
		b, err := e.d.pool.get(kind, n)
		if err != nil {
			in.free()
			return nil, err
		}
		in.buffers[i] = b
	}
	return in, nil
}

// begin makes the instance's run ready for another start.
func (in *instance) begin(io *program.IO, resolve compute.Resolve) *run {
	r := &in.run
	r.io, r.resolve = io, resolve
	r.uploads, r.readback = r.uploads[:0], r.readback[:0]
	r.sub.Commands, r.sub.Cuts, r.sub.Staging, r.sub.GPUTime = r.sub.Commands[:0], r.sub.Cuts[:0], r.sub.Staging[:0], 0
	r.sub.Timestamps, r.sub.Times = 0, r.sub.Times[:0]
	return r
}

// recycle takes an instance back after a run. After a failed run it is not used again, since any part of it may be at fault.
func (e *compiled) recycle(in *instance, reusable bool) {
	for i, b := range in.buffers {
		if b != nil && !e.stable[i] {
			b.release()
			in.buffers[i] = nil
		}
	}
	if !reusable || !e.idle.Put(in, maxIdle) {
		in.free()
	}
}
