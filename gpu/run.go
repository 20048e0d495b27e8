package gpu

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// run is one execution, from Start to completion. Its memory belongs to the instance, which reuses it for the next run.
type run struct {
	*compiled
	in       *instance
	io       *program.IO
	resolve  compute.Resolve
	filling  *buffer // upload buffer of the uniforms; nil if they are current
	uploads  []*buffer
	readback []*buffer
	sub      webgpu.Submission
}

// Start copies the inputs, submits the program as one submission and returns; see [program.Executable]. Slices in io.Host may be
// reused at once.
func (x *executable) Start(io *program.IO) *compute.Future {
	fut, resolve := compute.NewFuture(nil)
	if err := x.start(x.dev, io, resolve); err != nil {
		return compute.Failed(err)
	}
	runtime.KeepAlive(x)
	return fut
}

func (e *compiled) start(dev *Device, io *program.IO, resolve compute.Resolve) (err error) {
	if err := e.d.life.Begin(); err != nil {
		return err
	}
	var r *run
	defer func() {
		if err != nil {
			if r != nil {
				r.release(false) // a failed submit may have unmapped what it was given
			}
			err = e.d.failed(err)
			e.d.life.End()
		}
	}()
	if err := device.CheckIO(e.prog, io, func(t *Tensor) (program.Type, bool) { return t.typ, t.dev != nil && t.dev.core == e.d }); err != nil {
		return err
	}
	if err := e.checkTimes(io); err != nil {
		return err
	}
	in, err := e.acquire()
	if err != nil {
		return err
	}
	r = in.begin(io, resolve)
	if err := r.bindTensors(); err != nil {
		return err
	}
	if err := r.bindGroups(); err != nil {
		return err
	}
	if err := r.stage(); err != nil {
		return err
	}
	r.record()
	retained := r.retain(dev)
	if err := e.d.drv.Submit(&r.sub); err != nil {
		for _, t := range retained {
			t.Close()
		}
		return fmt.Errorf("submit a program of %d steps: %w", len(e.prog.Steps), err)
	}
	e.d.mu.Lock()
	e.d.stats.Runs++
	e.d.stats.Dispatches += e.dispatches
	e.d.mu.Unlock()
	if len(retained) > 0 {
		io.Keep = io.Keep[:0]
		for _, t := range retained {
			io.Keep = append(io.Keep, t)
		}
	}
	return nil
}

// bindTensors takes the buffers of tensors into the instance, and new ones for retained outputs.
func (r *run) bindTensors() error {
	for i, s := range r.prog.Tensor {
		b, err := r.io.Tensors[i].(*Tensor).acquire()
		if err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		r.in.buffers[r.allocation(s)] = b // given back even if it is at fault
		if err := b.fault(); err != nil {
			return fmt.Errorf("tensor %d of shape %v: %w", i, r.io.Tensors[i].Shape(), err)
		}
	}
	for _, s := range r.prog.Keep {
		if r.in.buffers[r.allocation(s)] == nil {
			b, err := r.d.pool.get(webgpu.StorageBuffer, r.bytes(s))
			if err != nil {
				return fmt.Errorf("result of shape %v: %w", r.prog.Values[s].Shape, err)
			}
			r.in.buffers[r.allocation(s)] = b
		}
	}
	return nil
}

// bindGroups makes the bind groups that the instance does not have yet for its current buffers.
func (r *run) bindGroups() error {
	var needed []int // actions
	for i := range r.actions {
		a, g := &r.actions[i], &r.in.groups[i]
		if a.pipeline == nil || g.Object != nil && (!a.volatile || r.bound(a, g)) {
			continue
		}
		if g.Object != nil {
			g.Free()
			g.Object = nil
		}
		needed = append(needed, i)
	}
	if needed == nil {
		return nil
	}
	return r.d.drv.Together(func() error { return r.makeGroups(needed) })
}

