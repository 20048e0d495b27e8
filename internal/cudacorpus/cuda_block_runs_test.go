package cudacorpus

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/wavelane/wavelane/ptx/sim"
)

func dims(d ...int) sim.Dim3 {
	d = append(d, 1, 1)
	return sim.Dim3{X: d[0], Y: d[1], Z: d[2]}
}

// fill makes a slice.
func fill[T any](n int, f func(i int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

func floats(r *rand.Rand, n int) []float32 {
	return fill(n, func(int) float32 { return r.Float32()*2 - 1 })
}

func ints(r *rand.Rand, n int) []int32 {
	return fill(n, func(int) int32 { return int32(r.IntN(2001) - 1000) })
}

func words(r *rand.Rand, n int) []uint32 { return fill(n, func(int) uint32 { return r.Uint32() }) }

func sum[T float32 | int32](x []T) T {
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return T(s)
}

// product is the m × n product of a, m × k, and b, k × n.
func product(m, n, k int, a, b func(i, j int) float64) []float32 {
	return fill(m*n, func(i int) float32 {
		s := 0.0
		for l := range k {
			s += a(i/n, l) * b(l, i%n)
		}
		return float32(s)
	})
}

// cudaRuns are the kernels in testdata/cuda.
var cudaRuns = slices.Concat(blockRuns, threadRuns)

// blockRuns are the kernels of what threads of blocks do together.
var blockRuns = []run{
	{file: "reduce", kernel: "sum_tree", grid: dims(3), block: dims(128), shared: 512, args: func(r *rand.Rand) []any {
		const n = 700
		x := floats(r, n)
		return []any{in(x), out(fill(3, func(b int) float32 { return sum(x[b*256 : min(n, b*256+256)]) }), 1e-5), int32(n)}
	}},
	{file: "reduce", kernel: "sum_shuffle", grid: dims(3), block: dims(96), args: func(r *rand.Rand) []any {
		x := floats(r, 1001)
		return []any{in(x), inout([]float32{0}, []float32{sum(x)}, 1e-4), int32(len(x))}
	}},
	{file: "reduce", kernel: "dot_double", grid: dims(2), block: dims(128), args: func(r *rand.Rand) []any {
		x, y := floats(r, 4*300), floats(r, 4*300)
		return []any{in(x), in(y), out(fill(2, func(b int) float64 {
			s := 0.0
			for i := range x {
				if i/4/128%2 == b {
					s += float64(x[i]) * float64(y[i])
				}
			}
			return s
		}), 1e-12), int32(300)}
	}},
	{file: "reduce", kernel: "sum_last_block", grid: dims(4), block: dims(256), launches: 2, args: func(r *rand.Rand) []any {
		x := ints(r, 1300)
		return []any{in(x), scratch(16), out([]int32{sum(x)}, 0), int32(len(x))}
	}},
	{file: "reduce", kernel: "max_groups", grid: dims(2), block: dims(160), args: func(r *rand.Rand) []any {
		x := ints(r, 777)
		return []any{in(x), inout([]int32{math.MinInt32}, []int32{slices.Max(x)}, 0), int32(len(x))}
	}},
	{file: "reduce", kernel: "sum_grid", grid: dims(4), block: dims(64), cooperative: true, args: func(r *rand.Rand) []any {
		x := ints(r, 1111)
		return []any{in(x), scratch(4 * 256), out([]int32{sum(x)}, 0), int32(len(x))}
	}},
	{file: "reduce", kernel: "argmax", grid: dims(2), block: dims(128), args: func(r *rand.Rand) []any {
		x := fill(900, func(int) uint32 { return r.Uint32N(200) })
		at := slices.Index(x, slices.Max(x))
		return []any{in(x), inout([]uint64{0}, []uint64{uint64(x[at])<<32 | uint64(^uint32(at))}, 0), int32(len(x))}
	}},
	{file: "scan", kernel: "scan_buffers", grid: dims(1), block: dims(256), shared: 2048, args: func(r *rand.Rand) []any {
		x := ints(r, 200)
		return []any{in(x), out(fill(200, func(i int) int32 { return sum(x[:i+1]) }), 0), int32(200)}
	}},
	{file: "scan", kernel: "scan_tree", grid: dims(2), block: dims(256), args: func(r *rand.Rand) []any {
		x := ints(r, 901)
		return []any{in(x), out(fill(901, func(i int) int32 { return sum(x[i/512*512 : i]) }), 0), int32(901)}
	}},
	{file: "scan", kernel: "scan_one_pass", grid: dims(5), block: dims(256), args: func(r *rand.Rand) []any {
		x := ints(r, 1200)
		return []any{in(x), out(fill(1200, func(i int) int32 { return sum(x[:i+1]) }), 0), zeros(8 * 5), zeros(4), int32(1200)}
	}},
	{file: "scan", kernel: "compact", grid: dims(1), block: dims(64), args: func(r *rand.Rand) []any {
		x := fill(30, func(i int) int32 { return int32(i % 3 * i) })
		kept := slices.DeleteFunc(slices.Clone(x), func(v int32) bool { return v == 0 })
		return []any{in(x), out(kept, 0), inout([]int32{0}, []int32{int32(len(kept))}, 0), int32(30)}
	}},
	sorting("bitonic"), sorting("odd_even"),
	{file: "sort", kernel: "radix_pass", grid: dims(1), block: dims(256), args: func(r *rand.Rand) []any {
		x := words(r, 256)
		y := slices.Clone(x)
		slices.SortStableFunc(y, func(a, b uint32) int { return int(a>>8&15) - int(b>>8&15) })
		return []any{in(x), out(y, 0), int32(8)}
	}},
	{file: "histogram", kernel: "histogram256", grid: dims(2), block: dims(96), args: func(r *rand.Rand) []any {
		x := fill(500, func(int) uint32 { return r.Uint32() & r.Uint32() })
		bins := make([]uint32, 256)
		for _, v := range x {
			for s := 0; s < 32; s += 8 {
				bins[v>>s&255]++
			}
		}
		return []any{in(x), inout(make([]uint32, 256), bins, 0), int32(500)}
	}},
	{file: "histogram", kernel: "histogram64", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		x := fill(500, func(int) uint8 { return uint8(r.Uint32()) })
		bins := make([]uint32, 128)
		for i, v := range x {
			bins[i/256*64+int(v>>2)]++
		}
		return []any{in(x), out(bins, 0), int32(500)}
	}},
	{file: "histogram", kernel: "weighted", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		bin, weight, sums := fill(100, func(int) int32 { return r.Int32N(5) }), floats(r, 100), make([]float64, 5)
		for i, b := range bin {
			sums[b] += float64(weight[i])
		}
		return []any{in(bin), in(weight), inout(make([]float64, 5), sums, 1e-9), int32(100)}
	}},
	{file: "histogram", kernel: "atomics", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		have := []int32{0, 0, 0, 0, 0, 0, -1, 0, 255, 5, 7}
		n := 100
		want := []int32{1000, -1000, 49, -50, int32(n % 18), 0, -1, 1<<30 - 1, 255, 42, 11}
		want[5] = int32((138 - n%138) % 138)
		for i := range n {
			want[6] &= int32(2*i + 7)
			want[8] ^= int32(i)
		}
		return []any{inout(have, want, 0), uint32(n)}
	}},
	walsh(8), walsh(9),
	{file: "transform", kernel: "walsh_stage", grid: dims(3), block: dims(64), args: func(r *rand.Rand) []any {
		x := floats(r, 256)
		y := slices.Clone(x)
		for i := range y {
			if i&8 == 0 {
				y[i], y[i+8] = x[i]+x[i+8], x[i]-x[i+8]
			}
		}
		return []any{inout(x, y, 0), int32(256), int32(8)}
	}},
	{file: "transform", kernel: "transpose", grid: dims(3, 2), block: dims(32, 8), args: func(r *rand.Rand) []any {
		const w, h = 75, 50
		x := floats(r, w*h)
		return []any{in(x), out(fill(w*h, func(i int) float32 { return x[i%h*w+i/h] }), 0), int32(w), int32(h)}
	}},
	{file: "transform", kernel: "dct8x8", grid: dims(2, 1), block: dims(8, 8), constants: map[string]any{"cosines": cosines()},
		args: func(r *rand.Rand) []any {
			x, c := floats(r, 128), cosines()
			return []any{in(x), out(fill(128, func(i int) float32 {
				s, row, col := 0.0, i/16, i%16
				for a := range 8 {
					for b := range 8 {
						s += float64(c[row*8+a]) * float64(x[a*16+col/8*8+b]) * float64(c[col%8*8+b])
					}
				}
				return float32(s)
			}), 1e-5), int32(16)}
		}},
	{file: "stencil", kernel: "convolve_rows", grid: dims(2, 2), block: dims(64, 4), constants: map[string]any{"taps": taps},
		args: func(r *rand.Rand) []any {
			const w, h = 101, 8
			x := floats(r, w*h)
			return []any{in(x), out(fill(w*h, func(i int) float32 {
				s := 0.0
				for k := -4; k <= 4; k++ {
					if c := i%w + k; c >= 0 && c < w {
						s += float64(taps[k+4]) * float64(x[i+k])
					}
				}
				return float32(s)
			}), 1e-5), int32(w)}
		}},
	{file: "stencil", kernel: "heat", grid: dims(2, 3), block: dims(32, 4), args: func(r *rand.Rand) []any {
		const w, h = 40, 11
		x := floats(r, w*h)
		return []any{in(x), out(fill(w*h, func(i int) float32 {
			if c, l := i%w, i/w; c == 0 || c == w-1 || l == 0 || l == h-1 {
				return x[i]
			}
			return x[i] + 0.1*(x[i-1]+x[i+1]+x[i-w]+x[i+w]-4*x[i])
		}), 1e-5), int32(w), int32(h), float32(0.1)}
	}},
	{file: "stencil", kernel: "life", grid: dims(2, 9), block: dims(32), args: func(r *rand.Rand) []any {
		const w, h = 37, 9
		x := fill(w*h, func(int) uint8 { return uint8(r.IntN(2)) })
		return []any{in(x), out(fill(w*h, func(i int) uint8 {
			n := uint8(0)
			for k := range 9 {
				if k != 4 {
					n += x[(i/w+k/3-1+h)%h*w+(i%w+k%3-1+w)%w]
				}
			}
			if n == 3 || n == 2 && x[i] == 1 {
				return 1
			}
			return 0
		}), 0), int32(w), int32(h)}
	}},
	{file: "stencil", kernel: "median3x3", grid: dims(2, 3), block: dims(16, 4), args: func(r *rand.Rand) []any {
		const w, h = 21, 10
		x := fill(w*h, func(int) int16 { return int16(r.IntN(2000) - 1000) })
		return []any{in(x), out(fill(w*h, func(i int) int16 {
			v := fill(9, func(k int) int16 {
				return x[min(max(i/w+k/3-1, 0), h-1)*w+min(max(i%w+k%3-1, 0), w-1)]
			})
			slices.Sort(v)
			return v[4]
		}), 0), int32(w), int32(h)}
	}},
	{file: "matmul", kernel: "matmul_tiles", grid: dims(2, 3), block: dims(16, 16), args: func(r *rand.Rand) []any {
		const m, n, k = 37, 29, 40
		a, b := floats(r, m*k), floats(r, k*n)
		return []any{in(a), in(b), out(product(m, n, k, func(i, j int) float64 { return float64(a[i*k+j]) },
			func(i, j int) float64 { return float64(b[i*n+j]) }), 1e-5), int32(m), int32(n), int32(k)}
	}},
	{file: "matmul", kernel: "matmul_registers", grid: dims(2, 1), block: dims(64), args: func(r *rand.Rand) []any {
		const m, n, k = 64, 64, 24
		a, b := floats(r, m*k), floats(r, k*n)
		return []any{in(a), in(b), out(product(m, n, k, func(i, j int) float64 { return float64(a[i*k+j]) },
			func(i, j int) float64 { return float64(b[i*n+j]) }), 1e-5), int32(m), int32(n), int32(k)}
	}},
	{file: "matmul", kernel: "matvec_double", grid: dims(3), block: dims(32), shared: 32*8 + 50*4, args: func(r *rand.Rand) []any {
		a, x := fill(150, func(int) float64 { return r.Float64() }), floats(r, 50)
		return []any{in(a), in(x), out(fill(3, func(i int) float64 {
			s := 0.0
			for j, v := range x {
				s += a[i*50+j] * float64(v)
			}
			return s
		}), 1e-12), int32(50)}
	}},
	{file: "matmul", kernel: "matmul_wmma", least: 70, grid: dims(1, 1), block: dims(64, 2), args: func(r *rand.Rand) []any {
		const m, n, k = 32, 32, 48
		a, b := fill(m*k, func(int) half { return toHalf(r.Float32() - 0.5) }), fill(k*n, func(int) half { return toHalf(r.Float32() - 0.5) })
		return []any{in(a), in(b), out(product(m, n, k, func(i, j int) float64 { return a[i*k+j].float() },
			func(i, j int) float64 { return b[j*k+i].float() }), 1e-4), int32(m), int32(n), int32(k)}
	}},
	{file: "matmul", kernel: "matmul_wmma_s8", least: 75, grid: dims(1), block: dims(32), args: func(r *rand.Rand) []any {
		const n, k = 16, 32
		a, b := fill(16*k, func(int) int8 { return int8(r.Uint32()) }), fill(k*n, func(int) int8 { return int8(r.Uint32()) })
		want := product(16, n, k, func(i, j int) float64 { return float64(a[i*k+j]) }, func(i, j int) float64 { return float64(b[i*n+j]) })
		return []any{in(a), in(b), out(fill(256, func(i int) int32 { return int32(want[i]) }), 0), int32(n), int32(k)}
	}},
	{file: "matmul", kernel: "matmul_wmma_bf16", least: 80, grid: dims(1), block: dims(32), args: func(r *rand.Rand) []any {
		const n, k = 16, 32
		a, b := fill(16*k, func(int) bfloat { return toBfloat(r.Float32()) }), fill(k*n, func(int) bfloat { return toBfloat(r.Float32()) })
		c := floats(r, 256)
		want := product(16, n, k, func(i, j int) float64 { return a[i*k+j].float() }, func(i, j int) float64 { return b[i*n+j].float() })
		return []any{in(a), in(b), inout(c, fill(256, func(i int) float32 { return (want[i] + c[i]) / 2 }), 1e-4), int32(n), int32(k)}
	}},
	{file: "matmul", kernel: "matmul_mma", least: 80, grid: dims(2, 2), block: dims(32), args: func(r *rand.Rand) []any {
		const m, n, k = 32, 16, 48
		a, b := fill(m*k, func(int) half { return toHalf(r.Float32() - 0.5) }), fill(k*n, func(int) half { return toHalf(r.Float32() - 0.5) })
		return []any{in(a), in(b), out(product(m, n, k, func(i, j int) float64 { return a[i*k+j].float() },
			func(i, j int) float64 { return b[i*n+j].float() }), 1e-4), int32(n), int32(k)}
	}},
}

