package simd_test

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/simd"
)

// multiplied is alpha·a·b + beta·c in float64 with the tolerance of each element.
func multiplied(c, a, b []float32, p simd.Product, at func(i, j int) int) (want, bound []float64) {
	want, bound = make([]float64, p.M*p.N), make([]float64, p.M*p.N)
	for i := range p.M {
		for j := range p.N {
			sum, size := 0.0, 0.1
			for k := range p.K {
				x, y := i*p.StrideA+k, k*p.StrideB+j
				if p.TransA {
					x = k*p.StrideA + i
				}
				if p.TransB {
					y = j*p.StrideB + k
				}
				v := float64(a[x]) * float64(b[y]) * float64(p.Alpha)
				sum += v
				size += math.Abs(v)
			}
			if p.Beta != 0 {
				v := float64(p.Beta) * float64(c[at(i, j)])
				sum += v
				size += math.Abs(v)
			}
			switch {
			case p.Bias == nil:
			case p.BiasRows:
				sum += float64(p.Bias[i])
				size++
			default:
				sum += float64(p.Bias[j])
				size++
			}
			if p.Act == compute.Tanh {
				sum = math.Tanh(sum)
			}
			want[i*p.N+j], bound[i*p.N+j] = sum, 3e-6*size
		}
	}
	return want, bound
}

func TestGemm(t *testing.T) {
	inOneThread(t)
	r := newRand(t)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for range 150 {
			p := simd.Product{M: r.IntN(50), K: r.IntN(60), N: r.IntN(70), TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0,
				Alpha: float32(r.IntN(4)) - 1.5, Beta: float32(r.IntN(3)) - 1}
			p.StrideA, p.StrideB, p.StrideC = max(p.M, p.K)+r.IntN(3)+1, max(p.K, p.N)+r.IntN(3)+1, p.N+r.IntN(3)+1
			a, b := numbers(r, (max(p.M, p.K)+1)*p.StrideA, false), numbers(r, (max(p.K, p.N)+1)*p.StrideB, false)
			switch r.IntN(3) {
			case 0:
				p.Bias = numbers(r, p.N, false)
			case 1:
				p.Bias, p.BiasRows = numbers(r, p.M, false), true
			}
			if r.IntN(2) == 0 {
				p.Act = compute.Tanh
			}
			dst := numbers(r, p.M*p.StrideC+1, false)
			before := append([]float32(nil), dst...)
			at := func(i, j int) int { return i*p.StrideC + j }
			want, bound := multiplied(before, a, b, p, at)
			simd.Gemm(dst, a, b, p)
			for i, v := range dst {
				row, col := i/p.StrideC, i%p.StrideC
				if row < p.M && col < p.N {
					if w, b := want[row*p.N+col], bound[row*p.N+col]; !(math.Abs(w-float64(v)) <= b) {
						require.InDelta(t, w, v, b, "%+v: %d, %d", p, row, col)
					}
				} else if before[i] != v {
					require.Equal(t, before[i], v, "%+v: element %d is not dst's", p, i)
				}
			}
		}
	})
}

// TestMatrixForms: the short forms compute what Gemm computes.
func TestMatrixForms(t *testing.T) {
	inOneThread(t)
	r := newRand(t)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for range 20 {
			m, k, n, batch := r.IntN(40), r.IntN(40), r.IntN(40), r.IntN(4)
			a, b := numbers(r, 2*batch*m*k, false), numbers(r, 2*batch*k*n, false)
			want, got := make([]float32, 2*batch*m*n), poisoned(2*batch*m*n)
			for i := range 2 * batch {
				simd.Gemm(want[i*m*n:][:m*n], a[i*m*k:][:m*k], b[i*k*n:][:k*n], simd.Product{M: m, K: k, N: n})
			}
			simd.BatchedMatMul4D(got, a, b, batch, 2, m, k, n)
			requireClose(t, want, got)
			copy(got, poisoned(len(got)))
			for i := range 2 * batch {
				simd.MatMul(got[i*m*n:][:m*n], a[i*m*k:][:m*k], b[i*k*n:][:k*n], m, k, n)
			}
			requireClose(t, want, got)
		}
		for range 20 {
			m, k := r.IntN(300), r.IntN(300)
			a, x, y := numbers(r, m*k, false), numbers(r, k, false), numbers(r, m, false)
			want, got := make([]float32, m), poisoned(m)
			for i := range want {
				want[i] = simd.Dot(a[i*k:(i+1)*k], x)
			}
			simd.MatVec(got, a, x, m, k)
			requireClose(t, want, got)
			want, got = make([]float32, k), poisoned(k)
			for i := range m {
				simd.Axpy(want, a[i*k:(i+1)*k], y[i])
			}
			simd.VecMat(got, y, a, m, k)
			requireClose(t, want, got)
			outer := poisoned(m * k)
			simd.Outer(outer, y, x)
			for i := range outer {
				if want := y[i/k] * x[i%k]; want != outer[i] {
					require.Equal(t, want, outer[i])
				}
			}
		}
	})
}

