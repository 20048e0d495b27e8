package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/viterin/vek/vek32"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/simd"
)

// Names of the subjects. Further instruction sets of wavelane are "wavelane/avx2" and so on.
const (
	ours     = "wavelane"
	openblas = "openblas"
	blis     = "blis"
	mkl      = "mkl"
	onnx     = "onnxruntime"
	gonumS   = "gonum"
	vek      = "vek"
	plainGo  = "go"   // loops, with package math for functions
	peak     = "peak" // the same number of floating-point operations, or bytes copied, at the machine's full rate
)

// Case is one piece of work that several subjects do.
type Case struct {
	Name  string
	Flops float64 // per call
	Bytes float64 // per call, read and written
	Elems float64 // per call; cases without Flops and Bytes are reported per element
	// Make returns what each subject calls. Threads is 1 or that of all cores; nothing but the subjects' own set-up depends on it.
	Make func(threads int) map[string]func()
	// BLAS does the same with a BLAS; nil if none has it.
	BLAS func(l *library) calls
	// Claims are what wavelane promises.
	Claims    []Claim
	quantised bool // ggml has it
	half      bool // likewise
	layer     bool // ONNX Runtime has it
}

// Claim promises that wavelane takes at most 1/AtLeast of a subject's time.
type Claim struct {
	Against      string
	AtLeast, Aim float64
}

// random returns numbers between −1 and 1. Benchmarks compare like with like: the seed is fixed.
func random(n int) []float32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

func cases() []Case {
	var all []Case
	for _, n := range []int{16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 768, 1024, 2048, 4096} {
		var claims []Claim
		if n >= 256 {
			claims = append(claims, Claim{peak, 0.9, 0.95})
		}
		if n == 1024 {
			claims = append(claims, Claim{gonumS, 8, 8}, Claim{vek, 4, 4})
		}
		all = append(all, gemm(product{m: n, k: n, n: n}, claims...))
	}
	for _, p := range []product{
		{m: 4, k: 4096, n: 4096}, {m: 16, k: 4096, n: 4096}, {m: 64, k: 4096, n: 4096}, {m: 128, k: 768, n: 3072}, {m: 512, k: 64, n: 512},
		{m: 64, k: 64, n: 64, transA: true}, {m: 64, k: 64, n: 64, transB: true},
		{m: 512, k: 512, n: 512, transA: true}, {m: 512, k: 512, n: 512, transB: true}, {m: 512, k: 512, n: 512, transA: true, transB: true},
		{m: 64, k: 4096, n: 4096, transB: true},
		{m: 32, k: 32, n: 32, batch: 64}, {m: 128, k: 64, n: 128, batch: 12}, {m: 256, k: 256, n: 256, batch: 8},
	} {
		all = append(all, gemm(p))
	}
	for _, n := range []int{16, 32, 64, 128, 256, 512, 1024, 4096} {
		all = append(all, gemv(n, n, false), gemv(n, n, true))
	}
	for _, n := range []int{1 << 10, 1 << 12, 1 << 14, 1 << 16} {
		all = append(all, vectors(n, Claim{vek, 1, 1.3})...)
	}
	all = append(all, vectors(10_000_000, Claim{peak, 0.9, 0.97})...)
	all = append(all, functions(1<<20)...)
	all = append(all, searches(1<<12)...)
	all = append(all, halves()...)
	all = append(all, layers()...)
	for _, t := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		for _, rows := range []int{1, 8, 512} {
			all = append(all, quantised(t, rows))
		}
	}
	return all
}

// product is a matrix product, or batch of them: C of m×n is A of m×k times B of k×n, which may be stored transposed.
type product struct {
	m, k, n        int
	transA, transB bool
	batch          int // 0 for one
}

func (p product) name() string {
	name := "sgemm/" + fmt.Sprint(p.n)
	if p.m != p.n || p.k != p.n {
		name = fmt.Sprintf("sgemm/%dx%dx%d", p.m, p.k, p.n)
	}
	if p.batch > 0 {
		name = fmt.Sprintf("sgemm_batch/%dx%dx%dx%d", p.batch, p.m, p.k, p.n)
	}
	if p.transA {
		name += "_ta"
	}
	if p.transB {
		name += "_tb"
	}
	return name
}

// operands returns C, A and B.
func (p product) operands() (c, a, b []float32) {
	batch := max(p.batch, 1)
	return make([]float32, batch*p.m*p.n), random(batch * p.m * p.k), random(batch * p.k * p.n)
}

// blasClaims are those against every BLAS.
func blasClaims() []Claim { return []Claim{{openblas, 1, 1.1}, {mkl, 1, 1.1}, {blis, 1, 1.1}} }