// makeGroups makes the bind groups of some actions.
func (r *run) makeGroups(actions []int) (err error) {
	for _, i := range actions {
		a, g := &r.actions[i], &r.in.groups[i]
		g.ids = g.ids[:0]
		var few [16]webgpu.Binding
		bind := few[:0]
		for _, x := range a.bind {
			b := r.in.buffers[x.allocation]
			g.ids = append(g.ids, b.id)
			bind = append(bind, webgpu.Binding{Buffer: b.Object, Offset: b.base + x.offset, Size: x.size})
		}
		if a.kernel.Uniform > 0 {
			bind = append(bind, webgpu.Binding{Buffer: r.in.buffers[r.arena].Object, Offset: 0, Size: uint64(a.kernel.Uniform)})
		}
		if g.Object, err = r.d.drv.NewGroup(a.pipeline.Object, bind); err != nil {
			g.Object = nil
			return fmt.Errorf("kernel %s: %w", a.kernel.Key, err)
		}
	}
	return nil
}

func (r *run) bound(a *action, g *group) bool {
	for j, x := range a.bind {
		if g.ids[j] != r.in.buffers[x.allocation].id {
			return false
		}
	}
	return true
}

// stage copies the inputs into upload buffers and reserves readback buffers.
func (r *run) stage() error {
	for _, n := range r.plan.uploads.sizes {
		b, err := r.d.pool.get(webgpu.UploadBuffer, n)
		if err != nil {
			return fmt.Errorf("upload: %w", err)
		}
		r.uploads = append(r.uploads, b)
	}
	for i, s := range r.prog.Host {
		if data := program.Bytes(r.io.Host[i]); len(data) > 0 {
			at := r.plan.uploads.at[i]
			r.d.drv.Write(r.uploads[at.buffer].Object, at.offset, data)
			r.copy(r.uploads[at.buffer], at.offset, r.in.buffers[r.allocation(s)], 0, uint64(len(data)))
		}
	}
	if err := r.fillArena(); err != nil {
		return err
	}
	for _, n := range r.reads.sizes {
		b, err := r.d.pool.get(webgpu.ReadbackBuffer, n)
		if err != nil {
			return fmt.Errorf("readback: %w", err)
		}
		r.readback = append(r.readback, b)
	}
	for _, list := range [][]*buffer{r.uploads, r.readback, {r.filling}} {
		for _, b := range list {
			if b != nil {
				r.sub.Staging = append(r.sub.Staging, b.Object)
			}
		}
	}
	return nil
}

// copy records a copy of n bytes, rounded up to what copies can do; buffers are long enough for that.
func (r *run) copy(from *buffer, fromAt uint64, to *buffer, toAt, n uint64) {
	r.sub.Commands = append(r.sub.Commands, webgpu.Command{
		From: from.Object, To: to.Object, FromOffset: from.base + fromAt, ToOffset: to.base + toAt, Size: (n + 3) &^ 3,
	})
}

// record appends the commands of the steps and the copies of results.
func (r *run) record() {
	dispatches := uint64(0) // since the last cut
	for i := range r.actions {
		r.reach(i)
		a := &r.actions[i]
		if dispatches == r.piece {
			r.sub.Cuts = append(r.sub.Cuts, len(r.sub.Commands))
			dispatches = 0
		}
		if a.pipeline == nil {
			from, to := a.bind[0], a.bind[1]
			r.copy(r.in.buffers[from.allocation], from.offset, r.in.buffers[to.allocation], to.offset, from.size)
			continue
		}
		dispatches++
		r.sub.Commands = append(r.sub.Commands, webgpu.Command{
			Pipeline: a.pipeline.Object, Group: r.in.groups[i].Object, Dynamic: a.dynamic, Grid: a.grid,
		})
	}
	r.reach(len(r.actions))
	for i, s := range r.prog.Read {
		if n := r.prog.Values[s].Bytes(); n > 0 {
			at := r.reads.at[i]
			r.copy(r.in.buffers[r.allocation(s)], 0, r.readback[at.buffer], at.offset, uint64(n))
		}
	}
	r.sub.Timed = r.timed || r.sub.Timestamps > 0
}

