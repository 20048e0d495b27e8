package cuda

import (
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// allocate gives every value its memory. Inputs of more than large bytes do not go through the staging memory. Until is for collectives, see
// joins.
func (pl *plan) allocate(steps []kit.Lowering, large uint64, until map[int]int) error {
	// Inputs lie one after the other, here and in the staging memory, so that one copy brings them; large ones after them.
	var inputs, last []program.Slot
	for _, s := range pl.prog.Host {
		n := pl.bytes(s)
		pl.large = append(pl.large, n > large)
		if n > large {
			last = append(last, s)
		} else {
			inputs = append(inputs, s)
		}
	}
	a := &device.Allocator{Align: kit.Align, Inputs: append(inputs, last...),
		Room:    func(bytes int) (int, error) { return max(bytes, 1), nil }, // an address of their own also for empty ones
		Scratch: func(i int) []int { return steps[i].Scratch },
		Over: func(i int, in []program.Slot) [][]program.Slot {
			return overwrites(pl.prog, &pl.prog.Steps[i], in, steps[i])
		},
	}
	if until != nil {
		a.Until = func(i int) int { return max(i, until[i]) }
	}
	if err := pl.layout.Allocate(a); err != nil {
		return err
	}
	pl.arena = uint64(pl.layout.Peak)
	pl.layStaging()
	return nil
}

// bytes is the size of a value.
func (pl *plan) bytes(s program.Slot) uint64 { return uint64(pl.prog.Values[s].Bytes()) }

// layStaging lays out inputs and results in staging memory.
func (pl *plan) layStaging() {
	for i, s := range pl.prog.Host {
		if pl.layout.Values[s].Kind == device.InArena && !pl.large[i] {
			pl.inputs += aligned(max(pl.bytes(s), 1))
		}
	}
	pl.upload = pl.inputs
	for i, s := range pl.prog.Host {
		x := pl.layout.Values[s]
		at := uint64(x.Offset)
		if x.Kind != device.InArena && !pl.large[i] {
			at = pl.upload
			pl.upload += aligned(pl.bytes(s))
		}
		pl.uploadAt = append(pl.uploadAt, at)
	}
	for _, s := range pl.prog.Read {
		pl.readAt = append(pl.readAt, pl.read)
		pl.read += aligned(pl.bytes(s))
	}
}

// overwrites lists operands in whose memory results may lie: of what is computed element by element, or only copied.
func overwrites(p *program.Program, s *program.Step, in []program.Slot, l kit.Lowering) [][]program.Slot {
	if operands := ptxkernels.InPlace(s); operands != nil {
		list := make([][]program.Slot, len(s.Out))
		for k, out := range s.Out {
			for _, i := range operands {
				if x, y := p.Values[s.In[i]], p.Values[out]; y.Len() > 1 && x.DType == y.DType && program.EqualShape(x.Shape, y.Shape) {
					list[k] = append(list[k], in[i])
				}
			}
		}
		return list
	}
	if len(l.Actions) == 1 && l.Actions[0].Copy != nil {
		c := l.Actions[0].Copy
		whole := c.From.Offset == 0 && c.To.Offset == 0 && c.From.Size == p.Values[s.Out[0]].Bytes() && c.From.Size == p.Values[s.In[c.From.Index]].Bytes()
		if c.From.Role == lowering.Operand && c.To.Role == lowering.Result && whole {
			return [][]program.Slot{{in[c.From.Index]}}
		}
	}
	return nil
}

// aligned rounds a size up to the alignment of allocations.
func aligned(n uint64) uint64 { return (n + kit.Align - 1) &^ (kit.Align - 1) }

// Memory implements program.Executable.
func (e *compiled) Memory() program.Memory { return e.layout.Memory() }