func gemm(p product, claims ...Claim) Case {
	flops := 2 * float64(p.m) * float64(p.n) * float64(p.k) * float64(max(p.batch, 1))
	return Case{Name: p.name(), Flops: flops, Claims: append(blasClaims(), claims...),
		BLAS: func(l *library) calls {
			c, a, b := p.operands()
			return l.gemm(c, a, b, p)
		},
		Make: func(threads int) map[string]func() {
			c, a, b := p.operands()
			subjects := map[string]func(){
				ours: func() { simd.Gemm(c, a, b, simd.Product{M: p.m, K: p.k, N: p.n, TransA: p.transA, TransB: p.transB}) },
				peak: func() { multiplyAdd(flops, threads) },
			}
			if p.batch > 0 {
				subjects[ours] = func() { simd.BatchedMatMul(c, a, b, p.batch, p.m, p.k, p.n) }
			}
			square := p == product{m: p.n, k: p.n, n: p.n}
			if square && p.n <= 1024 {
				own := make([]float32, p.n*p.n)
				subjects[gonumS] = func() {
					gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, p.n, p.n, p.n, 1, a, p.n, b, p.n, 0, own, p.n)
				}
			}
			if square && p.n <= 1024 && threads == 1 {
				own := make([]float32, p.n*p.n)
				subjects[vek] = func() { vek32.MatMul_Into(own, a, b, p.n) }
			}
			if square && p.n <= 512 && threads == 1 {
				own := make([]float32, p.n*p.n)
				subjects[plainGo] = func() { goMatMul(own, a, b, p.n) }
			}
			return subjects
		}}
}

func goMatMul(c, a, b []float32, n int) {
	clear(c)
	for i := range n {
		row := c[i*n : (i+1)*n]
		for k := range n {
			f := a[i*n+k]
			for j, v := range b[k*n : (k+1)*n] {
				row[j] += f * v
			}
		}
	}
}

// gemv is a product of a matrix with a vector, or of a vector with a matrix.
func gemv(m, n int, left bool) Case {
	name := "matvec"
	if left {
		name = "vecmat"
	}
	operands := func() (y, a, x []float32) { return make([]float32, n), random(m * n), random(m) }
	if !left {
		operands = func() (y, a, x []float32) { return make([]float32, m), random(m * n), random(n) }
	}
	return Case{Name: fmt.Sprintf("%s/%dx%d", name, m, n), Bytes: 4 * float64(m) * float64(n), Claims: blasClaims(),
		BLAS: func(l *library) calls {
			y, a, x := operands()
			return l.gemv(y, a, x, m, n, left)
		},
		Make: func(int) map[string]func() {
			y, a, x := operands()
			own := make([]float32, len(y))
			if left {
				return map[string]func(){
					ours:   func() { simd.VecMat(y, x, a, m, n) },
					gonumS: func() { gonum.Implementation{}.Sgemv(blas.Trans, m, n, 1, a, n, x, 1, 0, own, 1) },
				}
			}
			return map[string]func(){
				ours:   func() { simd.MatVec(y, a, x, m, n) },
				gonumS: func() { gonum.Implementation{}.Sgemv(blas.NoTrans, m, n, 1, a, n, x, 1, 0, own, 1) },
			}
		}}
}

