package simd

import (
	"math"

	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// moments are the number of elements, their mean, and the sum of squared differences from it. Runs are put together by Chan,
// Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
type moments struct{ n, mean, squares float64 }

func (a moments) plus(b moments) moments {
	n, d := a.n+b.n, b.mean-a.mean
	return moments{n, a.mean + d*b.n/n, a.squares + b.squares + d*d*a.n*b.n/n}
}

// variance is that of the elements themselves, not an estimate from a sample.
func (a moments) variance() float64 { return a.squares / a.n }

// ones has as many elements as a block has at most.
var ones = func() (x [8192]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// momentsOf returns the moments of a block, in two passes.
func momentsOf(x []float32) moments {
	n := float64(len(x))
	mean := float64(kernels.Sum(x)) / n
	around := float32(mean)
	s := float64(kernels.SumSqDiff(x, around))
	if s > n*mean*mean {
		d := mean - float64(around)
		return moments{n, mean, s - n*d*d}
	}
	// The elements differ little against the mean, whose own error now counts: what is left of it shows in the sum of the
	// differences.
	d := float64(kernels.SumProdDiff(x, ones[:len(x)], around, 0)) / n
	return moments{n, float64(around) + d, max(0, s-n*d*d)}
}

// comoments are the moments of two slices and the sum of the products of their differences from the means.
type comoments struct {
	a, b     moments
	products float64
}

func (p comoments) plus(q comoments) comoments {
	n := p.a.n + q.a.n
	da, db := q.a.mean-p.a.mean, q.b.mean-p.b.mean
	return comoments{p.a.plus(q.a), p.b.plus(q.b), p.products + q.products + da*db*p.a.n*q.a.n/n}
}

func comomentsOf(a, b []float32, _ int) comoments {
	c := comoments{a: momentsOf(a), b: momentsOf(b)}
	ma, mb := float32(c.a.mean), float32(c.b.mean)
	c.products = float64(kernels.SumProdDiff(a, b, ma, mb)) - c.a.n*(c.a.mean-float64(ma))*(c.b.mean-float64(mb))
	return c
}

var (
	momentsFold = fold[moments]{cost: cost{1.6, 0.15}, merge: moments.plus,
		block: func(a, _ []float32, _ int) moments { return momentsOf(a) }}
	comomentsFold = fold[comoments]{cost: cost{4, 0.37}, merge: comoments.plus, block: comomentsOf}
)

func (c comoments) correlation() float64 {
	return max(-1, min(c.products/math.Sqrt(c.a.squares*c.b.squares), 1))
}
