package device

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/memplan"
	"github.com/wavelane/wavelane/internal/program"
)

// Kind is a kind of memory.
type Kind uint8

// Kinds.
const (
	InArena    Kind = iota // a run's memory, which values share that are not needed at the same time
	InTensor               // a tensor that the run is given
	InRetained             // a tensor that the run makes
	InHost                 // the caller's input
	InResult               // the caller's destination
)

// Allocation is the memory of a value.
type Allocation struct {
	Kind   Kind
	Index  int // of the tensor, the kept value, the input or the result
	Offset int // in bytes; in the arena of an [Allocator] with Blocks, the number of the block
}

// Plus is the allocation from n bytes further on.
func (a Allocation) Plus(n int) Allocation {
	a.Offset += n
	return a
}

// Layout says where the values of a program and the scratch memory of its steps lie during a run.
type Layout struct {
	Storage []program.Slot // by value: that in whose memory it lies, see program.Program.Storage; reshapes share their operand's
	Values  []Allocation   // by value
	Scratch [][]int        // by step: offsets in the arena or numbers of blocks; −1 for no bytes. Nil if no step needs any
	Blocks  []int          // bytes of each block; of the arena, which is one
	Peak    int            // bytes of all blocks

	p     *program.Program
	views []bool // by step; nil for none
	step  int
}

// Allocator is how a device allocates the memory of a run.
type Allocator struct {
	Align     int            // sizes and offsets are multiples of it; 0 is 1
	Blocks    bool           // each allocation has a buffer of its own, a block; otherwise all lie in one arena
	Inputs    []program.Slot // those that are copied to the arena before the first step: they lie at its start, in this order
	InHost    bool           // inputs are read where the caller has them
	InResults bool           // results are computed where the caller wants them

	Room    func(bytes int) (int, error) // that so many take
	Scratch func(step int) []int         // bytes of each piece of scratch memory of a step
	// Until is up to which step the operands and the result of a step are used, the number of steps for the end of the run; the step itself
	// where that is when it has run. It may be nil.
	Until func(step int) int
	// Over lists operands, of which in are the storage, in whose memory each result of a step may lie, see memplan.Use. It is not asked
	// about steps that update operands, and may be nil.
	Over func(step int, in []program.Slot) [][]program.Slot
}

// NewLayout finds the values that share memory whatever the device: what steps update in place, and results of reshapes. A reshape has
// memory of its own if its operand or its result is updated in place, or its result becomes a tensor.
func NewLayout(p *program.Program) *Layout {
	l := &Layout{Storage: p.Storage(), p: p, step: -1}
	if !slices.ContainsFunc(p.Steps, func(s program.Step) bool { return s.Entry == catalogue.Reshape }) {
		return l
	}
	l.views = make([]bool, len(p.Steps))
	changing := make([]bool, len(p.Values))
	for i := range p.Steps {
		s := &p.Steps[i]
		for k := range s.Entry.Updates {
			changing[s.In[k]], changing[l.Storage[s.In[k]]], changing[s.Out[k]] = true, true, true
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Entry != catalogue.Reshape {
			continue
		}
		in, out := l.Storage[s.In[0]], s.Out[0]
		if !changing[in] && !changing[out] && !slices.Contains(p.Keep, out) {
			l.Storage[out], l.views[i] = in, true
		}
	}
	return l
}

// View reports whether a step has nothing to do, since its result lies where its operand does.
func (l *Layout) View(step int) bool { return l.views != nil && l.views[step] }

// StorageOf lists the values in whose memory some values lie; the slice is slots itself if it is the same.
func (l *Layout) StorageOf(slots []program.Slot) []program.Slot {
	if !slices.ContainsFunc(slots, func(s program.Slot) bool { return l.Storage[s] != s }) {
		return slots
	}
	list := make([]program.Slot, len(slots))
	for i, s := range slots {
		list[i] = l.Storage[s]
	}
	return list
}

// Allocate gives everything its memory. What a step updates in place, and no tensor, has to be copied from the operand's memory to that
// of the result, unless they are the same.
func (l *Layout) Allocate(a *Allocator) error {
	p := l.p
	l.Values = make([]Allocation, len(p.Values))
	settled := make([]bool, len(p.Values))
	put := func(slots []program.Slot, kind Kind) {
		for i, s := range slots {
			if s = l.Storage[s]; !settled[s] {
				l.Values[s], settled[s] = Allocation{Kind: kind, Index: i}, true
			}
		}
	}
	if a.InHost {
		put(p.Host, InHost)
	}
	put(p.Tensor, InTensor)
	put(p.Keep, InRetained)
	if a.InResults {
		put(p.Read, InResult)
	}
	if err := l.allocateArena(a, settled); err != nil {
		return err
	}
	for s, at := range l.Storage {
		l.Values[s] = l.Values[at]
	}
	return nil
}

// allocateArena gives memory to the values that are not settled, and to scratch memory.
func (l *Layout) allocateArena(a *Allocator, settled []bool) error {
	p := l.p
	var bytes []int // by value; nil for none
	for s, v := range p.Values {
		if settled[s] || l.Storage[s] != program.Slot(s) {
			continue
		}
		n, err := a.Room(v.Bytes())
		if err != nil {
			return fmt.Errorf("value of type %v: %w", v.Type, err)
		}
		if n > 0 {
			if bytes == nil {
				bytes = make([]int, len(p.Values))
			}
			bytes[s] = n
		}
	}
	needed := bytes != nil
	for i := range p.Steps {
		needed = needed || !l.View(i) && len(a.Scratch(i)) > 0
	}
	if !needed {
		return nil
	}
	if bytes == nil {
		bytes = make([]int, len(p.Values))
	}
	d := memplan.Demand{Bytes: bytes, Before: a.Inputs, After: l.StorageOf(p.Read), Steps: make([]memplan.Use, len(p.Steps)), Align: a.Align,
		NoReuse: p.NoReuse}
	for i := range p.Steps {
		if l.View(i) {
			continue
		}
		s, u := &p.Steps[i], &d.Steps[i]
		for k, n := range a.Scratch(i) {
			n, err := a.Room(n)
			if err != nil {
				return fmt.Errorf("scratch memory %d of %s: %w", k, s.Name(), err)
			}
			u.Scratch = append(u.Scratch, n)
		}
		u.In, u.Out = l.StorageOf(s.In), s.Out
		for k := range s.Entry.Updates {
			u.Over = append(u.Over, u.In[k:k+1])
		}
		if u.Over == nil && a.Over != nil {
			u.Over = a.Over(i, u.In)
		}
	}
	for i := 0; a.Until != nil && i < len(p.Steps); i++ {
		used := l.StorageOf(slices.Concat(p.Steps[i].In, p.Steps[i].Out))
		if until := a.Until(i); until == len(p.Steps) {
			d.After = slices.Concat(d.After, used)
		} else if until > i {
			d.Steps[until].In = slices.Concat(d.Steps[until].In, used)
		}
	}
	plan := d.Arena
	if a.Blocks {
		plan = d.InBlocks
	}
	m := plan()
	l.Scratch, l.Blocks, l.Peak, l.step = m.Scratch, m.Blocks, m.Peak, m.Step
	for s, at := range m.Values {
		if at >= 0 && !settled[s] {
			l.Values[s].Offset = at
		}
	}
	return nil
}

// Memory tells what one run needs, see program.Executable.
func (l *Layout) Memory() program.Memory {
	m := program.Memory{Peak: l.Peak, Step: l.step}
	m.Inputs, m.Results = l.p.Traffic()
	return m
}
