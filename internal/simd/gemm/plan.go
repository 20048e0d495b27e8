package gemm

import (
	"sync/atomic"

	"github.com/wavelane/wavelane/internal/simd/pool"
)

// Plan is the work of a product: phases in order, each complete before the next begins, of units that may run in any order
// and at the same time. Phases, units and results depend on the product and the machine, not on the number of workers: every
// element of C is a chain of sums over blocks of the inner dimension that only the shape determines.
//
// A plan is read-only and may be used for many products of its shape at the same time.
type Plan struct {
	Product
	s    *shape
	kind kind
	kc   int // steps of the inner dimension in a block

	rows, cols   int // of C in a unit of the main phase
	down, across int // units over C, or over a slab of it

	splits, perSplit int // parts of the inner dimension that are added at the end, and the blocks in one

	// A slab is what of B is packed at a time: matrices, steps and columns; and the number of slabs along each.
	items, steps, wide    int
	byItem, byStep, byCol int
}

// unitsPerThread is the number of units for each thread, so that all end at about the same time.
const unitsPerThread = 4

// leastPanels is the least number of panels of A in a unit, if there are as many.
const leastPanels = 4

type kind uint8

const (
	scaled  kind = iota // no summands
	vectors             // M or N is 1
	direct              // operands are used as they lie
	few                 // units of columns pack all of A, and B as they use it
	packed              // a phase packs a slab of B, the next multiplies it
)

// Limits of units.
const (
	unitNS     = 20_000    // least work if there is enough of it
	longUnitNS = 1_000_000 // most work where more units cost nothing
)

// NewPlan plans a product for a number of threads. C has at least one element.
func NewPlan(p *Product, threads int) (pl Plan) {
	s := active()
	pl.Product, pl.s, pl.splits = *p, s, 1
	pl.fold()
	p = &pl.Product
	pl.kc = s.depth(p.K)
	switch {
	case p.K == 0 || p.Alpha == 0:
		pl.kind, pl.rows, pl.down, pl.across = scaled, 1, p.M, 1
	case p.M == 1 || p.N == 1:
		pl.planVector(threads)
	case s.near(p):
		pl.kind = direct
		pl.planColumns(threads, s.nr, s.nr)
	case s.few(p):
		pl.kind, pl.kc = few, s.shallow(p)
		pl.planColumns(threads, s.group(), unitCols)
	default:
		pl.planPacked(threads)
	}
	return pl
}

// fold makes a batch that shares B one product with many rows, if the rows of A and C go on from one item to the next.
func (pl *Plan) fold() {
	p := &pl.Product
	if p.Batch > 1 && p.StrideB == 0 && p.StrideA == p.M*p.AM && p.StrideC == p.M*p.LDC && !p.BiasRows {
		p.M *= p.Batch
		p.Batch, p.StrideA, p.StrideC = 1, 0, 0
	}
}

// depth is the number of steps in a block. A panel of B takes three quarters of L1, beside the one of A that is read. With the
// widest vectors it comes from L2 fast enough, and blocks are longer, since reading and writing C once a block costs more there.
func (s *shape) depth(k int) int {
	most := min(512, machine.l1*3/4/(4*s.nr))
	if s.lanes == maxLanes {
		most = min(64*s.lanes, machine.l1*8/3/(4*s.nr))
	}
	return max(1, ceilDiv(k, max(1, ceilDiv(k, most))))
}

// rate is what a multiplication and addition takes, in ns.
func (s *shape) rate() float64 { return 0.25 / float64(s.lanes) }

// planColumns plans units of columns that are a multiple of step, of at least wide columns unless there would be fewer units than
// threads.
func (pl *Plan) planColumns(threads, step, wide int) {
	pl.rows, pl.down = pl.M, 1
	perStep := pl.s.rate() * float64(pl.M) * float64(step) * float64(pl.K)
	share := func(units int) int { return ceilDiv(pl.N, max(1, ceilDiv(units, pl.Batch))) }
	cols := max(share(unitsPerThread*threads), min(wide, share(threads)), step*int(unitNS/perStep))
	if pl.kind == direct {
		cols = min(cols, step*max(1, int(longUnitNS/perStep)))
	}
	pl.cols = roundUp(cols, step)
	pl.across = ceilDiv(pl.N, pl.cols)
	// This must depend on the shape alone.
	blocks, pieces := ceilDiv(pl.K, pl.kc), pl.Batch*ceilDiv(pl.N, step)
	pl.perSplit = blocks
	if pieces < 16 && blocks > 8 {
		pl.perSplit = max(4, ceilDiv(blocks*pieces, 32))
		pl.splits = ceilDiv(blocks, pl.perSplit)
	}
}

