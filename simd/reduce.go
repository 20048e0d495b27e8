package simd

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// reducer says how a reduction treats a run of elements and puts the parts together. Sums are kept in float64, so that
// neither the number of elements nor the cut into blocks shows in a float32 result.
type reducer struct {
	block  func(a, b []float32) part // b is nil unless there are two operands; a is not empty
	merge  func(x, y part) part      // x comes before y
	empty  part
	finish func(p part, n int) float64
	index  bool // the result is part.at
	ns     float64
}

// part is what is known of a run of elements.
type part struct {
	value float64
	at    float64 // index of the value, for argmax and argmin
}

const reduceBlock = 1 << 14

// reduction lowers a reduction. Rows longer than a block are reduced block by block first.
func reduction(r reducer) func(*call) work {
	return func(c *call) work {
		rows, cols := op.ReduceRows(c.in[0].Shape, c.attr.Options.(compute.Axis))
		perRow := max(1, (cols+reduceBlock-1)/reduceBlock)
		read := func(a *args, row, lo, hi int) part {
			if lo == hi {
				return r.empty
			}
			x := a.in[0].f32()[row*cols:]
			var y []float32
			if len(a.in) == 2 {
				y = a.in[1].f32()[row*cols:][lo:hi]
			}
			p := r.block(x[lo:hi], y)
			p.at += float64(lo)
			return p
		}
		write := func(a *args, row int, p part) {
			switch v := r.finish(p, cols); {
			case r.index:
				a.out.i32()[row] = int32(p.at)
			default:
				a.out.f32()[row] = float32(v)
			}
		}
		if perRow == 1 {
			return one(rows, 10+r.ns*float64(cols), func(a *args, lo, hi int) {
				for row := lo; row < hi; row++ {
					write(a, row, read(a, row, 0, cols))
				}
			})
		}
		return work{scratch: rows * perRow * 16, phases: []phase{
			{units: rows * perRow, ns: r.ns * reduceBlock, do: func(a *args, lo, hi int) {
				parts := a.scratch.f64()
				for u := lo; u < hi; u++ {
					from := u % perRow * reduceBlock
					p := read(a, u/perRow, from, min(from+reduceBlock, cols))
					parts[2*u], parts[2*u+1] = p.value, p.at
				}
			}},
			{units: rows, ns: 3 * float64(perRow), do: func(a *args, lo, hi int) {
				parts := a.scratch.f64()
				for row := lo; row < hi; row++ {
					p := r.empty
					for u := row * perRow; u < (row+1)*perRow; u++ {
						next := part{parts[2*u], parts[2*u+1]}
						if u == row*perRow {
							p = next
						} else {
							p = r.merge(p, next)
						}
					}
					write(a, row, p)
				}
			}},
		}}
	}
}

func plus(x, y part) part { return part{value: x.value + y.value} }

func itself(p part, _ int) float64 { return p.value }

var (
	sumReducer  = reducer{block: func(a, _ []float32) part { return part{value: sum(a)} }, merge: plus, finish: itself, ns: 0.4}
	meanReducer = reducer{block: sumReducer.block, merge: plus, ns: 0.4,
		finish: func(p part, n int) float64 { return p.value / float64(n) }}
	l1Reducer = reducer{block: func(a, _ []float32) part { return part{value: sumAbs(a)} }, merge: plus, finish: itself, ns: 0.5}
	// The catalogue makes squares beyond float32's range infinite.
	l2Reducer = reducer{block: func(a, _ []float32) part { return part{value: dot(a, a)} }, merge: plus, ns: 0.6,
		finish: func(p part, _ int) float64 { return math.Sqrt(float64(float32(p.value))) }}
	dotReducer = reducer{block: func(a, b []float32) part { return part{value: dot(a, b)} }, merge: plus, finish: itself, ns: 0.8}

	maxReducer = reducer{block: func(a, _ []float32) part { return part{value: float64(largest(a))} }, finish: itself, ns: 0.6,
		merge: func(x, y part) part { return part{value: max(x.value, y.value)} }}
	minReducer = reducer{block: func(a, _ []float32) part { return part{value: float64(smallest(a))} }, finish: itself, ns: 0.6,
		merge: func(x, y part) part { return part{value: min(x.value, y.value)} }}
	linfReducer = reducer{block: func(a, _ []float32) part { return part{value: float64(largestAbs(a))} }, finish: itself, ns: 0.6,
		merge: maxReducer.merge}
	argMaxReducer = reducer{block: argMax, finish: itself, index: true, ns: 0.6,
		merge: prefer(func(x, y float64) bool { return x >= y })}
	argMinReducer = reducer{block: argMin, finish: itself, index: true, ns: 0.6,
		merge: prefer(func(x, y float64) bool { return x <= y })}
)

