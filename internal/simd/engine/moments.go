package engine

import (
	"math"
	"sync"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Moments are the number of elements, their mean, and the sum of squared differences from it. Runs are combined as in Chan,
// Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
type Moments struct{ N, Mean, squares float64 }

func (a Moments) Plus(b Moments) Moments {
	n, d := a.N+b.N, b.Mean-a.Mean
	return Moments{n, a.Mean + d*b.N/n, a.squares + b.squares + d*d*a.N*b.N/n}
}

// Variance is that of the elements themselves, not an estimate from a sample.
func (a Moments) Variance() float64 { return a.squares / a.N }

// ones has as many elements as a block has at most.
var ones = sync.OnceValue(func() []float32 {
	x := make([]float32, 8192)
	for i := range x {
		x[i] = 1
	}
	return x
})

// momentsOf returns the moments of a block, in two passes.
func momentsOf(x []float32) Moments {
	n := float64(len(x))
	mean := float64(kernels.Sum(x)) / n
	around := float32(mean)
	s := float64(kernels.SumSqDiff(x, around))
	if s > n*mean*mean {
		d := mean - float64(around)
		return Moments{n, mean, s - n*d*d}
	}
	// The elements differ little against the mean, whose own error now counts: what is left of it shows in the sum of the
	// differences.
	d := float64(kernels.SumProdDiff(x, ones()[:len(x)], around, 0)) / n
	return Moments{n, float64(around) + d, max(0, s-n*d*d)}
}

// Comoments are the moments of two slices and the sum of the products of their differences from the means.
type Comoments struct {
	A, B     Moments
	Products float64
}

func (p Comoments) Plus(q Comoments) Comoments {
	n := p.A.N + q.A.N
	da, db := q.A.Mean-p.A.Mean, q.B.Mean-p.B.Mean
	return Comoments{p.A.Plus(q.A), p.B.Plus(q.B), p.Products + q.Products + da*db*p.A.N*q.A.N/n}
}

func ComomentsOf(a, b []float32, _ int) Comoments {
	c := Comoments{A: momentsOf(a), B: momentsOf(b)}
	ma, mb := float32(c.A.Mean), float32(c.B.Mean)
	c.Products = float64(kernels.SumProdDiff(a, b, ma, mb)) - c.A.N*(c.A.Mean-float64(ma))*(c.B.Mean-float64(mb))
	return c
}

var (
	MomentsFold = Fold[Moments]{Cost: Cost{1.6, 0.15}, Merge: Moments.Plus,
		Block: func(a, _ []float32, _ int) Moments { return momentsOf(a) }}
	ComomentsFold = Fold[Comoments]{Cost: Cost{4, 0.37}, Merge: Comoments.Plus, Block: ComomentsOf}
)

func (c Comoments) Correlation() float64 {
	return max(-1, min(c.Products/math.Sqrt(c.A.squares*c.B.squares), 1))
}
