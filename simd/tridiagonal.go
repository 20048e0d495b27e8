package simd

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// tridiagonal is the workspace of an eigen-decomposition in float64.
type tridiagonal struct {
	n     int
	a     []float64 // n×n: the matrix, then in row k from k+1 on the vector of reflection k
	z     []float64 // n rows of wide elements: the product of all transformations
	wide  int       // n rounded up to whole stripes
	d, e  []float64 // diagonal and what stands beside it, e[i] between d[i] and d[i+1]
	beta  []float64 // reflection k is I − beta[k]·v·vᵀ
	p, w  []float64
	order []int
	turns []float64 // cosines and sines of rotations to apply
	runs  []turnRun
}

// turnRun is a sequence of rotations, each of two neighbouring rows: the first of from and from−1, the next one row less.
type turnRun struct {
	from, at, n int // at: first of n pairs in turns
}

// stripe is the number of columns of z that rotations work on at a time.
const stripe = kernels.TurnColumns

// heldTurns is how many rotations wait for each row, so that a stripe is rotated often while it is in the cache.
const heldTurns = 8

func (t *tridiagonal) reset(n int) {
	t.n, t.wide = n, engine.Padded(n, stripe)
	t.a, t.z = engine.Grow(t.a, n*n), engine.Grow(t.z, n*t.wide)
	t.d, t.e, t.beta = engine.Grow(t.d, n), engine.Grow(t.e, n), engine.Grow(t.beta, n)
	t.p, t.w = engine.Grow(t.p, n), engine.Grow(t.w, n)
	t.order = engine.Grow(t.order, n)
	t.turns = engine.Grow(t.turns, 2*heldTurns*n)[:0]
	t.runs = engine.Grow(t.runs, heldTurns*n)[:0]
}

// reduce makes the matrix tridiagonal: d and e, with the reflections in a and beta.
//
// A reflection changes what is left of the matrix by v·wᵀ + w·vᵀ. Every row waits with that change until the next
// reflection's product with the row is due, so that the matrix goes through the cache once for each reflection.
func (t *tridiagonal) reduce() {
	n := t.n
	var v, w []float64 // of the change that rows from k on wait for, from element k on
	for k := range n {
		row := t.a[k*n : (k+1)*n]
		if k > 0 {
			kernels.Rank2x64(row[k:], v, w, v[0], w[0])
		}
		t.d[k] = row[k]
		u := row[k+1:]
		t.beta[k], t.e[k] = reflection(u)
		next := t.p[k+1 : n]
		s := 0.0
		for i := k + 1; i < n; i++ {
			x := t.a[i*n+k+1 : (i+1)*n]
			if k > 0 {
				kernels.Rank2x64(x, v[1:], w[1:], v[i-k], w[i-k])
			}
			p := t.beta[k] * kernels.Dot64(x, u)
			next[i-k-1] = p
			s += p * u[i-k-1]
		}
		s *= t.beta[k] / 2
		for i := range next {
			next[i] -= s * u[i]
		}
		v, w = u, next
		t.p, t.w = t.w, t.p
	}
}

// reflection replaces x by the vector v of a reflection I − beta·v·vᵀ that maps x to alpha in its first element and 0 in
// all others.
func reflection(x []float64) (beta, alpha float64) {
	if len(x) == 0 {
		return 0, 0
	}
	rest := kernels.Dot64(x[1:], x[1:])
	if rest == 0 {
		return 0, x[0]
	}
	alpha = -math.Copysign(math.Sqrt(x[0]*x[0]+rest), x[0])
	x[0] -= alpha
	return 2 / (x[0]*x[0] + rest), alpha
}

// unfold sets z to the transposed product of the reflections, row by row: row r is the unit vector r times the reflections
// r−1 to 0, since later ones leave it as it is.
func (t *tridiagonal) unfold() {
	n := t.n
	clear(t.z[:n*t.wide])
	for r := range n {
		row := t.z[r*t.wide:][:n]
		row[r] = 1
		for k := r - 1; k >= 0; k-- {
			if v := t.a[k*n+k+1 : (k+1)*n]; t.beta[k] != 0 {
				kernels.Axpy64(row[k+1:], v, -t.beta[k]*kernels.Dot64(row[k+1:], v))
			}
		}
	}
}

// iterate makes the tridiagonal matrix diagonal by the implicit QL method and rotates the rows of z accordingly. It reports
// whether it came to an end.
func (t *tridiagonal) iterate() bool {
	n, d, e := t.n, t.d, t.e
	norm := 0.0
	for i := range n {
		norm = max(norm, math.Abs(d[i])+math.Abs(e[i]))
	}
	small := 0x1p-53 * norm // what is not above it vanishes beside the rounding errors so far
	left := 50 * n          // iterations; one or two for each value is usual
	for l := range n {
		for {
			m := l
			for m < n-1 && math.Abs(e[m]) > small {
				m++
			}
			if m == l {
				break
			}
			if left--; left < 0 {
				return false
			}
			t.sweep(l, m)
		}
	}
	t.rotate()
	return true
}

// sweep does one iteration on rows l to m, between which no e vanishes. The shift is Wilkinson's.
func (t *tridiagonal) sweep(l, m int) {
	if len(t.turns)+2*(m-l) > cap(t.turns) || len(t.runs) == cap(t.runs) {
		t.rotate()
	}
	d, e := t.d, t.e
	run := turnRun{from: m, at: len(t.turns)}
	g := (d[l+1] - d[l]) / (2 * e[l])
	r := math.Hypot(g, 1)
	g = d[m] - d[l] + e[l]/(g+math.Copysign(r, g))
	s, c, p := 1.0, 1.0, 0.0
	for i := m - 1; i >= l; i-- {
		f, b := s*e[i], c*e[i]
		r = length(f, g)
		e[i+1] = r
		if r == 0 { // the matrix falls apart here
			d[i+1] -= p
			e[m] = 0
			t.runs = append(t.runs, run)
			return
		}
		s, c = f/r, g/r
		g = d[i+1] - p
		r = (d[i]-g)*s + 2*c*b
		p = s * r
		d[i+1] = g + p
		g = c*r - b
		t.turns = append(t.turns, c, s)
		run.n++
	}
	d[l] -= p
	e[l], e[m] = g, 0
	t.runs = append(t.runs, run)
}

// length is √(x²+y²), fast where nothing is near overflow or underflow.
func length(x, y float64) float64 {
	if s := x*x + y*y; s > 0x1p-900 && s < 0x1p900 {
		return math.Sqrt(s)
	}
	return math.Hypot(x, y)
}

// rotate applies the rotations that wait.
func (t *tridiagonal) rotate() {
	for j := 0; j < t.wide; j += stripe {
		for _, r := range t.runs {
			kernels.Turn64(t.z[:r.from*t.wide+j+stripe], t.wide, t.turns[r.at:r.at+2*r.n])
		}
	}
	t.turns, t.runs = t.turns[:0], t.runs[:0]
}