// retain makes the tensors of retained outputs.
func (r *run) retain(dev *Device) []*Tensor {
	var list []*Tensor
	for _, s := range r.prog.Keep {
		list = append(list, newTensor(dev, r.prog.Values[s].Type, r.in.buffers[r.allocation(s)].retain()))
	}
	return list
}

// inline is the number of bytes of results up to which the goroutine that completes runs delivers them. Copying more would delay other
// runs.
const inline = 64 << 10

// done ends a run. The driver calls it once. The memory is released before waiting callers continue.
func (r *run) done(err error) {
	total := uint64(0)
	for _, n := range r.reads.sizes {
		total += n
	}
	if total > inline && err == nil {
		go r.finish(err)
	} else {
		r.finish(err)
	}
}

func (r *run) finish(err error) {
	resolve := r.resolve // another run may use r as soon as its memory is released
	if err = r.verdict(err); err != nil {
		r.poison(err)
		err = fmt.Errorf("program of %d steps: %w", len(r.prog.Steps), r.d.failed(err))
		r.giveBack(false)
		resolve(err, nil)
		return
	}
	copy(r.io.Times, r.sub.Times)
	r.compiled.mu.Lock()
	r.compiled.gpuTime = r.sub.GPUTime
	r.compiled.mu.Unlock()
	r.d.mu.Lock()
	r.d.stats.GPUTime += r.sub.GPUTime
	r.d.mu.Unlock()
	delivered := false
	resolve(nil, func() {
		delivered = true
		r.deliver()
		r.giveBack(true)
	})
	if !delivered { // the caller has stopped waiting
		r.giveBack(true)
	}
}

// verdict returns the error of a run whose submission ended with err. An object that it used may have failed since it started.
func (r *run) verdict(err error) error {
	for _, list := range [][]*buffer{r.in.buffers, r.uploads, r.readback, {r.filling}} {
		for _, b := range list {
			if b != nil && b.fault() != nil {
				return b.fault()
			}
		}
	}
	if err == nil {
		return nil
	}
	for i := range r.actions {
		if p := r.actions[i].pipeline; p != nil && p.fault() != nil {
			return p.fault()
		}
	}
	return err
}

// poison poisons the retained outputs of a failed run, which later runs may use already.
func (r *run) poison(err error) {
	for _, s := range r.prog.Keep {
		if r.prog.Values[s].Source != program.FromTensor {
			r.in.buffers[r.allocation(s)].poison(err)
		}
	}
	if errors.Is(err, compute.ErrOutOfMemory) { // too late for this run, but the next one may find memory
		r.d.dropIdle()
		r.d.pool.trim(0)
	}
}

// giveBack releases everything that the run holds after its submission has succeeded or failed.
func (r *run) giveBack(success bool) {
	if success {
		for _, b := range r.readback {
			if err := r.d.failed(r.d.drv.Unmap(b.Object)); err != nil {
				r.d.log.Warn("gpu: staging buffers given up", "error", err)
				success = false
			}
		}
	}
	d := r.d
	r.release(success)
	d.life.End()
}

// deliver copies the results to the caller.
func (r *run) deliver() {
	for i := range r.prog.Read {
		if dst := program.Bytes(r.io.Read[i]); len(dst) > 0 {
			at := r.reads.at[i]
			r.d.drv.Read(r.readback[at.buffer].Object, at.offset, dst)
		}
	}
}

// release releases everything that the run holds, which ends the run. Staging buffers are reusable only if their mappings are valid:
// after a success, or before the submission.
func (r *run) release(reusable bool) {
	for _, list := range [][]*buffer{r.uploads, r.readback, {r.filling}} {
		for _, b := range list {
			switch {
			case b == nil:
			case reusable:
				b.release()
			default:
				b.discard()
			}
		}
	}
	r.io, r.resolve, r.filling = nil, nil, nil
	r.recycle(r.in, reusable)
}
