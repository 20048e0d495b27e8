package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/pool"
)

// run is one execution of a program. Runs are reused: all that belongs to one Start only is in its handle.
type run struct {
	x       *executable
	h       *handle
	views   []view // by slot
	results []view // by index of IO.Read
	kept    []view // by index of IO.Keep
	args    []args // by step
	varied  varied
	loop    loop
	arena   *block
	held    []*block     // tensors, retained outputs and copies of inputs
	locks   []tensorHold // with the tensors
	staged  []staged     // inputs to copy before anything is written
	made    *origin      // of the tensors that this run computes
	job     pool.Job     // execute
	clock   clock
	pending atomic.Int32

	mu  sync.Mutex
	err error // the first one before execution
}

// loop is the chunks of one phase of a run.
type loop struct {
	phase *phase
	args  *args
}

// Do computes a chunk, unless the run was cancelled.
func (l *loop) Do(chunk int) {
	if l.args.stop.Load() {
		return
	}
	lo := chunk * l.phase.grain
	l.phase.do(l.args, lo, min(lo+l.phase.grain, l.phase.units))
	pool.Yield()
}

// staged is an input that a destination overlaps in a way that would change the result.
type staged struct {
	slot program.Slot
	to   view
}

// start begins a run.
func (x *executable) start(io *program.IO, h *handle) error {
	r, err := x.prepare(io, h)
	if err == nil {
		r.ready(true)
	}
	return err
}

// prepare validates the data of a run and takes everything that it needs.
func (x *executable) prepare(io *program.IO, h *handle) (r *run, err error) {
	if err := x.d.life.Begin(); err != nil {
		return nil, err
	}
	if err = device.CheckIO(x.p, io, func(t *Tensor) (program.Type, bool) { return t.typ, t.d == x.d }); err == nil {
		r, err = x.Take()
	}
	if err != nil {
		x.d.life.End()
		return nil, err
	}
	r.h, r.err = h, nil
	r.pending.Store(1) // Start itself
	r.clock = clock{times: io.Times}
	if err = r.bind(io); err == nil && x.keeps {
		err = r.keep(io)
	}
	if err == nil {
		err = r.vary(io.Scalars)
	}
	if err != nil {
		r.fail(err)
		if r.pending.Add(-1) == 0 { // otherwise a tensor made it wait, and it fails later
			r.execute()
		}
		return nil, err
	}
	return r, nil
}

// Take returns an idle run or a new one.
func (x *executable) Take() (*run, error) {
	if r, ok, err := x.idle.Take(); ok || err != nil {
		return r, err
	}
	r := &run{x: x, views: make([]view, len(x.p.Values)), results: make([]view, len(x.p.Read)),
		kept: make([]view, len(x.p.Keep)), args: make([]args, len(x.steps))}
	operands := 0
	for i := range x.steps {
		operands += len(x.steps[i].in) + len(x.steps[i].outs)
	}
	views := make([]view, operands)
	part := func(n int) (p []view) {
		p, views = views[:n:n], views[n:]
		return p
	}
	for i := range x.steps {
		r.args[i].in, r.args[i].outs = part(len(x.steps[i].in)), part(len(x.steps[i].outs))
	}
	r.job.Do = r.execute
	return r, nil
}

// bind finds the memory of every value.
func (r *run) bind(io *program.IO) (err error) {
	x, p := r.x, r.x.p
	if r.arena, err = x.d.memory.Take(x.layout.Peak); err != nil {
		return fmt.Errorf("temporaries: %w", err)
	}
	for i, s := range p.Read {
		r.results[i] = viewOf(io.Read[i], p.Values[s].Len())
	}
	for i, s := range p.Host {
		r.views[s] = viewOf(io.Host[i], p.Values[s].Len())
		if err := r.stage(s); err != nil {
			return err
		}
	}
	if err := r.bindTensors(io); err != nil {
		return err
	}
	for s, at := range x.layout.Values {
		switch n := p.Values[s].Len(); at.Kind {
		case device.InArena:
			r.views[s] = r.arena.view(at.Offset, n)
		case device.InResult:
			r.views[s] = r.results[at.Index]
		case device.InTensor: // also of what steps make of tensors in place
			r.views[s] = r.views[p.Tensor[at.Index]]
		}
	}
	return nil
}

