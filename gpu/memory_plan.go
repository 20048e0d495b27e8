package gpu

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/memplan"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// arrange gives every value an allocation, and scratch memory blocks: blocks serve again when their last reader has run.
func (d *core) arrange(pl *plan, lowerings []wgsl.Lowering) error {
	p := pl.prog
	m := &memplan.Demand{Bytes: make([]int, len(p.Values)), Before: p.Host, NoReuse: p.NoReuse}
	retained := make([]bool, len(p.Values))
	for _, s := range p.Keep {
		retained[s] = true
	}
	for i, v := range p.Values {
		n := pl.bytes(program.Slot(i))
		if err := d.checkBuffer(n, fmt.Sprintf("a value of type %v", v.Type)); err != nil {
			return err
		}
		if v.Source != program.FromTensor && pl.storage[i] == program.Slot(i) && !retained[i] {
			m.Bytes[i] = int(n)
		}
	}
	for _, s := range p.Read {
		m.After = append(m.After, pl.storage[s])
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		u := memplan.Use{Out: s.Out}
		for _, in := range s.In {
			u.In = append(u.In, pl.storage[in])
		}
		// Nothing else lies over an operand, not even what a thread reads and writes at one place: a dispatch may not bind a buffer
		// for reading and, a second time, for writing. It could if the operand had no binding and the kernel read the result's, which
		// would be one more pipeline for each operand of each expression. CUDA and the CPU device do it.
		for k := range s.Entry.Updates { // kernels bind the result alone, which may have been the operand
			u.Over = append(u.Over, u.In[k:k+1])
		}
		for _, n := range lowerings[i].Scratch {
			n = wgsl.BufferSize(int(n))
			if err := d.checkBuffer(n, "scratch memory"); err != nil {
				return err
			}
			u.Scratch = append(u.Scratch, int(n))
		}
		m.Steps = append(m.Steps, u)
	}
	pl.blocks = m.InBlocks()
	for _, n := range pl.blocks.Blocks {
		pl.addAllocation(uint64(n), true)
	}
	pl.allocation = pl.blocks.Values
	for i := range p.Values {
		if m.Bytes[i] == 0 && pl.storage[i] == program.Slot(i) {
			pl.allocation[i] = pl.addAllocation(pl.bytes(program.Slot(i)), false)
		}
	}
	for i, at := range pl.storage {
		pl.allocation[i] = pl.allocation[at]
	}
	for _, s := range m.After {
		if pl.allocation[s] < 0 {
			return fmt.Errorf("result in slot %d, which no step computes: %w", s, compute.ErrArgument)
		}
	}
	for i, u := range m.Steps {
		for _, s := range u.In {
			if pl.allocation[s] < 0 {
				return fmt.Errorf("step %d: operand in slot %d, which no step computes: %w", i, s, compute.ErrArgument)
			}
		}
	}
	return nil
}

// view puts results of reshapes where their operands lie, unless one of the two is updated in place, or the result becomes a
// tensor. It returns which steps have nothing to do then.
func (pl *plan) view() []bool {
	p := pl.prog
	changing := make([]bool, len(p.Values))
	for i := range p.Steps {
		s := &p.Steps[i]
		for k := range s.Entry.Updates {
			changing[s.In[k]], changing[pl.storage[s.In[k]]], changing[s.Out[k]] = true, true, true
		}
	}
	views := make([]bool, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Entry != catalogue.Reshape {
			continue
		}
		in, out := pl.storage[s.In[0]], s.Out[0]
		if !changing[in] && !changing[out] && !slices.Contains(p.Keep, out) {
			pl.storage[out], views[i] = in, true
		}
	}
	return views
}

// addPlace returns a new allocation.
func (pl *plan) addAllocation(bytes uint64, stable bool) int {
	pl.sizes, pl.stable = append(pl.sizes, bytes), append(pl.stable, stable)
	return len(pl.sizes) - 1
}

// bytes is the room of a value.
func (pl *plan) bytes(s program.Slot) uint64 { return wgsl.BufferSize(pl.prog.Values[s].Bytes()) }

func (d *core) checkBuffer(n uint64, what string) error {
	if n > d.info.Limits.MaxBuffer {
		return fmt.Errorf("%s needs a buffer of %d bytes, the device allows %d: %w", what, n, d.info.Limits.MaxBuffer, compute.ErrTooLarge)
	}
	return nil
}

// Memory tells what one run needs; see [program.Sized].
func (pl *plan) Memory() program.Memory {
	m := program.Memory{Peak: pl.blocks.Peak, Step: pl.blocks.Step}
	m.Inputs, m.Results = pl.prog.Traffic()
	return m
}
