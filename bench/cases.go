package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/viterin/vek/vek32"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/simd"
)

// Names of the subjects. Further instruction sets of wavelane are "wavelane/avx2" and so on.
const (
	ours     = "wavelane"
	openblas = "openblas"
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
	// Claims are what wavelane promises.
	Claims    []Claim
	quantised bool
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
	for _, n := range []int{16, 24, 32, 48, 64, 96, 128} {
		all = append(all, gemm(n, Claim{openblas, 0.8, 1.1}))
	}
	for _, n := range []int{256, 512, 1024, 2048} {
		claims := []Claim{{openblas, 1, 1.2}, {peak, 0, 0.85}}
		if n == 1024 {
			claims = append(claims, Claim{gonumS, 8, 8}, Claim{vek, 4, 4})
		}
		all = append(all, gemm(n, claims...))
	}
	all = append(all, gemv(1024, 1024), gemv(4096, 4096), conv())
	for _, n := range []int{1 << 10, 1 << 12, 1 << 14, 1 << 16} {
		all = append(all, vectors(n, Claim{vek, 1, 1.3})...)
	}
	all = append(all, vectors(10_000_000, Claim{peak, 0.9, 0.97})...)
	all = append(all, functions(1<<20)...)
	all = append(all, searches(1<<12)...)
	for _, t := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		for _, rows := range []int{1, 8, 512} {
			all = append(all, quantised(t, rows))
		}
	}
	return all
}

func gemm(n int, claims ...Claim) Case {
	return Case{Name: fmt.Sprintf("sgemm/%d", n), Flops: 2 * float64(n) * float64(n) * float64(n), Claims: claims,
		Make: func(threads int) map[string]func() {
			a, b := random(n*n), random(n*n)
			c := map[string][]float32{}
			for _, s := range []string{ours, openblas, gonumS, vek, plainGo} {
				c[s] = make([]float32, n*n)
			}
			subjects := map[string]func(){
				ours:     func() { simd.MatMul(c[ours], a, b, n, n, n) },
				openblas: func() { openblasGemm(c[openblas], a, b, n, n, n) },
				gonumS: func() {
					gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, a, n, b, n, 0, c[gonumS], n)
				},
				peak: func() { multiplyAdd(2*float64(n)*float64(n)*float64(n), threads) },
			}
			if threads == 1 {
				subjects[vek] = func() { vek32.MatMul_Into(c[vek], a, b, n) }
				if n <= 512 {
					subjects[plainGo] = func() { goMatMul(c[plainGo], a, b, n) }
				}
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

func gemv(m, n int) Case {
	return Case{Name: fmt.Sprintf("sgemv/%dx%d", m, n), Bytes: 4 * float64(m) * float64(n),
		Make: func(int) map[string]func() {
			a, x, y := random(m*n), random(n), make([]float32, m)
			return map[string]func(){
				ours:     func() { simd.MatVec(y, a, x, m, n) },
				openblas: func() { openblasGemv(y, a, x, m, n) },
				gonumS:   func() { gonum.Implementation{}.Sgemv(blas.NoTrans, m, n, 1, a, n, x, 1, 0, y, 1) },
			}
		}}
}

// conv compares a convolution with a matrix product of the same size, both ours: the cost of never forming that matrix.
func conv() Case {
	const channels, side, taps = 64, 56, 64 * 9
	const pixels = side * side
	return Case{Name: "conv2d/3x3x64x64x56", Flops: 2 * channels * taps * pixels, Claims: []Claim{{"wavelane sgemm", 0.6, 0.8}},
		Make: func(int) map[string]func() {
			x, w, y := random(channels*pixels), random(channels*taps), make([]float32, channels*pixels)
			b, c := random(taps*pixels), make([]float32, channels*pixels)
			o := compute.Conv2DOptions{Pad: [2]int{1, 1}}
			return map[string]func(){
				ours: func() {
					simd.Conv2D(y, x, w, nil, [4]int{1, channels, side, side}, [4]int{channels, channels, 3, 3}, o)
				},
				"wavelane sgemm": func() { simd.MatMul(c, w, b, channels, taps, pixels) },
			}
		}}
}

// vectors are the operations that memory bounds.
func vectors(n int, claim Claim) []Case {
	size := func(name string, arrays float64, flops func(threads int) map[string]func()) Case {
		return Case{Name: fmt.Sprintf("%s/%d", name, n), Bytes: 4 * arrays * float64(n), Claims: []Claim{claim},
			Make: func(threads int) map[string]func() {
				subjects := flops(threads)
				if n > 1<<20 {
					from, to := random(int(arrays)*n/2), make([]float32, int(arrays)*n/2)
					subjects[peak] = func() { copyParts(to, from, threads) }
				}
				return subjects
			}}
	}
	var g gonum.Implementation
	return []Case{
		size("dot", 2, func(int) map[string]func() {
			a, b := random(n), random(n)
			return map[string]func(){
				ours:     func() { sink = simd.Dot(a, b) },
				vek:      func() { sink = vek32.Dot(a, b) },
				gonumS:   func() { sink = g.Sdot(n, a, 1, b, 1) },
				openblas: func() { sink = openblasDot(a, b) },
				plainGo: func() {
					s := float32(0)
					for i, v := range a {
						s += v * b[i]
					}
					sink = s
				},
			}
		}),
		size("sum", 1, func(int) map[string]func() {
			a := random(n)
			return map[string]func(){
				ours: func() { sink = simd.Sum(a) },
				vek:  func() { sink = vek32.Sum(a) },
				plainGo: func() {
					s := float32(0)
					for _, v := range a {
						s += v
					}
					sink = s
				},
			}
		}),
		size("add", 3, func(int) map[string]func() {
			a, b, y := random(n), random(n), make([]float32, n)
			return map[string]func(){
				ours: func() { simd.Add(y, a, b) },
				vek:  func() { vek32.Add_Into(y, a, b) },
				plainGo: func() {
					for i := range y {
						y[i] = a[i] + b[i]
					}
				},
			}
		}),
		size("axpy", 3, func(int) map[string]func() {
			x, y, t := random(n), random(n), make([]float32, n)
			const f = 1e-9
			return map[string]func(){
				ours:     func() { simd.Axpy(y, x, f) },
				vek:      func() { vek32.MulNumber_Into(t, x, f); vek32.Add_Inplace(y, t) }, // it has no axpy of its own
				gonumS:   func() { g.Saxpy(n, f, x, 1, y, 1) },
				openblas: func() { openblasAxpy(y, x, f) },
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
		{Name: fmt.Sprintf("max/%d", n), Bytes: 4 * float64(n), Claims: []Claim{{plainGo, 8, 8}},
			Make: func(int) map[string]func() {
				a := random(n)
				return map[string]func(){
					ours: func() { sink = simd.Max(a) },
					vek:  func() { sink = vek32.Max(a) },
					plainGo: func() {
						m := a[0]
						for _, v := range a {
							if v > m {
								m = v
							}
						}
						sink = m
					},
				}
			}},
		{Name: fmt.Sprintf("argmax/%d", n), Bytes: 4 * float64(n), Claims: []Claim{{plainGo, 8, 8}},
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