// bindTensors takes hold of the tensors, all at once: two runs that both wait for each other cannot be.
func (r *run) bindTensors(io *program.IO) error {
	x, p := r.x, r.x.p
	if len(p.Tensor) == 0 {
		return nil
	}
	x.d.locking.Lock()
	defer x.d.locking.Unlock()
	for i, s := range p.Tensor {
		b, err := io.Tensors[i].(*Tensor).acquire(r)
		if err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		r.held = append(r.held, b)
		if b != nil {
			changes := slices.Contains(x.changes, i)
			for _, t := range r.locks {
				if t.block == b && (changes || t.changes) {
					return fmt.Errorf("tensor %d is updated in place and given twice: %w", i, compute.ErrArgument)
				}
			}
			b.lock.acquire(r, changes)
			r.locks = append(r.locks, tensorHold{b.retain(), changes})
		}
		r.views[s] = b.view(0, p.Values[s].Len())
	}
	return nil
}

// keep makes the tensors that the program leaves on the device.
func (r *run) keep(io *program.IO) error {
	x, p := r.x, r.x.p
	r.made = &origin{}
	blocks := make([]*block, len(p.Keep))
	kept := make([]compute.Tensor, len(p.Keep))
	for i, s := range p.Keep {
		at, t := x.layout.Values[s], p.Values[s].Type
		var b *block
		var err error
		switch {
		case at.Kind == device.InRetained && at.Index != i: // kept twice
			b = blocks[at.Index].retain()
		case at.Kind == device.InTensor:
			b = r.held[len(r.held)-len(p.Tensor)+at.Index].retain()
		default:
			b, err = x.d.memory.Take(t.Bytes())
		}
		if err != nil {
			for _, k := range kept[:i] {
				k.Close()
			}
			return fmt.Errorf("retained output %d %v: %w", i, t, err)
		}
		blocks[i], kept[i] = b, x.d.newTensor(t, b, r.made)
	}
	for i, s := range p.Keep {
		r.held = append(r.held, blocks[i].retain())
		r.kept[i] = blocks[i].view(0, p.Values[s].Len())
		if x.layout.Values[s].Kind == device.InRetained {
			r.views[s] = r.kept[i]
		}
	}
	io.Keep = append(io.Keep[:0], kept...)
	return nil
}

// waitedTime is how long a run may take, in ns by its cost, that whoever waits for it computes itself: a worker on another core would begin
// some µs later, and a deadline is missed by no more than this.
const waitedTime = 8 * chunkTime

