package gemm

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
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
				if p.Finish != nil {
					sum = max(sum, 0)
				}
				p.want[at], p.bound[at] = sum, 2e-6*size
			}
		}
	}
}

func relu(_ any, y []float32, _ int) {
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
			require.Fail(t, "wrong", "%+v: element %d is %g, not %g (difference %g, allowed %g)",
				p.Product, i, v, p.want[i], d, p.bound[i])
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
		p.Finish, p.FinishNS = relu, 0.1
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
		count := 800
		if s == &shapeGo {
			count = 200
		}
		if testing.Short() {
			count = 60
		} else if !testseed.Whole() {
			count /= 3
		}
		for range count {
			k := size(s.depth(1000))
			if r.IntN(30) == 0 {
				k = 0
			}
			batch := 1
			if r.IntN(4) == 0 {
				batch = 1 + r.IntN(4)
			}
			m, n := size(s.mr), size(s.nr)
			if r.IntN(10) == 0 {
				m = 1
			} else if r.IntN(10) == 0 {
				n = 1
			}
			p := newProblem(r, m, n, k, batch, layout(r.IntN(3)), layout(r.IntN(3)),
				factors[r.IntN(len(factors))], factors[r.IntN(len(factors))])
			p.random(r)
			Run(&p.Product, &p.Operands, 1+r.IntN(3))
			p.check(t)
		}
	})
}

// TestWorkers: results do not depend on the number of threads, to the bit.
func TestWorkers(t *testing.T) {
	tiers(t, func(t *testing.T) {
		r, s := random(t), active()
		for _, size := range [][3]int{{1, 5000, 300}, {3000, 1, 400}, {1, 7, 100_000}, {20, 300, 9000}, {3 * s.mr, 900, 700},
			{257, 255, 259}, {400, 330, 600}, {150, 1500, 1100}} {
			m, n, k := size[0], size[1], size[2]
			if racing || testing.Short() && m*n*k > 50_000_000 { // which is slow, as emulation is
				k = (k + 3) / 4
			}
			p := newProblem(r, m, n, k, 1, layout(r.IntN(2)), layout(r.IntN(2)), 1.5, 0.5)
			before := normal(r, len(p.C))
			p.C = append([]float32(nil), before...)
			Run(&p.Product, &p.Operands, 1)
			want := p.C
			for _, threads := range []int{2, 13} {
				p.C = append([]float32(nil), before...)
				Run(&p.Product, &p.Operands, threads)
				for i := range want {
					if math.Float32bits(want[i]) != math.Float32bits(p.C[i]) {
						require.Equal(t, want[i], p.C[i], "%v on %d threads: element %d", size, threads, i)
					}
				}
			}
		}
	})
}

// TestLarge: several slabs, and blocks along every axis.
func TestLarge(t *testing.T) {
	r := random(t)
	defer func(was caches) { machine = was }(machine)
	tiers(t, func(t *testing.T) {
		machine = caches{16 << 10, 128 << 10}
		count, most := 12, 500
		if testing.Short() {
			count, most = 2, 300
		}
		for range count {
			batch := 1 + r.IntN(3)
			p := newProblem(r, 1+r.IntN(most), 1+r.IntN(most), 1+r.IntN(most)/batch, batch, layout(r.IntN(3)), layout(r.IntN(3)), 1, 1)
			p.random(r)
			Run(&p.Product, &p.Operands, 1+r.IntN(3))
			p.check(t)
		}
	})
}