func (pl *Plan) planPacked(threads int) {
	pl.kind = packed
	p, s := &pl.Product, pl.s
	most := machine.l2 * 2 / 4
	pl.items, pl.steps, pl.wide = p.Batch, p.K, p.N
	if p.StrideB == 0 {
		pl.items = 1
	}
	if size := roundUp(p.N, s.lanes); pl.items*pl.steps*size > most {
		if pl.items = max(1, most/(pl.steps*size)); pl.items == 1 {
			if pl.steps = max(1, most/(size*pl.kc)) * pl.kc; pl.steps >= p.K {
				pl.steps = p.K
			}
			if pl.steps*size > most {
				pl.wide = most / pl.steps / s.nr * s.nr
			}
		}
	}
	if p.StrideB == 0 { // all matrices meet the same B
		pl.items = p.Batch
	}
	pl.byItem, pl.byStep, pl.byCol = ceilDiv(p.Batch, pl.items), ceilDiv(p.K, pl.steps), ceilDiv(p.N, pl.wide)

	// Units of few rows read B often, those of few columns pack A often.
	work := s.rate() * float64(p.M) * float64(pl.wide) * float64(pl.steps) * float64(pl.items)
	want := min(unitsPerThread*threads, int(work/unitNS))
	if threads < 2 {
		want = 1
	}
	units := func() int { return pl.items * pl.down * ceilDiv(pl.wide, pl.cols) }
	pl.cols = roundUp(pl.wide, s.nr)
	cut := func(panels int) {
		pl.down = ceilDiv(p.M, min(panels*s.mr, p.M))
		if even := roundUp(pl.down, threads); pl.items%threads != 0 && even*leastPanels*s.mr <= p.M { // all threads end at about the same time
			pl.down = even
		}
		pl.rows = ceilDiv(p.M, pl.down)
		pl.down = ceilDiv(p.M, pl.rows)
	}
	for panels := max(leastPanels, machine.l2/4/(4*pl.kc*s.mr)); ; panels-- {
		if cut(panels); units() >= want || panels <= leastPanels {
			break
		}
	}
	for units() < want && pl.cols > 4*s.nr {
		pl.cols = roundUp(pl.cols/2, s.nr)
	}
	pl.across = ceilDiv(pl.wide, pl.cols)
}

// Scratch is the number of float32 that the phases share. Their contents are undefined at the start.
func (pl *Plan) Scratch() int {
	switch {
	case pl.kind == packed:
		return pl.packedItems() * pl.slabSize()
	case pl.splits > 1:
		return pl.splits * pl.Batch * pl.M * pl.N
	}
	return 0
}

// packedItems is the number of matrices in a slab of packed B.
func (pl *Plan) packedItems() int {
	if pl.StrideB == 0 {
		return 1
	}
	return pl.items
}

// slabSize is the number of elements of a packed matrix of a slab.
func (pl *Plan) slabSize() int { return pl.steps * roundUp(pl.wide, pl.s.lanes) }

// Phases is the number of phases.
func (pl *Plan) Phases() int {
	switch {
	case pl.kind == packed:
		return 2 * pl.byItem * pl.byCol * pl.byStep
	case pl.splits > 1:
		return 2
	}
	return 1
}

// Phase returns the number of units of a phase and the estimated cost of one, in ns on one core.
func (pl *Plan) Phase(i int) (units int, ns float64) {
	area := float64(pl.rows * pl.cols)
	switch {
	case pl.kind == scaled:
		return pl.Batch * pl.M, 10 + float64(pl.N)*(0.2+pl.FinishNS)
	case pl.kind == vectors && i == 0:
		return pl.Batch * pl.across * pl.splits, 20 + float64(pl.cols)*(vectorNS*float64(pl.kc)+pl.FinishNS)
	case pl.kind == vectors:
		return pl.Batch * pl.across, 20 + float64(pl.cols)*(0.5*float64(pl.splits)+pl.FinishNS)
	case pl.kind != packed && i == 0:
		return pl.Batch * pl.across * pl.splits, 20 + area*(pl.s.rate()*float64(min(pl.K, pl.perSplit*pl.kc))+pl.FinishNS)
	case pl.kind != packed:
		return pl.Batch * pl.M, 10 + float64(pl.N)*(0.2*float64(pl.splits)+pl.FinishNS)
	case i%2 == 0:
		b := pl.slab(i / 2)
		items := b.items
		if pl.StrideB == 0 {
			items = 1
		}
		return items * ceilDiv(b.steps, pl.kc) * ceilDiv(b.cols, packGroup*pl.s.nr), 0.3 * float64(pl.kc*packGroup*pl.s.nr)
	}
	b := pl.slab(i / 2)
	return b.items * pl.down * ceilDiv(b.cols, pl.cols), area * (pl.s.rate()*float64(b.steps) + pl.FinishNS)
}

// Do computes units lo ≤ u < hi of a phase. Scratch is as long as Scratch says and the same for all phases of a run. When stop,
// which may be nil, becomes true, it may return early.
func (pl *Plan) Do(i, lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	switch {
	case pl.kind == scaled:
		for u := lo; u < hi; u++ {
			pl.scale(o, u/pl.M, u%pl.M, u%pl.M+1)
		}
	case pl.kind == vectors && i == 0:
		pl.doVector(lo, hi, o, scratch, stop)
	case pl.kind == vectors:
		pl.gatherVector(lo, hi, o, scratch)
	case pl.kind != packed && i == 0:
		pl.doColumns(lo, hi, o, scratch, stop)
	case pl.kind != packed:
		pl.gather(lo, hi, o, scratch)
	case i%2 == 0:
		pl.packB(i/2, lo, hi, o, scratch)
	default:
		pl.multiply(i/2, lo, hi, o, scratch, stop)
	}
}

// stopped is called now and then by units that may take long.
func stopped(stop *atomic.Bool) bool {
	if stop == nil {
		return false
	}
	pool.Yield()
	return stop.Load()
}