// ready counts one condition of execution as met and executes the run after the last: at once if it is small, in particular if its
// starter does nothing but wait for it, else on a worker.
func (r *run) ready(inline bool) {
	if r.pending.Add(-1) > 0 {
		return
	}
	switch {
	case r.x.user:
		go r.execute() // a user's function may wait for anything, also for the workers
	case inline && r.x.ns < chunkTime, inline && r.h.future == nil && r.x.ns < waitedTime:
		r.execute()
	default:
		r.x.d.workers.Submit(&r.job)
	}
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// execute runs all steps and finishes the run.
func (r *run) execute() {
	if !r.h.state.CompareAndSwap(queued, running) {
		r.fail(errAbandoned)
	}
	err := errExit
	defer func() { r.Finish(err) }() // deferred for a user's function that ends its goroutine
	r.mu.Lock()
	failed := r.err
	r.mu.Unlock()
	if failed != nil {
		err = failed
		return
	}
	err = r.steps()
}

// ErrKernel is the error of a user's kernel that panicked or ended its goroutine.
var ErrKernel = errors.New("kernel did not return")

var errExit = fmt.Errorf("kernel ended its goroutine: %w", ErrKernel)

// executions counts executions of steps.
var executions atomic.Uint64

func (r *run) steps() error {
	x := r.x
	for _, s := range r.staged {
		n := uintptr(s.to.n) * uintptr(x.p.Values[s.slot].DType.Size())
		copy(unsafe.Slice((*byte)(s.to.p), n), unsafe.Slice((*byte)(r.views[s.slot].p), n))
		r.views[s.slot] = s.to
	}
	for i := range x.steps {
		r.clock.reach(x, i)
		s, a := &x.steps[i], &r.args[i]
		for k, slot := range s.in {
			a.in[k] = r.views[slot]
		}
		for k := range s.outs {
			a.outs[k] = r.target(s, k)
		}
		a.out = a.outs[0]
		a.scratch = r.arena.view(s.at, s.scratch/8)
		a.stop, a.serial = &r.h.stop, executions.Add(1)
		if s.kernel != nil && !a.stop.Load() {
			if err := s.kernel.run(s, a); err != nil {
				return err
			}
		}
		phases := s.phases
		if s.entry != nil {
			phases = r.varied.Of(i, phases)
		}
		for j := range phases {
			ph := &phases[j]
			r.loop = loop{ph, a}
			x.d.workers.Each(&r.loop, engine.CeilDiv(ph.units, ph.grain))
		}
		if a.stop.Load() {
			return errAbandoned
		}
	}
	r.clock.reach(x, len(x.steps))
	return nil
}

// target is where a step writes a result.
func (r *run) target(s *step, k int) view {
	switch {
	case k < len(s.results):
		return r.views[s.results[k]]
	case s.to[k].Kind == device.InResult:
		return r.results[s.to[k].Index]
	}
	return r.kept[s.to[k].Index]
}

// Finish gives back what the run holds, makes it idle and resolves the future, in this order: whoever waits for the future
// to start the next run finds the memory free. Results that are delivered from copies need it until they are delivered.
func (r *run) Finish(err error) {
	x, h := r.x, r.h
	if r.made != nil {
		r.made.resolve(err)
	}
	if len(x.copies) > 0 {
		h.resolve(err, r.deliver)
	}
	r.unlockTensors()
	r.reset()
	x.idle.Put(r, spare)
	x.d.life.End()
	h.settle(err)
}

// reset lets go of all memory: the caller's slices are not ours to keep alive.
func (r *run) reset() {
	r.arena.release()
	for _, b := range r.held {
		b.release()
	}
	r.arena, r.h, r.made = nil, nil, nil
	r.clock = clock{}
	clear(r.held)
	clear(r.views)
	clear(r.results)
	clear(r.kept)
	for i := range r.args {
		a := &r.args[i]
		clear(a.in)
		clear(a.outs)
		a.out, a.scratch, a.stop = view{}, view{}, nil
	}
	r.held, r.staged = r.held[:0], r.staged[:0]
}

// spare is how many idle runs, and handles, an executable keeps.
const spare = 8

// deliver copies results to the caller.
func (r *run) deliver() {
	for _, i := range r.x.copies {
		s := r.x.layout.Storage[r.x.p.Read[i]]
		d := r.x.p.Values[s].DType
		copy(r.results[i].bytes(d), r.views[s].bytes(d))
	}
}

// clock measures the steps of a run for who asks, see program.IO.
type clock struct {
	times []time.Duration
	done  int // steps of the program
	at    monotime.Time
}

// reach is called before step i of the executable and after the last one.
func (c *clock) reach(x *executable, i int) {
	if c.done == len(c.times) {
		return
	}
	now := monotime.Now()
	if c.at == 0 {
		c.at = now
	}
	for ; c.done < len(c.times) && i == x.ends[c.done]; c.done++ {
		c.times[c.done] = now.Sub(c.at)
		c.at = now
	}
}
