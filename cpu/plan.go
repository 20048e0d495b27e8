package cpu

import (
	"fmt"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// allocation says where a value lies during a run.
type allocation struct {
	in     memoryKind
	index  int // of IO.Host, IO.Tensors, IO.Read or IO.Keep
	offset int // in the arena, in bytes
}

type memoryKind uint8

const (
	arena      memoryKind = iota // the run's block of temporaries
	atHost                       // the caller's input
	atTensor                     // a resident tensor
	atResult                     // the caller's destination
	atRetained                   // memory of a new tensor
)

// step is a compiled step of a program, or a copy that delivers a value which does not lie in its destination already.
type step struct {
	phases  []phase
	entry   *program.Entry // of a step that varies from run to run
	kernel  *Kernel        // instead of phases
	attr    program.Attr
	in      []program.Slot
	types   []program.Type
	results []program.Slot // values that it computes; none for a delivery
	outs    []program.Type
	to      []allocation // of each of outs
	inPlace bool         // may write over an operand of the result's shape
	rows    bool         // only over the first operand
	reshape bool         // computes nothing: its result may be its operand
	moves   bool         // a copy from one temporary to another
	skipped bool         // nobody reads its result
	scratch int          // bytes
	at      int          // of scratch in the arena
	from    int          // step of the program that it is of
}

// executable is a compiled program.
type executable struct {
	d           *Device
	p           *program.Program
	steps       []step
	ends        []int          // how many of steps there are after each step of the program
	allocations []allocation   // by slot
	storage     []program.Slot // see program.Program.Storage
	last        []int          // step that reads a slot last, −1 if none does
	arena       int            // bytes of temporaries of one run
	varying     []int          // steps whose scalars differ from run to run
	scalars     []float32      // as recorded
	fullest     int            // step of the program during which most of them are in use, −1 if there are none
	changes     []int          // tensors that it updates in place
	copies      []int          // results that are delivered from copies, in a detached program
	ns          float64        // estimated cost
	user        bool           // has kernels of the user's
	keeps       bool           // makes tensors: runs to the end whatever happens

	mu      sync.Mutex
	closed  bool
	idle    []*run
	handles []*handle // idle ones of runs without futures
}

// detached reports whether runs must not touch the caller's slices after Start: they cannot be stopped when their future is
// abandoned.
func (x *executable) detached() bool { return x.user || x.keeps }

// Executor is for package batch. It has no use outside of this module.
func (d *Device) Executor() program.Executor { return d }

// Compile prepares a program for this device.
func (d *Device) Compile(p *program.Program) (program.Executable, error) {
	if err := d.life.Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	if err := p.Check(); err != nil {
		return nil, err
	}
	x := &executable{d: d, p: p, storage: p.Storage(), changes: p.Changed(), scalars: p.Recorded(), steps: make([]step, 0, len(p.Steps)),
		keeps: len(p.Keep) > 0}
	defined := make([]bool, len(p.Values))
	for _, given := range [][]program.Slot{p.Host, p.Tensor} {
		for _, s := range given {
			if s < 0 || int(s) >= len(p.Values) {
				return nil, fmt.Errorf("input in slot %d of %d: %w", s, len(p.Values), compute.ErrArgument)
			}
			defined[s] = true
		}
	}
	for i := range p.Steps {
		first := len(x.steps)
		if err := x.add(&p.Steps[i], defined); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		x.ends = append(x.ends, len(x.steps))
		for k := range x.steps[first:] {
			x.steps[first+k].from = i
		}
	}
	for _, asked := range [][]program.Slot{p.Read, p.Keep} {
		for _, s := range asked {
			if s < 0 || int(s) >= len(p.Values) || !defined[s] {
				return nil, fmt.Errorf("result in slot %d, which no step computes: %w", s, compute.ErrArgument)
			}
		}
	}
	x.settle()
	return x, nil
}

// add validates and lowers a step.
func (x *executable) add(s *program.Step, defined []bool) error {
	p := x.p
	for _, in := range s.In {
		if in < 0 || int(in) >= len(p.Values) || !defined[in] {
			return fmt.Errorf("operand in slot %d is not computed before: %w", in, compute.ErrArgument)
		}
	}
	if s.Entry == nil || s.Entry != program.Fused && len(s.Out) != s.Entry.ResultCount() {
		return fmt.Errorf("no entry, or %d results: %w", len(s.Out), compute.ErrArgument)
	}
	for _, out := range s.Out {
		if out < 0 || int(out) >= len(p.Values) || defined[out] {
			return fmt.Errorf("result in slot %d twice: %w", out, compute.ErrArgument)
		}
		defined[out] = true
	}
	c := step{attr: s.Attr, in: s.In, types: p.Types(s.In), results: s.Out, outs: p.Types(s.Out)}
	if s.Entry.Class == program.Custom {
		k, ok := s.Kernel.(*Kernel)
		if !ok || k.d != x.d {
			return fmt.Errorf("kernel of another device: %w", compute.ErrForeignTensor)
		}
		c.kernel = k
		x.user = true
		x.steps = append(x.steps, c)
		return nil
	}
	want, err := s.Entry.Check(c.types, s.Attr)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(want, c.outs, func(a, b program.Type) bool { return a.DType == b.DType && program.EqualShape(a.Shape, b.Shape) }) {
		return fmt.Errorf("%s %v gives %v, not %v: %w", s.Entry.Name, c.types, want, c.outs, compute.ErrShape)
	}
	x.update(s, &c)
	c.rows = s.Entry.Class == program.Rows
	c.inPlace = c.rows || s.Entry == program.Fused || s.Entry.Class.Elementwise()
	c.reshape = s.Entry == catalogue.Reshape
	if slices.ContainsFunc(c.outs, func(t program.Type) bool { return t.Len() > 0 }) {
		w, err := lower(s.Entry, &call{in: c.types, outs: c.outs, out: c.outs[0], attr: s.Attr})
		if err != nil {
			return err
		}
		x.emit(&c, w)
		if s.Attr.Varies() {
			c.entry = s.Entry
			x.varying = append(x.varying, len(x.steps))
		}
	}
	x.steps = append(x.steps, c)
	return nil
}

// update gives the results that are operands changed in place the operands' elements: by a copy, unless the operand is a tensor,
// whose memory they have. Either way the step works on its results alone.
func (x *executable) update(s *program.Step, c *step) {
	if s.Entry.Updates > 0 {
		c.in = slices.Clone(c.in)
	}
	for k := range s.Entry.Updates {
		if x.storage[s.Out[k]] == s.Out[k] {
			x.copyTo(s.In[k], allocation{}, s.Out[k])
		}
		c.in[k] = s.Out[k]
	}
}

func (x *executable) emit(c *step, w work) {
	c.phases, c.scratch = w.phases, w.scratch
	for _, ph := range w.phases {
		x.ns += ph.ns * float64(ph.units)
	}
}

// settle gives every value an allocation and adds the copies that results need.
func (x *executable) settle() {
	p := x.p
	x.allocations = make([]allocation, len(p.Values))
	settled := make([]bool, len(p.Values))
	put := func(s program.Slot, in memoryKind, index int) {
		if !settled[s] {
			settled[s] = true
			x.allocations[s] = allocation{in: in, index: index}
		}
	}
	for i, s := range p.Host {
		put(s, atHost, i)
	}
	for i, s := range p.Tensor {
		put(s, atTensor, i)
	}
	for s, at := range x.storage {
		if at != program.Slot(s) {
			put(program.Slot(s), atTensor, x.allocations[at].index)
		}
	}
	// A value that stays is computed in its tensor, a value that is read in its destination; every further use is a copy.
	for i, s := range p.Keep {
		put(s, atRetained, i)
	}
	for i, s := range p.Read {
		if !x.detached() {
			put(s, atResult, i)
		}
	}
	for i, s := range p.Keep {
		if at := x.allocations[s]; at.in == atHost {
			x.deliver(s, allocation{in: atRetained, index: i})
		}
	}
	for i, s := range p.Read {
		switch {
		case x.detached():
			x.copies = append(x.copies, i)
		case x.allocations[s].in != atResult || x.allocations[s].index != i:
			x.deliver(s, allocation{in: atResult, index: i})
		}
	}
	x.skipReshapes()
	x.last = slices.Repeat([]int{-1}, len(p.Values))
	for i := range x.steps {
		for _, s := range x.steps[i].in {
			x.last[s] = i
		}
	}
	for _, i := range x.copies { // read after all steps
		x.last[p.Read[i]] = len(x.steps)
	}
	x.layOut(settled)
}

// deliver adds a step that copies a value to its destination.
func (x *executable) deliver(s program.Slot, to allocation) { x.copyTo(s, to) }

// copyTo adds a step that copies a value: to an allocation, or to where a result lies.
func (x *executable) copyTo(s program.Slot, to allocation, result ...program.Slot) {
	t := x.p.Values[s].Type
	c := step{in: []program.Slot{s}, types: []program.Type{t}, results: result, outs: []program.Type{t}, to: []allocation{to}, inPlace: len(result) > 0, moves: len(result) > 0}
	if t.Len() > 0 {
		w, _ := lower(catalogue.Copy, &call{in: c.types, outs: c.outs, out: t})
		x.emit(&c, w)
	}
	x.steps = append(x.steps, c)
}

// skipReshapes makes later steps read the operand of a reshape, unless its result is wanted in memory of its own.
func (x *executable) skipReshapes() {
	p := x.p
	if !slices.ContainsFunc(x.steps, func(s step) bool { return s.reshape }) {
		return
	}
	root := make([]program.Slot, len(p.Values))
	for s := range root {
		root[s] = program.Slot(s)
	}
	for i := range x.steps {
		c := &x.steps[i]
		c.in = slices.Clone(c.in)
		for k, s := range c.in {
			c.in[k] = root[s]
		}
		if !c.reshape {
			continue
		}
		if s := c.results[0]; !slices.Contains(p.Read, s) && !slices.Contains(p.Keep, s) {
			root[s] = c.in[0]
			c.phases, c.skipped = nil, true
		}
	}
}

// Close frees what the executable keeps. It is idempotent; runs in flight finish.
func (x *executable) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.idle, x.handles = nil, nil
	return nil
}
