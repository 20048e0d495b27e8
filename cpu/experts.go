package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/blocks"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// experts is the work of rows that choose among matrices. Pairs of a row and a matrix are sorted by their matrix, so that each that is
// chosen is read once for all of its rows, and no other is.
type experts struct {
	sequence
	catalogue.ExpertDims
	compute.ExpertOptions
	weights blocks.Weights // of one expert, if they are packed

	lists  source // the pairs of each expert
	sorted source // rows of x in that order, rounded if that is requested
	y      source // rows of the result in that order
}

func matmulExperts(c *call) work {
	o := c.attr.Options.(compute.ExpertOptions)
	d, _ := catalogue.ExpertShape(c.in, o) // checked
	q := &experts{ExpertDims: d, ExpertOptions: o}
	row := d.K // words of x
	if d.Packed {
		q.weights = blocks.NewWeights(o.Format, d.N, c.in[1].Shape[2])
		if q.Q8 {
			row = blocks.RoundedWords(d.K)
		}
	}
	q.lists, q.sorted, q.y = q.temporary(d.Experts+2+d.Pairs), q.temporary(d.Pairs*row), q.temporary(d.Pairs*d.N)
	q.phases = []phase{{units: 1, ns: float64(d.Experts + 8*d.Pairs), do: func(a *args, _, _ int) {
		l := q.listed(a)
		l.fill(a.in[2].i32(), nil, 0)
	}}}
	if d.K > 0 {
		q.phases = append(q.phases, phase{units: d.Pairs, ns: 20 + float64(d.K), do: q.rows})
	}
	ns := multiplying.Ns()
	switch {
	case !d.Packed:
		ns = 0.1
	case q.Q8:
		ns = multiplying8.Ns()
	}
	if d.Pairs <= blocks.Most { // a unit has a row of each matrix that is chosen
		q.phases = append(q.phases, phase{units: d.N, ns: float64(d.Pairs) * (20 + ns*float64(d.K)), do: func(a *args, lo, hi int) {
			l := q.listed(a)
			for e := range d.Experts {
				q.multiply(a, &l, e, lo, hi)
			}
		}})
	} else { // a unit has some rows of a matrix
		parts := engine.CeilDiv(d.N, blocks.Held)
		cost := blocks.Held * (20 + ns*float64(d.K*d.Pairs)/float64(max(d.Experts, 1)))
		q.phases = append(q.phases, phase{units: d.Experts * parts, ns: cost, do: func(a *args, lo, hi int) {
			l := q.listed(a)
			for u := lo; u < hi; u++ {
				from := u % parts * blocks.Held
				q.multiply(a, &l, u/parts, from, min(from+blocks.Held, d.N))
			}
		}})
	}
	q.phases = append(q.phases, phase{units: d.Pairs, ns: 10 + 0.1*float64(d.N), do: q.deliver})
	return q.done()
}

// listed is the lists of pairs.
func (q *experts) listed(a *args) rowLists {
	w := q.lists(a).i32()
	return rowLists{w[:q.Experts+2], w[q.Experts+2:], 1}
}

// place is where a pair has been sorted to, among n of its matrix of which the first is at from. It reports false for indices outside.
func (q *experts) place(a *args, l *rowLists, pair int) (at, from, n int, ok bool) {
	e := a.in[2].i32()[pair]
	if uint(e) >= uint(q.Experts) {
		return 0, 0, 0, false
	}
	from, n = int(l.start[e]), int(l.start[e+1]-l.start[e])
	own := l.order[from : from+n] // in ascending order
	lo, hi := 0, n
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; int(own[mid]) <= pair {
			lo = mid
		} else {
			hi = mid
		}
	}
	return from + lo, from, n, true
}

// roundedRows are n rows of x from one that has been sorted on.
func (q *experts) roundedRows(a *args, from, n int) blocks.RoundedRows {
	words := blocks.RoundedWords(q.K)
	return blocks.RoundedRows{Memory: q.sorted(a).f32()[from*words:][:n*words], Rows: n, K: q.K}
}

// rows sorts the rows of x of some pairs.
func (q *experts) rows(a *args, lo, hi int) {
	l := q.listed(a)
	for pair := lo; pair < hi; pair++ {
		at, from, n, ok := q.place(a, &l, pair)
		if !ok {
			continue
		}
		x := a.in[0].f32()[pair/q.Used*q.K:][:q.K]
		if q.Packed && q.Q8 {
			r := q.roundedRows(a, from, n).Row(at - from)
			r.Round(x, 0, q.K/32)
		} else {
			copy(q.sorted(a).f32()[at*q.K:], x)
		}
	}
}

// multiply computes some elements of all rows that have chosen a matrix.
func (q *experts) multiply(a *args, l *rowLists, e, lo, hi int) {
	from, n := int(l.start[e]), int(l.start[e+1]-l.start[e])
	if n == 0 {
		return
	}
	y := q.y(a).f32()[from*q.N:][:n*q.N]
	if !q.Packed {
		w, x := a.in[1].f32()[e*q.N*q.K:][:q.N*q.K], q.sorted(a).f32()[from*q.K:][:n*q.K]
		for r := lo; r < hi; r++ {
			for i := range n {
				y[i*q.N+r] = kernels.Dot(w[r*q.K:][:q.K], x[i*q.K:][:q.K])
			}
		}
		return
	}
	size := q.N * q.weights.RowBytes()
	w := q.weights.Of(a.in[1].bytes(compute.Uint32)[e*size:][:size])
	if q.Q8 {
		w.Multiply8(y, q.N, q.roundedRows(a, from, n), lo, hi)
		return
	}
	x := q.sorted(a).f32()[from*q.K:][:n*q.K]
	for i := 0; i < n; i += blocks.Most {
		w.Multiply(y[i*q.N:], q.N, x[i*q.K:], min(blocks.Most, n-i), lo, hi)
	}
}

// deliver puts the results of pairs where they belong.
func (q *experts) deliver(a *args, lo, hi int) {
	l := q.listed(a)
	for pair := lo; pair < hi; pair++ {
		y := a.out.f32()[pair*q.N:][:q.N]
		switch at, _, _, ok := q.place(a, &l, pair); {
		case ok:
			copy(y, q.y(a).f32()[at*q.N:])
		case q.Packed:
			clear(y)
		default:
			engine.FillWith(y, float32(math.NaN()))
		}
	}
}
