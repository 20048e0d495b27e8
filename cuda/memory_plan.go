package cuda

import (
	"slices"

	"github.com/wavelane/wavelane/internal/memplan"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// arrange gives every value its place: in the arena of a run, where memory whose last reader has run serves again, unless the
// value is a tensor's or is kept. Inputs of more than large bytes have no place in the staging memory. Uses are those of the
// program's steps.
func (pl *plan) arrange(uses []memplan.Use, large uint64) {
	p := pl.prog
	for i, v := range p.Values {
		pl.allocations[i].bytes = uint64(v.Bytes())
	}
	for i, s := range p.Tensor {
		pl.allocations[s].kind, pl.allocations[s].index = inTensor, i
	}
	for i, at := range pl.storage {
		if at != program.Slot(i) {
			pl.allocations[i].kind, pl.allocations[i].index = inTensor, pl.allocations[at].index
		}
	}
	for i, s := range p.Keep {
		if pl.allocations[s].kind == inArena {
			pl.allocations[s].kind, pl.allocations[s].index = inRetained, i
		}
	}
	d := memplan.Demand{Bytes: make([]int, len(p.Values)), After: p.Read, Steps: uses, Align: kit.Align, NoReuse: p.NoReuse}
	for s := range d.Bytes {
		if pl.allocations[s].kind == inArena {
			d.Bytes[s] = int(max(pl.allocations[s].bytes, 1)) // an address of their own also for empty ones
		}
	}
	for _, u := range uses {
		for i, n := range u.Scratch {
			u.Scratch[i] = max(n, 1)
		}
	}
	// Inputs lie one behind the other, here and in the staging memory, so that one copy brings them; large ones behind them.
	var behind []program.Slot
	for _, s := range p.Host {
		x := &pl.allocations[s]
		pl.large = append(pl.large, x.bytes > large)
		switch {
		case x.kind != inArena:
		case x.bytes > large:
			behind = append(behind, s)
		default:
			d.Before = append(d.Before, s)
			pl.inputs += aligned(max(x.bytes, 1))
		}
	}
	d.Before = append(d.Before, behind...)
	a := d.Arena()
	pl.arena, pl.fullest = uint64(a.Peak), a.Step
	for s, at := range a.Values {
		pl.allocations[s].at = uint64(max(at, 0))
	}
	next := len(p.Values)
	for _, step := range a.Scratch {
		for _, at := range step {
			pl.allocations[next].at = uint64(at)
			next++
		}
	}
	pl.dropCopies()
	pl.layStaging()
}

// dropCopies removes copies of memory to itself.
func (pl *plan) dropCopies() {
	actions, from := pl.actions, 0
	pl.actions = pl.actions[:0]
	for i, end := range pl.ends {
		for _, a := range actions[from:end] {
			if a.kind != copying || !pl.same(a.from, a.to) {
				pl.actions = append(pl.actions, a)
			}
		}
		from, pl.ends[i] = end, len(pl.actions)
	}
}

// same reports whether two positions are one.
func (pl *plan) same(a, b position) bool {
	x, y := pl.allocations[a.allocation], pl.allocations[b.allocation]
	return x.kind == inArena && y.kind == inArena && x.at+a.offset == y.at+b.offset
}

// layStaging lays out inputs and results in staging memory.
func (pl *plan) layStaging() {
	pl.upload = pl.inputs
	for i, s := range pl.prog.Host {
		x := &pl.allocations[s]
		at := x.at
		if x.kind != inArena && !pl.large[i] {
			at = pl.upload
			pl.upload += aligned(x.bytes)
		}
		pl.uploadAt = append(pl.uploadAt, at)
	}
	for _, s := range pl.prog.Read {
		pl.readAt = append(pl.readAt, pl.read)
		pl.read += aligned(pl.allocations[s].bytes)
	}
}

// use is what a step does with memory. What it changes in place, or only copies, stays where it is if nobody else needs it, and
// so may what is computed element by element.
func use(p *program.Program, s *program.Step, l kit.Lowering) memplan.Use {
	u := memplan.Use{In: s.In, Out: s.Out, Scratch: slices.Clone(l.Scratch)}
	for k := range s.Entry.Updates {
		u.Over = append(u.Over, []program.Slot{s.In[k]})
	}
	if operands := ptxkernels.InPlace(s); operands != nil {
		u.Over = make([][]program.Slot, len(s.Out))
		for k, out := range s.Out {
			for _, i := range operands {
				if x, y := p.Values[s.In[i]], p.Values[out]; y.Len() > 1 && x.DType == y.DType && program.EqualShape(x.Shape, y.Shape) {
					u.Over[k] = append(u.Over[k], s.In[i])
				}
			}
		}
	}
	if len(l.Actions) == 1 && l.Actions[0].Copy != nil {
		c := l.Actions[0].Copy
		whole := c.From.Offset == 0 && c.To.Offset == 0 && c.Bytes == p.Values[s.Out[0]].Bytes() && c.Bytes == p.Values[s.In[c.From.Index]].Bytes()
		if c.From.Role == kit.Operand && c.To.Role == kit.Result && whole {
			u.Over = [][]program.Slot{{s.In[c.From.Index]}}
		}
	}
	return u
}

// aligned is the room that so many bytes take.
func aligned(n uint64) uint64 { return (n + kit.Align - 1) &^ (kit.Align - 1) }

// Memory implements program.Sized.
func (e *executable) Memory() program.Memory {
	m := program.Memory{Peak: int(e.arena), Step: e.fullest}
	m.Inputs, m.Results = e.prog.Traffic()
	return m
}
