package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// problem is a product with its data and what must come out.
type problem struct {
	Product
	Operands
	want, bound []float64 // by index of C; bound 0 for elements that are not to be touched
}

// layout is how a matrix lies.
type layout int

const (
	rowMajor layout = iota
	columnMajor
	spread // neither axis contiguous
)

func strides(l layout, rows, cols, gap int) (row, col, size int) {
	switch l {
	case rowMajor:
		row, col = cols+gap, 1
	case columnMajor:
		row, col = 1, rows+gap
	default:
		row, col = 2*(cols+gap), 2
	}
	return row, col, (rows-1)*row + (cols-1)*col + 1
}

func newProblem(r *rand.Rand, m, n, k, batch int, la, lb layout, alpha, beta float32) *problem {
	p := &problem{Product: Product{M: m, N: n, K: k, Batch: batch, Alpha: alpha, Beta: beta}}
	var sizeA, sizeB int
	p.AM, p.AK, sizeA = strides(la, m, max(k, 1), r.IntN(3))
	p.BK, p.BN, sizeB = strides(lb, max(k, 1), n, r.IntN(3))
	p.LDC = n + r.IntN(4)
	p.StrideC = m*p.LDC + r.IntN(3)
	if batch > 1 && r.IntN(3) > 0 {
		p.StrideA = sizeA
	}
	if batch > 1 && r.IntN(3) > 0 {
		p.StrideB = sizeB
	}
	p.A, p.B = normal(r, sizeA+(batch-1)*p.StrideA), normal(r, sizeB+(batch-1)*p.StrideB)
	p.C = poisoned((batch-1)*p.StrideC + (m-1)*p.LDC + n)
	return p
}

// solve computes what must come out, in float64.
func (p *problem) solve(r *rand.Rand) {
	p.want, p.bound = make([]float64, len(p.C)), make([]float64, len(p.C))
	for item := range p.Batch {
		for i := range p.M {
			for j := range p.N {
				at := item*p.StrideC + i*p.LDC + j
				sum, size := 0.0, 1e-3
				if p.Alpha != 0 {
					for k := range p.K {
						v := float64(p.A[item*p.StrideA+i*p.AM+k*p.AK]) * float64(p.B[item*p.StrideB+k*p.BK+j*p.BN])
						sum += v
						size += math.Abs(v)
					}
					sum *= float64(p.Alpha)
					size *= math.Abs(float64(p.Alpha))
				}
				if p.Beta != 0 {
					p.C[at] = float32(r.NormFloat64())
					v := float64(p.Beta) * float64(p.C[at])
					sum += v
					size += math.Abs(v)
				}
				if p.Bias != nil {
					v := float64(p.Bias[j%len(p.Bias)])
					if p.BiasRows {
						v = float64(p.Bias[i])
					}
					sum += v
					size += math.Abs(v)
				}
				if p.Act != nil {
					sum = max(sum, 0)
				}
				p.want[at], p.bound[at] = sum, 2e-6*size
			}
		}
	}
}

func relu(y []float32) {
	for i, v := range y {
		y[i] = max(v, 0)
	}
}

func (p *problem) check(t *testing.T) {
	t.Helper()
	for i, v := range p.C {
		if p.bound[i] == 0 {
			if math.Float32bits(v) != poison {
				require.Fail(t, "written outside", "%+v: element %d", p.Product, i)
			}
		} else if d := math.Abs(float64(v) - p.want[i]); !(d <= p.bound[i]) {
			require.Fail(t, "wrong", "%+v: element %d is %g, not %g (difference %g, allowed %g)", p.Product, i, v, p.want[i], d, p.bound[i])
		}
	}
}

func (p *problem) random(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		p.Bias = normal(r, p.N)
	case 1:
		p.Bias, p.BiasRows = normal(r, p.M), true
	}
	if r.IntN(2) == 0 {
		p.Act, p.ActNS = relu, 0.1
	}
	p.solve(r)
}

var factors = []float32{0, 1, 1, 1, 0.5, -2}

// TestProducts: all sizes around those of tiles and blocks, all layouts, factors and epilogues.
func TestProducts(t *testing.T) {
	tiers(t, func(t *testing.T) {
		r, s := random(t), active()
		size := func(edge int) int {
			switch r.IntN(4) {
			case 0:
				return 1 + r.IntN(8)
			case 1:
				return 1 + r.IntN(40)
			case 2:
				return max(1, edge*(1+r.IntN(3))-1+r.IntN(3))
			}
			return 1 + r.IntN(150)
		}
		for range 1500 {
			k := size(s.depth(1000))
			if r.IntN(30) == 0 {
				k = 0
			}
			batch := 1
			if r.IntN(4) == 0 {
				batch = 1 + r.IntN(4)
			}
			p := newProblem(r, size(s.mr), size(s.nr), k, batch, layout(r.IntN(3)), layout(r.IntN(3)),
				factors[r.IntN(len(factors))], factors[r.IntN(len(factors))])
			p.random(r)
			Run(&p.Product, &p.Operands, 1+r.IntN(3))
			p.check(t)
		}
	})
}
