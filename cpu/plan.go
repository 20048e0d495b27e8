package cpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// step is a compiled step of a program, or a copy that delivers a value which does not lie in its destination already.
type step struct {
	phases  []phase
	entry   *program.Entry // of a step that varies from run to run
	kernel  *Kernel        // instead of phases
	attr    program.Attr
	in      []program.Slot // homes of the operands
	types   []program.Type
	results []program.Slot // values that it computes; none for a delivery
	outs    []program.Type
	to      []device.Allocation // of each of outs
	inPlace bool                // may write over an operand of the result's shape
	rows    bool                // only over the first operand
	moves   bool                // a copy from one temporary to another
	scratch int                 // bytes
	at      int                 // of scratch in the arena
}

// executable is a compiled program.
type executable struct {
	d       *Device
	p       *program.Program
	steps   []step
	ends    []int // how many of steps there are after each step of the program
	layout  *device.Layout
	last    []int     // step that reads a slot last, −1 if none does
	varying []int     // steps whose scalars differ from run to run
	scalars []float32 // as recorded
	changes []int     // tensors that it updates in place
	copies  []int     // results that are delivered from copies, in a detached program
	ns      float64   // estimated cost
	user    bool      // has kernels of the user's
	keeps   bool      // makes tensors: runs to the end whatever happens

	idle    device.Idle[*run]
	handles device.Idle[*handle] // of runs without futures
}

// detached reports whether runs must not touch the caller's slices after Start: they cannot be stopped when their future is
// abandoned.
func (x *executable) detached() bool { return x.user || x.keeps }

type sealed = program.Sealed

// executor is a device as batches see it.
type executor struct{ *Device }

// Compile prepares a program for this device.
func (d executor) Compile(_ context.Context, p *program.Program) (program.Executable, error) {
	if err := d.life.Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	if err := p.Check(); err != nil {
		return nil, err
	}
	x := &executable{d: d.Device, p: p, layout: device.NewLayout(p), changes: p.Changed(), scalars: p.Recorded(), steps: make([]step, 0, len(p.Steps)),
		keeps: len(p.Keep) > 0}
	for i := range p.Steps {
		if err := x.add(i); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		x.ends = append(x.ends, len(x.steps))
	}
	return x, x.allocate()
}

// add validates and lowers a step, unless its result is its operand.
func (x *executable) add(i int) error {
	p, s := x.p, &x.p.Steps[i]
	c := step{attr: s.Attr, in: x.layout.StorageOf(s.In), types: p.Types(s.In), results: s.Out, outs: p.Types(s.Out)}
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
	if x.layout.View(i) {
		return nil
	}
	x.update(s, &c)
	c.rows = s.Entry.Class == program.Rows
	c.inPlace = c.rows || s.Entry == program.Fused || s.Entry.Class.Elementwise()
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

// update initialises results that are operands changed in place: by a copy, unless the operand is a tensor, whose memory they
// share. The step then works on its results only.
func (x *executable) update(s *program.Step, c *step) {
	if s.Entry.Updates > 0 {
		c.in = slices.Clone(c.in)
	}
	for k := range s.Entry.Updates {
		if x.layout.Storage[s.Out[k]] == s.Out[k] {
			x.copyTo(c.in[k], device.Allocation{}, s.Out[k])
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

// copyTo adds a step that copies a value: to an allocation, or to where a result lies.
func (x *executable) copyTo(s program.Slot, to device.Allocation, result ...program.Slot) {
	t := x.p.Values[s].Type
	c := step{in: []program.Slot{s}, types: []program.Type{t}, results: result, outs: []program.Type{t}, to: []device.Allocation{to}, inPlace: len(result) > 0, moves: len(result) > 0}
	if t.Len() > 0 {
		w, _ := lower(catalogue.Copy, &call{in: c.types, outs: c.outs, out: t})
		x.emit(&c, w)
	}
	x.steps = append(x.steps, c)
}

// Close frees the executable's memory. It is idempotent; runs in flight finish.
func (x *executable) Close() error {
	x.idle.Close()
	x.handles.Close()
	x.idle.Drop()
	x.handles.Drop()
	return nil
}