// TestNotFinite: NaN and Inf go where they belong and nowhere else.
func TestNotFinite(t *testing.T) {
	inOneThread(t)
	inf := float32(math.Inf(1))
	tiers(t, func(t *testing.T) {
		r := random(t)
		count := 200
		if testing.Short() {
			count = 50
		}
		for range count {
			m, n, k := 1+r.IntN(130), 1+r.IntN(80), 1+r.IntN(40)
			p := newProblem(r, m, n, k, 1, layout(r.IntN(3)), layout(r.IntN(3)), 1, 0)
			i, j, q := r.IntN(m), r.IntN(n), r.IntN(k)
			v := []float32{inf, -inf, float32(math.NaN())}[r.IntN(3)]
			row := r.IntN(2) == 0 // the value is in A and poisons a row, else in B and poisons a column
			if row {
				p.A[i*p.AM+q*p.AK] = v
			} else {
				p.B[q*p.BK+j*p.BN] = v
			}
			Run(&p.Product, &p.Operands, 1)
			for y := range m {
				for x := range n {
					got := float64(p.C[y*p.LDC+x])
					poisoned := math.IsNaN(got) || math.IsInf(got, 0)
					require.Equal(t, row && y == i || !row && x == j, poisoned, "%+v: %d, %d is %g", p.Product, y, x, got)
				}
			}
		}
	})
}

// TestBetaZero: with beta = 0 what C holds is not read, with alpha = 0 neither are A and B.
func TestBetaZero(t *testing.T) {
	tiers(t, func(t *testing.T) {
		p := &Product{M: 20, N: 40, K: 30, AM: 30, AK: 1, BK: 40, BN: 1, LDC: 40, Batch: 1, Alpha: 0}
		o := &Operands{A: poisoned(600), B: poisoned(1200), C: poisoned(800)}
		Run(p, o, 1)
		require.Equal(t, make([]float32, 800), o.C)
	})
}

func TestEmpty(t *testing.T) {
	for _, p := range []Product{{N: 3, K: 2, Batch: 1}, {M: 3, K: 2, Batch: 1}, {M: 2, N: 2, K: 2}} {
		p.Alpha = 1
		Run(&p, &Operands{}, 2)
	}
}

// TestStop: a plan that is told to stop does.
func TestStop(t *testing.T) {
	n := 600
	p := &Product{M: n, N: n, K: n, AM: n, AK: 1, BK: n, BN: 1, LDC: n, Batch: 1, Alpha: 1}
	o := &Operands{A: make([]float32, n*n), B: make([]float32, n*n), C: poisoned(n * n)}
	pl := NewPlan(p, 1)
	scratch := make([]float32, pl.Scratch())
	var stop atomic.Bool
	stop.Store(true)
	for i := range pl.Phases() {
		units, ns := pl.Phase(i)
		require.Positive(t, units)
		require.Positive(t, ns)
		pl.Do(i, 0, units, o, scratch, &stop)
	}
	require.Equal(t, uint32(poison), math.Float32bits(o.C[n*n-1]))
}

func TestAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	for _, size := range [][3]int{{16, 16, 16}, {15, 17, 19}, {100, 100, 100}, {1, 500, 500}, {500, 1, 500}, {700, 700, 700}} {
		m, n, k := size[0], size[1], size[2]
		p := &Product{M: m, N: n, K: k, AM: k, AK: 1, BK: n, BN: 1, LDC: n, Batch: 1, Alpha: 1}
		o := &Operands{A: make([]float32, m*k), B: make([]float32, n*k), C: make([]float32, m*n)}
		Run(p, o, 1)
		allocated := testing.AllocsPerRun(5, func() { Run(p, o, 1) })
		if !racing { // the race detector makes sync.Pool forget
			require.Less(t, allocated, 1.0, size) // a collection may take the buffers
		}
	}
}

func FuzzProducts(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(4), uint8(5))
	f.Add(uint64(2), uint8(113), uint8(33), uint8(17))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newProblem(r, 1+int(m), 1+int(n), int(k), 1+r.IntN(2), layout(r.IntN(3)), layout(r.IntN(3)),
			factors[r.IntN(len(factors))], factors[r.IntN(len(factors))])
		p.random(r)
		Run(&p.Product, &p.Operands, 1+r.IntN(2))
		p.check(t)
	})
}