func requireClose(t *testing.T, want, got []float32) {
	t.Helper()
	for i := range want {
		if off := 1e-3 * (1 + math.Abs(float64(want[i]))); !(math.Abs(float64(want[i]-got[i])) <= off) {
			require.InDelta(t, want[i], got[i], off, "element %d", i)
		}
	}
}

func TestMatrixErrors(t *testing.T) {
	x := make([]float32, 64)
	shape := func(name string, f func()) {
		t.Helper()
		requirePanic(t, name, compute.ErrShape, f)
	}
	shape("MatMul", func() { simd.MatMul(x[:3], x[4:8], x[8:12], 2, 2, 2) })
	shape("MatMul", func() { simd.MatMul(x[:4], x[4:7], x[8:12], 2, 2, 2) })
	shape("MatMul", func() { simd.MatMul(x[:4], x[4:8], x[8:13], 2, 2, 2) })
	shape("MatMul", func() { simd.MatMul(nil, nil, nil, -1, 0, 0) })
	shape("MatMul", func() { simd.MatMul(nil, nil, nil, math.MaxInt, 2, 0) })
	shape("MatVec", func() { simd.MatVec(x[:2], x[4:8], x[8:11], 2, 2) })
	shape("VecMat", func() { simd.VecMat(x[:3], x[4:6], x[8:12], 2, 2) })
	shape("Outer", func() { simd.Outer(x[:5], x[6:8], x[8:10]) })
	shape("Gemm", func() { simd.Gemm(x[:4], x[4:8], x[8:12], simd.Product{M: 2, K: 2, N: 2, StrideA: 1}) })
	shape("Gemm", func() { simd.Gemm(x[:4], x[4:8], x[8:12], simd.Product{M: 2, K: 2, N: 2, StrideC: 3}) })
	shape("Gemm", func() { simd.Gemm(x[:4], x[4:8], x[8:12], simd.Product{M: 2, K: 2, N: 2, StrideB: math.MaxInt}) })
	shape("Gemm", func() { simd.Gemm(x[:4], x[4:8], x[8:12], simd.Product{M: 2, K: 2, N: 2, Bias: x[20:23]}) })
	requirePanic(t, "MatMul", compute.ErrArgument, func() { simd.MatMul(x[:4], x[3:7], x[8:12], 2, 2, 2) })
	requirePanic(t, "MatVec", compute.ErrArgument, func() { simd.MatVec(x[:2], x[4:8], x[1:3], 2, 2) })
	requirePanic(t, "Gemm", compute.ErrArgument, func() { simd.Gemm(x[:4], x[4:8], x[8:12], simd.Product{M: 2, K: 2, N: 2, Act: 99}) })
}

// TestMatrixAllocations: products on one thread allocate nothing once their buffers exist.
func TestMatrixAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	r := rand.New(rand.NewPCG(1, 2))
	before := simd.SetThreads(1)
	defer simd.SetThreads(before)
	sizes := []int{5, 16, 33, 100, 700}
	if testing.Short() { // the largest takes minutes in emulation
		sizes = sizes[:4]
	}
	for _, n := range sizes {
		a, b, c := numbers(r, n*n, false), numbers(r, n*n, false), make([]float32, n*n)
		for name, f := range map[string]func(){
			"MatMul": func() { simd.MatMul(c, a, b, n, n, n) },
			"MatVec": func() { simd.MatVec(c[:n], a, b[:n], n, n) },
			"VecMat": func() { simd.VecMat(c[:n], a[:n], b, n, n) },
			"Gemm": func() {
				simd.Gemm(c, a, b, simd.Product{M: n, K: n, N: n, TransB: true, Act: compute.GELU, Bias: a[:n]})
			},
		} {
			f()
			if allocated := testing.AllocsPerRun(5, f); !simdtest.Racing { // a collection may take the buffers
				require.Less(t, allocated, 1.0, "%s %d", name, n)
			}
		}
	}
}