// taps are those of the separable filter.
var taps = []float32{1, -2, 3, -4, 5, -6, 7, -8, 9}

// sorting is a run of a network that sorts two arrays of 512 keys.
func sorting(kernel string) run {
	return run{file: "sort", kernel: kernel, grid: dims(2), block: dims(256), args: func(r *rand.Rand) []any {
		x := words(r, 1024)
		y := slices.Clone(x)
		slices.Sort(y[:512])
		slices.Sort(y[512:])
		return []any{inout(x, y, 0), uint32(512), uint32(1)}
	}}
}

// walsh is a run of a transform of two rows of 1<<log elements.
func walsh(log int) run {
	n := 1 << log
	return run{file: "transform", kernel: "walsh", grid: dims(2), block: dims(n / 4), shared: 4 * n, args: func(r *rand.Rand) []any {
		x := floats(r, 2*n)
		return []any{out(fill(2*n, func(i int) float32 {
			s := 0.0
			for j := range n {
				if v := float64(x[i/n*n+j]); bits.OnesCount(uint(i%n&j))%2 == 0 {
					s += v
				} else {
					s -= v
				}
			}
			return float32(s)
		}), 1e-4), in(x), int32(log)}
	}}
}

// cosines is the matrix of the cosine transform of eight.
func cosines() []float32 {
	return fill(64, func(i int) float32 {
		c := math.Cos(float64(i/8) * (float64(i%8) + 0.5) * math.Pi / 8)
		if i < 8 {
			return float32(c / math.Sqrt(8))
		}
		return float32(c / 2)
	})
}
