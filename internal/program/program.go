package program

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

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

// Value is a slot's type and origin. Every value is written once; a step that updates an operand in place makes a new value in
// the same memory, see [Program.Storage].
type Value struct {
	Type
	Source Source
}

// Step applies an operation. For the class Custom, Kernel is the device's own compiled kernel and its only result has any type.
type Step struct {
	Entry  *Entry
	In     []Slot
	Out    []Slot
	Attr   Attr
	Kernel Kernel
}

// Kernel is a user's kernel, made and checked by the device that will run it.
// Types implement it by embedding [KernelCheck].
type Kernel interface {
	Name() string
	check(in []Type, out Type, a Attr) error
}

// KernelCheck validates a call of a kernel, whose result has type out.
type KernelCheck func(in []Type, out Type, a Attr) error

func (c KernelCheck) check(in []Type, out Type, a Attr) error {
	if c == nil {
		return fmt.Errorf("kernel that no device has made: %w", compute.ErrArgument)
	}
	return c(in, out, a)
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

	Variables int  // number of IO.Scalars, see Attr.Vary
	Streams   bool // the device carries collectives out, on its streams; see Members.Streams
	NoReuse   bool // every value has memory of its own, so that tests can find values which should not share any

	// While it is built: the steps that update operands among those searched for them so far.
	updaters []int
	searched int
}