// prefer keeps the earlier part where it is at least as good or NaN.
func prefer(good func(x, y float64) bool) func(x, y part) part {
	return func(x, y part) part {
		if x.value != x.value || good(x.value, y.value) {
			return x
		}
		return y
	}
}

// sum adds in four lanes, as float64.
func sum(a []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 {
		s0 += float64(a[0])
		s1 += float64(a[1])
		s2 += float64(a[2])
		s3 += float64(a[3])
		a = a[4:]
	}
	for _, v := range a {
		s0 += float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

func sumAbs(a []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 {
		s0 += math.Abs(float64(a[0]))
		s1 += math.Abs(float64(a[1]))
		s2 += math.Abs(float64(a[2]))
		s3 += math.Abs(float64(a[3]))
		a = a[4:]
	}
	for _, v := range a {
		s0 += math.Abs(float64(v))
	}
	return (s0 + s1) + (s2 + s3)
}

// dot adds products, which are exact in float64, in four lanes.
func dot(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s0 += float64(v) * float64(b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// largest returns NaN if any element is; a is not empty.
func largest(a []float32) float32 {
	m0 := a[0]
	m1, m2, m3 := m0, m0, m0
	for len(a) >= 4 {
		m0 = max(m0, a[0])
		m1 = max(m1, a[1])
		m2 = max(m2, a[2])
		m3 = max(m3, a[3])
		a = a[4:]
	}
	for _, v := range a {
		m0 = max(m0, v)
	}
	return max(m0, m1, m2, m3)
}

func smallest(a []float32) float32 {
	m0 := a[0]
	m1, m2, m3 := m0, m0, m0
	for len(a) >= 4 {
		m0 = min(m0, a[0])
		m1 = min(m1, a[1])
		m2 = min(m2, a[2])
		m3 = min(m3, a[3])
		a = a[4:]
	}
	for _, v := range a {
		m0 = min(m0, v)
	}
	return min(m0, m1, m2, m3)
}

// largestAbs compares bit patterns, whose order among non-negative floats is that of the numbers, NaN being the largest.
func largestAbs(a []float32) float32 {
	var m0, m1 uint32
	for len(a) >= 2 {
		m0 = max(m0, math.Float32bits(a[0])&^signBit)
		m1 = max(m1, math.Float32bits(a[1])&^signBit)
		a = a[2:]
	}
	for _, v := range a {
		m0 = max(m0, math.Float32bits(v)&^signBit)
	}
	return math.Float32frombits(max(m0, m1))
}

// argMax finds the first of the largest elements, or the first NaN; a is not empty.
func argMax(a, _ []float32) part {
	best, at := a[0], 0
	if best == best {
		for i, v := range a {
			if v <= best {
				continue
			}
			best, at = v, i
			if v != v {
				break
			}
		}
	}
	return part{float64(best), float64(at)}
}

func argMin(a, _ []float32) part {
	best, at := a[0], 0
	if best == best {
		for i, v := range a {
			if v >= best {
				continue
			}
			best, at = v, i
			if v != v {
				break
			}
		}
	}
	return part{float64(best), float64(at)}
}
