package gemm

import (
	"sync"

	"github.com/wavelane/wavelane/internal/simd/pool"
)

// Run computes a product on the shared pool, on a limited number of threads; 0 stands for as many as the pool permits.
func Run(p *Product, o *Operands, threads int) {
	if p.M == 0 || p.N == 0 || p.Batch == 0 {
		return
	}
	if active().small(p, o) {
		return
	}
	ns := active().rate()
	if p.M == 1 || p.N == 1 {
		ns = max(ns, vectorNS)
	}
	ns *= float64(p.M) * float64(p.N) * float64(p.K) * float64(p.Batch)
	if ns < shortNS {
		threads = 1
	} else if threads == 0 { // what the pool permits takes a lock to find out
		threads = pool.Limit()
	}
	if threads > 1 && ns < splitNS && !pool.Shared().Awake() {
		threads = 1
	}
	pl := NewPlan(p, threads)
	n := pl.Scratch()
	if threads < 2 {
		var scratch []float32
		if n > 0 {
			r := runs.Get().(*run)
			defer runs.Put(r)
			scratch = r.memory(n)
		}
		for i := range pl.Phases() {
			units, _ := pl.Phase(i)
			pl.Do(i, 0, units, o, scratch, nil)
		}
		return
	}
	r := runs.Get().(*run)
	defer runs.Put(r)
	r.plan, r.operands, r.scratch = pl, *o, r.memory(n)
	for i := range pl.Phases() {
		units, ns := pl.Phase(i)
		r.phase, r.units = i, units
		r.grain = max(1, min(units, int(grainNS/ns)))
		pool.Shared().EachN(r, ceilDiv(units, r.grain), threads)
	}
	r.operands = Operands{}
}

// Limits of the work for several threads.
const (
	shortNS = 25_000 // long against the time in which a loop starts on threads that are awake
	splitNS = 40_000 // and on threads that sleep
)

// grainNS is the least time of a part: long against the cost of handing it out.
const grainNS = 5000

// run is a plan in execution, a task of the pool.
type run struct {
	plan                Plan
	operands            Operands
	scratch             []float32
	phase, units, grain int
}

func (r *run) memory(n int) []float32 {
	if cap(r.scratch) < n {
		r.scratch = make([]float32, n)
	}
	return r.scratch[:n]
}

// Do computes a part of the phase's units.
func (r *run) Do(part int) {
	lo := part * r.grain
	r.plan.Do(r.phase, lo, min(lo+r.grain, r.units), &r.operands, r.scratch, nil)
}

var runs = sync.Pool{New: func() any { return new(run) }}
