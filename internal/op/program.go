package op

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// Slot is the index of a value in a program.
type Slot int

// Source says where a value comes from.
type Source uint8

// Sources.
const (
	FromHost   Source = iota // uploaded from the caller's slice when the program starts
	FromTensor               // resident on the device already
	FromStep                 // the result of a step
)

// Value is a slot's type and origin. Every value is written once.
type Value struct {
	Type
	Source Source
}

// Step applies an operation. For the class Custom, Kernel is the device's own compiled kernel and Out is any type.
type Step struct {
	Entry  *Entry
	In     []Slot
	Out    Slot
	Attr   Attr
	Kernel Kernel
}

// Kernel is a user's kernel, made and checked by the device that will run it.
type Kernel interface {
	// Check validates a call and returns the type of the result, as [Entry.Check] does.
	Check(in []Type, out Type, a Attr) error
	Name() string
}

// Program is what a device executes: steps in order over value slots, all shapes known. It is immutable once built, and
// the same program may run many times with other data.
type Program struct {
	Values []Value
	Steps  []Step
	Host   []Slot // FromHost values, in the order of IO.Host
	Tensor []Slot // FromTensor values, in the order of IO.Tensors
	Read   []Slot // values copied to the caller when the program ends, in the order of IO.Read
	Keep   []Slot // values that stay on the device as tensors, in the order of IO.Keep
}

// IO is the data of one run.
type IO struct {
	Host    []any            // slices, one per Program.Host
	Tensors []compute.Tensor // one per Program.Tensor
	Read    []any            // destination slices, one per Program.Read; must not overlap each other
	Keep    []compute.Tensor // filled by Start, one per Program.Keep; valid to use in later programs at once
}

// Executor is a device as programs see it.
type Executor interface {
	// Compile validates and prepares a program. Compiling is pure preparation: nothing runs.
	Compile(p *Program) (Executable, error)
}

// Executable is a compiled program. Start may be called again while earlier runs are in flight.
type Executable interface {
	// Start begins one run and returns at once. Errors, also of arguments, come through the future.
	Start(io *IO) *compute.Future
	// Close releases what the executable holds. Runs in flight finish.
	Close() error
}

// Add appends a value and returns its slot.
func (p *Program) Add(t Type, from Source) Slot {
	s := Slot(len(p.Values))
	p.Values = append(p.Values, Value{t, from})
	switch from {
	case FromHost:
		p.Host = append(p.Host, s)
	case FromTensor:
		p.Tensor = append(p.Tensor, s)
	}
	return s
}

// Apply checks a call, appends it as a step and returns the slot of its result.
func (p *Program) Apply(e *Entry, a Attr, in ...Slot) (Slot, error) {
	out, err := e.Check(p.Types(in), a)
	if err != nil {
		return 0, err
	}
	s := p.Add(out, FromStep)
	p.Steps = append(p.Steps, Step{Entry: e, In: in, Out: s, Attr: a})
	return s, nil
}

// ApplyKernel appends a user's kernel as a step with a result of type out.
func (p *Program) ApplyKernel(k Kernel, a Attr, out Type, in ...Slot) (Slot, error) {
	if err := checkShape(out.Shape); err != nil {
		return 0, fmt.Errorf("%s: %w", k.Name(), err)
	}
	if err := k.Check(p.Types(in), out, a); err != nil {
		return 0, err
	}
	s := p.Add(out, FromStep)
	p.Steps = append(p.Steps, Step{Entry: UserKernel, In: in, Out: s, Attr: a, Kernel: k})
	return s, nil
}

// Types returns the types of slots.
func (p *Program) Types(slots []Slot) []Type {
	ts := make([]Type, len(slots))
	for i, s := range slots {
		ts[i] = p.Values[s].Type
	}
	return ts
}

// CheckIO validates the data of a run against the program: counts, element types and lengths.
func (p *Program) CheckIO(io *IO) error {
	if len(io.Host) != len(p.Host) || len(io.Tensors) != len(p.Tensor) || len(io.Read) != len(p.Read) {
		return fmt.Errorf("program of %d inputs, %d tensors and %d results was given %d, %d and %d: %w", len(p.Host),
			len(p.Tensor), len(p.Read), len(io.Host), len(io.Tensors), len(io.Read), compute.ErrArgument)
	}
	for i, s := range p.Host {
		if err := CheckSlice(io.Host[i], p.Values[s].Type); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
	}
	for i, s := range p.Read {
		if err := CheckSlice(io.Read[i], p.Values[s].Type); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	for i, s := range p.Tensor {
		t, want := io.Tensors[i], p.Values[s].Type
		if t == nil {
			return fmt.Errorf("tensor %d is nil: %w", i, compute.ErrArgument)
		}
		if t.DType() != want.DType || !EqualShape(t.Shape(), want.Shape) {
			return fmt.Errorf("tensor %d is %v, the program needs %v: %w", i, Type{t.DType(), t.Shape()}, want, compute.ErrShape)
		}
	}
	return nil
}
