package cpu

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// call is one step as the lowerings see it. Some result has at least one element.
type call struct {
	in   []program.Type
	outs []program.Type
	out  program.Type // the first of outs
	attr program.Attr
	expressions
}

// work is the code of a step: phases in order, each complete before the next begins.
type work struct {
	phases  []phase
	scratch int // bytes that the phases share; contents undefined at the start
}

// phase is work in independent units. The cut into chunks depends on the shape alone, never on the number of workers.
type phase struct {
	units int
	ns    float64                   // estimated cost of a unit
	do    func(a *args, lo, hi int) // computes units lo ≤ u < hi
	grain int                       // units per chunk; set from the cost
}

// args is the data of one step of one run. An operand that is changed in place is its result: the same view.
type args struct {
	outs    []view
	out     view // the first of outs
	in      []view
	scratch view         // 8-byte elements
	stop    *atomic.Bool // set when the run was cancelled; long units check it
	serial  uint64       // of this execution of the step; no other has it
}

// chunkTime is the time that a chunk should take, in ns: long enough to hide the cost of scheduling, short enough that the
// last chunk, or a cancelled run, ends soon.
const chunkTime = 25_000

// cut makes chunks of equal size. Few of them are an even number, so that two workers have the same.
func (p *phase) cut() {
	chunks := int(math.Ceil(min(float64(p.units), float64(p.units)*max(p.ns, 0.01)/chunkTime)))
	if chunks > 1 && chunks < evenChunks {
		chunks += chunks % 2
	}
	p.grain = max(1, engine.CeilDiv(p.units, max(chunks, 1)))
}

// evenChunks is how many chunks are enough that the last one does not count.
const evenChunks = 8

// lower returns the code of a step.
func lower(e *program.Entry, c *call) (work, error) {
	var w work
	if err := c.separate(e); err != nil {
		return w, err
	}
	if s := spanOf(e); s != nil {
		w = elementwise(e, s, c)
	} else if e == program.Fused {
		x := c.attr.Options.(program.Expression)
		w = fused(newExpression(&x, c.attr.Scalars, c.in, c.out.Shape, false), c)
	} else if f := loweringOf(e); f != nil {
		w = f(c)
	} else {
		return w, fmt.Errorf("%s has no CPU kernel: %w", e.Name, compute.ErrUnsupported)
	}
	for i := range w.phases {
		w.phases[i].cut()
	}
	return w, nil
}

// one is the work of a single phase.
func one(units int, ns float64, do func(a *args, lo, hi int)) work {
	return work{phases: []phase{{units: units, ns: ns, do: do}}}
}

// words32 is the scratch memory as float32.
func words32(a *args) []float32 { return view{a.scratch.p, 2 * a.scratch.n}.f32() }