// vectors are the operations that memory bounds.
func vectors(n int, claim Claim) []Case {
	var g gonum.Implementation
	blas := blasClaims()
	if n > 1<<20 {
		blas = nil // memory's speed is what counts
	}
	// size makes a case of operands that are read and results that are written.
	size := func(name string, reads, writes int, with func(l *library) calls, claims []Claim, subjects func() map[string]func()) Case {
		return Case{Name: fmt.Sprintf("%s/%d", name, n), Bytes: 4 * float64((reads+writes)*n), Claims: append(claims, claim), BLAS: with,
			Make: func(threads int) map[string]func() {
				all := subjects()
				if n <= 1<<20 {
					return all
				}
				// As many bytes, read or copied as plainly as can be.
				if writes == 0 {
					from := random(reads * n)
					all[peak] = func() { sink = readParts(from, threads) }
				} else {
					from, to := random((reads+writes)*n/2), make([]float32, (reads+writes)*n/2)
					all[peak] = func() { copyParts(to, from, threads) }
				}
				return all
			}}
	}
	unary := func(name string, f, other func(y, x []float32), plain func(v float32) float32) Case {
		return size(name, 1, 1, nil, nil, func() map[string]func() {
			x, y := random(n), make([]float32, n)
			return map[string]func(){ours: func() { f(y, x) }, vek: func() { other(y, x) }, plainGo: func() {
				for i, v := range x {
					y[i] = plain(v)
				}
			}}
		})
	}
	binary := func(name string, f, other func(y, a, b []float32), plain func(a, b float32) float32) Case {
		return size(name, 2, 1, nil, nil, func() map[string]func() {
			a, b, y := random(n), random(n), make([]float32, n)
			return map[string]func(){ours: func() { f(y, a, b) }, vek: func() { other(y, a, b) }, plainGo: func() {
				for i := range y {
					y[i] = plain(a[i], b[i])
				}
			}}
		})
	}
	reduce := func(name string, f, other func(x []float32) float32, plain func(s, v float32) float32) Case {
		return size(name, 1, 0, nil, nil, func() map[string]func() {
			x := random(n)
			all := map[string]func(){ours: func() { sink = f(x) }, plainGo: func() {
				s := x[0]
				for _, v := range x[1:] {
					s = plain(s, v)
				}
				sink = s
			}}
			if other != nil {
				all[vek] = func() { sink = other(x) }
			}
			return all
		})
	}
	return []Case{
		size("dot", 2, 0, func(l *library) calls { return l.dot(random(n), random(n)) }, blas, func() map[string]func() {
			a, b := random(n), random(n)
			return map[string]func(){
				ours:   func() { sink = simd.Dot(a, b) },
				vek:    func() { sink = vek32.Dot(a, b) },
				gonumS: func() { sink = g.Sdot(n, a, 1, b, 1) },
				plainGo: func() {
					s := float32(0)
					for i, v := range a {
						s += v * b[i]
					}
					sink = s
				},
			}
		}),
		reduce("sum", simd.Sum, vek32.Sum, func(s, v float32) float32 { return s + v }),
		reduce("max", simd.Max, vek32.Max, func(s, v float32) float32 { return max(s, v) }),
		reduce("norm_l2", simd.NormL2, vek32.Norm, func(s, v float32) float32 { return s + v*v }),
		reduce("norm_l1", simd.NormL1, nil, func(s, v float32) float32 { return s + max(v, -v) }),
		binary("add", simd.Add, func(y, a, b []float32) { vek32.Add_Into(y, a, b) }, func(a, b float32) float32 { return a + b }),
		binary("mul", simd.Mul, func(y, a, b []float32) { vek32.Mul_Into(y, a, b) }, func(a, b float32) float32 { return a * b }),
		unary("relu", simd.ReLU, func(y, x []float32) { vek32.MaximumNumber_Into(y, x, 0) }, func(v float32) float32 { return max(v, 0) }),
		size("axpy", 2, 1, func(l *library) calls { return l.axpy(random(n), random(n), 1e-9) }, blas, func() map[string]func() {
			x, y, t := random(n), random(n), make([]float32, n)
			const f = 1e-9
			return map[string]func(){
				ours:   func() { simd.Axpy(y, x, f) },
				vek:    func() { vek32.MulNumber_Into(t, x, f); vek32.Add_Inplace(y, t) }, // it has no axpy of its own
				gonumS: func() { g.Saxpy(n, f, x, 1, y, 1) },
				plainGo: func() {
					for i, v := range x {
						y[i] += f * v
					}
				},
			}
		}),
	}
}

// functions are those that arithmetic bounds, against loops over package math.
func functions(n int) []Case {
	function := func(name string, f, plain func(y, x []float32)) Case {
		return Case{Name: fmt.Sprintf("%s/%d", name, n), Elems: float64(n), Claims: []Claim{{plainGo, 12, 20}},
			Make: func(int) map[string]func() {
				x, y := random(n), make([]float32, n)
				for i := range x {
					x[i] *= 5
				}
				return map[string]func(){ours: func() { f(y, x) }, plainGo: func() { plain(y, x) }}
			}}
	}
	return []Case{
		function("exp", simd.Exp, func(y, x []float32) {
			for i, v := range x {
				y[i] = float32(math.Exp(float64(v)))
			}
		}),
		function("tanh", simd.Tanh, func(y, x []float32) {
			for i, v := range x {
				y[i] = float32(math.Tanh(float64(v)))
			}
		}),
		function("sigmoid", simd.Sigmoid, func(y, x []float32) {
			for i, v := range x {
				y[i] = float32(1 / (1 + math.Exp(-float64(v))))
			}
		}),
		function("gelu", simd.GELU, func(y, x []float32) {
			for i, v := range x {
				d := float64(v)
				y[i] = float32(0.5 * d * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(d+0.044715*d*d*d))))
			}
		}),
		function("softmax", simd.Softmax, goSoftmax),
	}
}

func goSoftmax(y, x []float32) {
	m := math.Inf(-1)
	for _, v := range x {
		m = max(m, float64(v))
	}
	s := 0.0
	for i, v := range x {
		e := math.Exp(float64(v) - m)
		y[i] = float32(e)
		s += e
	}
	f := float32(1 / s)
	for i := range y {
		y[i] *= f
	}
}

func searches(n int) []Case {
	return []Case{
		{Name: fmt.Sprintf("argmax/%d", n), Bytes: 4 * float64(n), Claims: []Claim{{plainGo, 8, 8}, {vek, 1, 1.1}},
			Make: func(int) map[string]func() {
				a := random(n)
				return map[string]func(){
					ours: func() { sink = float32(simd.ArgMax(a)) },
					vek:  func() { sink = float32(vek32.ArgMax(a)) },
					plainGo: func() {
						at := 0
						for i, v := range a {
							if v > a[at] {
								at = i
							}
						}
						sink = float32(at)
					},
				}
			}},
	}
}

// sink keeps results alive.
var sink float32