// IO is the data of one run.
type IO struct {
	Host    []any            // slices, one per Program.Host
	Tensors []compute.Tensor // one per Program.Tensor
	Read    []any            // destination slices, one per Program.Read; must not overlap each other
	Keep    []compute.Tensor // filled by Start, one per Program.Keep; valid to use in later programs at once
	Scalars []float32        // one per Program.Variables, not used after Start; nil for those in the steps

	// Times, if not nil, has one element per step, which a run sets to the step's time by the device's clock. Such runs are slower;
	// devices without a clock fail with compute.ErrUnsupported.
	Times []time.Duration
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

// Apply is [Program.ApplyAll] for an operation of one result; of several it returns the first.
func (p *Program) Apply(e *Entry, a Attr, in ...Slot) (Slot, error) {
	out, err := p.ApplyAll(e, a, in...)
	if err != nil {
		return 0, err
	}
	return out[0], nil
}

// ApplyAll checks a call, appends it as a step and returns the slots of its results.
func (p *Program) ApplyAll(e *Entry, a Attr, in ...Slot) ([]Slot, error) {
	types, err := e.Check(p.Types(in), a)
	if err == nil {
		err = p.unchanged(e, in)
	}
	if err != nil {
		return nil, err
	}
	out := make([]Slot, len(types))
	for i, t := range types {
		out[i] = p.Add(t, FromStep)
	}
	p.Steps = append(p.Steps, Step{Entry: e, In: in, Out: out, Attr: a})
	return out, nil
}

// unchanged reports operands that an earlier step updated in place, and those that this one would update and read as well.
func (p *Program) unchanged(e *Entry, in []Slot) error {
	for ; p.searched < len(p.Steps); p.searched++ {
		if p.Steps[p.searched].updates() > 0 {
			p.updaters = append(p.updaters, p.searched)
		}
	}
	for _, i := range p.updaters {
		s := &p.Steps[i]
		for k := range s.updates() {
			if slices.Contains(in, s.In[k]) {
				return fmt.Errorf("%s %v: an operand was updated in place by step %d (%s), whose result has to be used instead: %w", e.Name,
					p.Types(in), i, s.Entry.Name, compute.ErrArgument)
			}
		}
	}
	for k := range e.Updates {
		if slices.Contains(in[:k], in[k]) || slices.Contains(in[k+1:], in[k]) {
			return fmt.Errorf("%s %v: %s is updated in place and cannot be another operand as well: %w", e.Name, p.Types(in),
				e.Inputs[k].Name, compute.ErrArgument)
		}
	}
	return nil
}

// Uses reports whether a step or the caller uses a value.
func (p *Program) Uses(v Slot) bool {
	return slices.Contains(p.Read, v) || slices.Contains(p.Keep, v) ||
		slices.ContainsFunc(p.Steps, func(s Step) bool { return slices.Contains(s.In, v) })
}

func (s *Step) updates() int {
	if s.Entry == nil {
		return 0
	}
	return s.Entry.Updates
}

// Storage returns for every slot the slot whose memory holds its value: the slot itself, or a tensor that steps update in
// place.
func (p *Program) Storage() []Slot {
	storage := make([]Slot, len(p.Values))
	for i := range storage {
		storage[i] = Slot(i)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for k := range s.updates() {
			if at := storage[s.In[k]]; p.Values[at].Source == FromTensor {
				storage[s.Out[k]] = at
			}
		}
	}
	return storage
}

// Changed lists the tensors, as indices of IO.Tensors, that the program updates in place.
func (p *Program) Changed() []int {
	storage := p.Storage()
	var changed []int
	for i, s := range p.Tensor {
		for v, at := range storage {
			if at == s && v != int(s) {
				changed = append(changed, i)
				break
			}
		}
	}
	return changed
}

// ApplyKernel appends a user's kernel as a step with a result of type out.
func (p *Program) ApplyKernel(k Kernel, a Attr, out Type, in ...Slot) (Slot, error) {
	if err := CheckShape(out.Shape); err != nil {
		return 0, fmt.Errorf("%s: %w", k.Name(), err)
	}
	if err := k.check(p.Types(in), out, a); err != nil {
		return 0, err
	}
	if err := p.unchanged(UserKernel, in); err != nil {
		return 0, err
	}
	s := p.Add(out, FromStep)
	p.Steps = append(p.Steps, Step{Entry: UserKernel, In: in, Out: []Slot{s}, Attr: a, Kernel: k})
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

// CheckIO validates the data of a run against the program: counts, element types and lengths. Devices tell the types of their
// tensors by typeOf, which copies no shapes; nil asks the tensors.
func (p *Program) CheckIO(io *IO, typeOf func(compute.Tensor) Type) error {
	if typeOf == nil {
		typeOf = func(t compute.Tensor) Type { return Type{t.DType(), t.Shape()} }
	}
	if len(io.Host) != len(p.Host) || len(io.Tensors) != len(p.Tensor) || len(io.Read) != len(p.Read) {
		return fmt.Errorf("program of %d inputs, %d tensors and %d results was given %d, %d and %d: %w", len(p.Host),
			len(p.Tensor), len(p.Read), len(io.Host), len(io.Tensors), len(io.Read), compute.ErrArgument)
	}
	if io.Times != nil && len(io.Times) != len(p.Steps) {
		return fmt.Errorf("program of %d steps was given room for %d times: %w", len(p.Steps), len(io.Times), compute.ErrArgument)
	}
	if io.Scalars != nil && len(io.Scalars) != p.Variables {
		return fmt.Errorf("program of %d variable scalars was given %d: %w", p.Variables, len(io.Scalars), compute.ErrArgument)
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
		for j := range i {
			if overlap(Bytes(io.Read[i]), Bytes(io.Read[j])) {
				return fmt.Errorf("results %d and %d overlap: %w", j, i, compute.ErrArgument)
			}
		}
	}
	for i, s := range p.Tensor {
		if io.Tensors[i] == nil {
			return fmt.Errorf("tensor %d is nil: %w", i, compute.ErrArgument)
		}
		if t, want := typeOf(io.Tensors[i]), p.Values[s].Type; t.DType != want.DType || !EqualShape(t.Shape, want.Shape) {
			return fmt.Errorf("tensor %d is %v, the program needs %v: %w", i, t, want, compute.ErrShape)
		}
	}
	return p.checkChanged(io)
}

func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	p, q := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return p < q+uintptr(len(b)) && q < p+uintptr(len(a))
}

// checkChanged reports a tensor given twice of which one is updated in place: its other reader would see either state. Language
// models have hundreds of tensors, and this is done for each token.
func (p *Program) checkChanged(io *IO) error {
	if len(io.Tensors) < 2 {
		return nil
	}
	first := firsts.Get().(map[compute.Tensor]int)
	defer func() {
		clear(first)
		firsts.Put(first)
	}()
	for j, t := range io.Tensors {
		if t == nil || !reflect.TypeOf(t).Comparable() {
			continue
		}
		if i, twice := first[t]; !twice {
			first[t] = j
		} else {
			if changed := p.Changed(); slices.Contains(changed, i) || slices.Contains(changed, j) {
				return fmt.Errorf("tensor %d is tensor %d as well, and is updated in place: %w", j, i, compute.ErrArgument)
			}
		}
	}
	return nil
}

// firsts are empty maps from tensors to where they come first in [IO.Tensors].
var firsts = sync.Pool{New: func() any { return map[compute.Tensor]int{} }}

// Check validates what single steps do not show: that values are computed once and before they are used, the indices of
// run-time scalars, and the rules for values that lie in tensors which the program updates in place. Such a tensor cannot be
// retained as another, and what is read at the end is its last state.
func (p *Program) Check() error {
	if err := p.checkSlots(); err != nil {
		return err
	}
	for i := range p.Steps {
		if err := p.checkVary(&p.Steps[i]); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	storage, changed := p.Storage(), p.Changed()
	for _, t := range changed {
		at := p.Tensor[t]
		last := at
		for s, h := range storage {
			if h == at {
				last = Slot(s) // slots are in the order of steps
			}
		}
		for i, s := range p.Keep {
			if storage[s] == at {
				return fmt.Errorf("retained output %d %v lies in a tensor that the program updates in place: use that tensor: %w", i,
					p.Values[s].Type, compute.ErrArgument)
			}
		}
		for i, s := range p.Read {
			if storage[s] == at && s != last {
				return fmt.Errorf("result %d %v is an earlier state of a tensor that the program updates in place: copy it before: %w", i,
					p.Values[s].Type, compute.ErrArgument)
			}
		}
	}
	return nil
}

// checkSlots validates the steps' entries and slots, and those of inputs and results.
func (p *Program) checkSlots() error {
	defined := make([]bool, len(p.Values))
	known := func(s Slot) bool { return s >= 0 && int(s) < len(defined) && defined[s] }
	for _, given := range [2][]Slot{p.Host, p.Tensor} {
		for _, s := range given {
			if s < 0 || int(s) >= len(defined) {
				return fmt.Errorf("input in slot %d of %d: %w", s, len(defined), compute.ErrArgument)
			}
			defined[s] = true
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, in := range s.In {
			if !known(in) {
				return fmt.Errorf("step %d: operand in slot %d is not computed before: %w", i, in, compute.ErrArgument)
			}
		}
		if s.Entry == nil || s.Entry != Fused && len(s.Out) != s.Entry.ResultCount() {
			return fmt.Errorf("step %d: no entry, or %d results: %w", i, len(s.Out), compute.ErrArgument)
		}
		for _, out := range s.Out {
			if out < 0 || int(out) >= len(defined) || defined[out] {
				return fmt.Errorf("step %d: result in slot %d twice: %w", i, out, compute.ErrArgument)
			}
			defined[out] = true
		}
	}
	for _, asked := range [2][]Slot{p.Read, p.Keep} {
		for _, s := range asked {
			if !known(s) {
				return fmt.Errorf("result in slot %d, which no step computes: %w", s, compute.ErrArgument)
			}
		}
	}
	return nil
}

// SameTensor reports whether two tensors are one.
func SameTensor(a, b compute.Tensor) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && a == b
}
