package cudacorpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// tritonRuns are the kernels in testdata/triton.
var tritonRuns = slices.Concat([]run{
	{file: "vector", part: "add", kernel: "add", grid: dims(4), args: func(r *rand.Rand) []any {
		x, y := floats(r, 1000), floats(r, 1000)
		return []any{in(x), in(y), out(fill(1000, func(i int) float32 { return x[i] + y[i] }), 0), int32(1000)}
	}},
	{file: "vector", part: "add_f64", kernel: "add", grid: dims(2), args: func(r *rand.Rand) []any {
		x := fill(976, func(int) float64 { return r.NormFloat64() })
		return []any{in(x), in(x), out(fill(976, func(i int) float64 { return 2 * x[i] }), 0), int32(976)}
	}},
	{file: "vector", part: "gelu", kernel: "gelu", grid: dims(2), args: func(r *rand.Rand) []any {
		x := halves(r, 816)
		return []any{in(x), out(fill(816, func(i int) half {
			v := x[i].float()
			return toHalf(float32(0.5 * v * (1 + math.Erf(v/math.Sqrt2))))
		}), 1e-3), int32(816)}
	}},
	{file: "vector", part: "dropout", kernel: "dropout", grid: dims(3), args: func(r *rand.Rand) []any {
		x, seed := floats(r, 700), r.Uint32()>>1
		return []any{in(x), out(fill(700, func(i int) float32 {
			if philox(seed, uint32(i)) > 0.25 {
				return x[i] / 0.75
			}
			return 0
		}), 1e-6), int32(700), float32(0.25), int32(seed)}
	}},
	{file: "vector", part: "gather", kernel: "gather", grid: dims(1), args: func(r *rand.Rand) []any {
		x, at := floats(r, 128), fill(64, func(int) int32 { return int32(r.IntN(128)) })
		return []any{in(x), in(at), out(fill(64, func(i int) float32 { return x[at[i]] }), 0)}
	}},
	{file: "vector", part: "interleave", kernel: "interleave", grid: dims(1), args: func(r *rand.Rand) []any {
		x, y := ints(r, 128), ints(r, 128)
		return []any{in(x), in(y), out(fill(256, func(i int) int32 {
			if i%2 == 0 {
				return x[127-i/2]
			}
			return y[127-i/2]
		}), 0)}
	}},
	{file: "vector", part: "transpose", kernel: "transpose", grid: dims(2, 2), args: func(r *rand.Rand) []any {
		const rows, columns = 50, 70
		x := floats(r, rows*columns)
		return []any{in(x), out(fill(rows*columns, func(i int) float32 { return x[i%rows*columns+i/rows] }), 0), int32(rows), int32(columns)}
	}},
	perRow("softmax", "softmax", 3, 200), perRow("softmax_wide", "softmax", 2, 1008),
	{file: "rows", part: "layer_norm", kernel: "layer_norm", grid: dims(3), args: func(r *rand.Rand) []any {
		const columns = 300
		x, weight, bias := floats(r, 3*columns), floats(r, columns), floats(r, columns)
		return []any{in(x), in(weight), in(bias), out(fill(3*columns, func(i int) float32 {
			mean, square := 0.0, 0.0
			row := x[i/columns*columns:][:columns]
			for _, v := range row {
				mean += float64(v) / columns
			}
			for _, v := range row {
				square += (float64(v) - mean) * (float64(v) - mean) / columns
			}
			return float32((float64(x[i])-mean)/math.Sqrt(square+1e-5))*weight[i%columns] + bias[i%columns]
		}), 1e-5), int32(columns), float32(1e-5)}
	}},
	{file: "rows", part: "argmax", kernel: "argmax", grid: dims(3), args: func(r *rand.Rand) []any {
		x := fill(3*250, func(int) float32 { return float32(r.IntN(50)) })
		return []any{in(x), out(fill(3, func(i int) int32 {
			row := x[i*250 : i*250+250]
			return int32(slices.Index(row, slices.Max(row)))
		}), 0), int32(250)}
	}},
	{file: "rows", part: "cumsum", kernel: "cumsum", grid: dims(2), args: func(r *rand.Rand) []any {
		x := ints(r, 2*250)
		return []any{in(x), out(fill(2*250, func(i int) int32 { return sum(x[i/250*250 : i+1]) }), 0), int32(250)}
	}},
	{file: "rows", part: "sort", kernel: "sort", grid: dims(2), args: func(r *rand.Rand) []any {
		x := ints(r, 512)
		y := slices.Clone(x)
		slices.Sort(y[:256])
		slices.Sort(y[256:])
		return []any{in(x), out(y, 0)}
	}},
	{file: "rows", part: "recurrence", kernel: "recurrence", grid: dims(2), args: func(r *rand.Rand) []any {
		a, x := floats(r, 2*250), floats(r, 2*250)
		h := 0.0
		return []any{in(a), in(x), out(fill(2*250, func(i int) float32 {
			if i%250 == 0 {
				h = 0
			}
			h = float64(a[i])*h + float64(x[i])
			return float32(h)
		}), 1e-5), int32(250)}
	}},
	{file: "atomic", part: "bias_gradient", kernel: "bias_gradient", grid: dims(4), args: func(r *rand.Rand) []any {
		const rows, columns = 55, 60
		x := floats(r, rows*columns)
		return []any{in(x), inout(make([]float32, columns), fill(columns, func(c int) float32 {
			return sum(fill(rows, func(r int) float32 { return x[r*columns+c] }))
		}), 1e-5), zeros(4), int32(rows), int32(columns)}
	}},
	{file: "atomic", part: "sum_atomic", kernel: "sum_atomic", grid: dims(4), args: func(r *rand.Rand) []any {
		x := ints(r, 1000)
		return []any{in(x), inout([]int32{0}, []int32{sum(x)}, 0), int32(1000)}
	}},
	{file: "atomic", part: "histogram", kernel: "histogram", grid: dims(2), args: func(r *rand.Rand) []any {
		x, bins := fill(900, func(int) int32 { return int32(r.IntN(64)) }), make([]int32, 64)
		for _, v := range x {
			bins[v]++
		}
		return []any{in(x), inout(make([]int32, 64), bins, 0), int32(900)}
	}},
	{file: "atomic", part: "split_k", kernel: "split_k", grid: dims(2, 2, 3), args: func(r *rand.Rand) []any {
		const m, n, k = 50, 48, 160
		a, b := halves(r, m*k), halves(r, k*n)
		return []any{in(a), in(b), inout(make([]float32, m*n), matrices(m, n, k, a, b), 1e-4), int32(m), int32(n), int32(k)}
	}},
	tiled("f16", 0, 4, 70, 80, 96, halves, toHalf, 1e-2), tiled("f16_odd", 0, 4, 70, 75, 45, halves, same, 1e-4),
	tiled("f16_large", 80, 4, 140, 144, 208, halves, toHalf, 1e-2), tiled("bf16", 80, 4, 100, 80, 160, bfloats, same, 1e-4),
	tiled("tf32", 80, 4, 70, 80, 96, floats, same, 1e-2),
	tiled("s8", 80, 4, 70, 80, 96, func(r *rand.Rand, n int) []int8 { return fill(n, func(int) int8 { return int8(r.IntN(256)) }) },
		func(v float32) int32 { return int32(v) }, 0),
	{file: "matmul", part: "int4", kernel: "int4_matmul", grid: dims(2, 2), args: func(r *rand.Rand) []any {
		const m, n, k, group = 64, 64, 96, 32
		a, scales := halves(r, m*k), floats(r, k/group*n)
		packed := fill(k/2*n, func(int) uint8 { return uint8(r.Uint32()) })
		return []any{in(a), in(packed), in(scales), out(product(m, n, k, func(i, l int) float64 { return a[i*k+l].float() }, func(l, j int) float64 {
			q := int8(packed[l/2*n+j]) >> 4
			if l%2 == 0 {
				q = int8(packed[l/2*n+j]<<4) >> 4
			}
			return float64(q) * float64(scales[l/group*n+j])
		}), 1e-3), int32(m), int32(n), int32(k)}
	}},
	{file: "matmul", part: "batched", kernel: "batched", grid: dims(1), args: func(r *rand.Rand) []any {
		a, b := floats(r, 4*256), floats(r, 4*256)
		return []any{in(a), in(b), out(slices.Concat(fill(4, func(i int) []float32 {
			return matrices(16, 16, 16, a[i*256:i*256+256], b[i*256:i*256+256])
		})...), 1e-5)}
	}},
	attention("attention", 2, 64, 100, true, halves, toHalf), attention("attention_bf16", 2, 128, 208, false, bfloats, toBfloat),
	descriptors("tma", 64), descriptors("tma_large", 128),
	inPair("pair", 256), inPair("pair_halves", 128),
	withScales("mxfp8", 128, 256, e4m3, e5m2, 32), withScales("mixed", 128, 256, e4m3, e2m1, 32), withScales("mxfp4", 128, 256, e2m1, e2m1, 32),
	withScales("nvfp4", 128, 256, e2m1, e2m1, 16), withScales("mxfp8_tma", 128, 256, e4m3, e5m2, 32),
	withScales("nvfp4_tma", 128, 512, e2m1, e2m1, 16),
})

// philox is the number from 0 to 1 that Triton draws for a seed and an index: Philox 4×32, ten rounds.
func philox(seed, i uint32) float32 {
	c, key := [4]uint32{i}, [2]uint32{seed}
	for range 10 {
		a, b := uint64(c[0])*0xd2511f53, uint64(c[2])*0xcd9e8d57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ key[0], uint32(b), uint32(a>>32) ^ c[3] ^ key[1], uint32(a)}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	v := int32(c[0])
	if v < 0 {
		v = ^v
	}
	return float32(v) * 4.6566127342e-10
}

func same(v float32) float32 { return v }

func halves(r *rand.Rand, n int) []half {
	return fill(n, func(int) half { return toHalf(r.Float32()*2 - 1) })
}

func bfloats(r *rand.Rand, n int) []bfloat {
	return fill(n, func(int) bfloat { return toBfloat(r.Float32()*2 - 1) })
}

// value is a number of any type.
func value[T any](v T) float64 {
	switch v := any(v).(type) {
	case half:
		return v.float()
	case bfloat:
		return v.float()
	case float32:
		return float64(v)
	case int8:
		return float64(v)
	}
	panic(fmt.Sprintf("a number of type %T", v))
}

// matrices is the product of a and b.
func matrices[T any](m, n, k int, a, b []T) []float32 {
	return product(m, n, k, func(i, l int) float64 { return value(a[i*k+l]) }, func(l, j int) float64 { return value(b[l*n+j]) })
}

func perRow(part, kernel string, rows, columns int) run {
	return run{file: "rows", part: part, kernel: kernel, grid: dims(rows), args: func(r *rand.Rand) []any {
		x := floats(r, rows*columns)
		return []any{in(x), out(fill(rows*columns, func(i int) float32 {
			total := 0.0
			for _, v := range x[i/columns*columns:][:columns] {
				total += math.Exp(float64(v))
			}
			return float32(math.Exp(float64(x[i])) / total)
		}), 1e-6), int32(columns)}
	}}
}

// tiled is a matrix product in the tiles of matmul.py.
func tiled[T, U any](part string, least, blocks, m, n, k int, x func(r *rand.Rand, n int) []T, y func(v float32) U, err float64) run {
	return run{file: "matmul", part: part, kernel: "matmul", least: least, grid: dims(blocks), args: func(r *rand.Rand) []any {
		a, b := x(r, m*k), x(r, k*n)
		c := matrices(m, n, k, a, b)
		return []any{in(a), in(b), out(fill(m*n, func(i int) U { return y(c[i]) }), err), int32(m), int32(n), int32(k)}
	}}
}

func attention[T any](part string, heads, rows, n int, causal bool, x func(r *rand.Rand, n int) []T, y func(v float32) T) run {
	const d = 64
	return run{file: "attention", part: part, kernel: "attention", least: 80, grid: dims((n+rows-1)/rows, heads), args: func(r *rand.Rand) []any {
		q, k, v := x(r, heads*n*d), x(r, heads*n*d), x(r, heads*n*d)
		const scale = 0.125
		o := make([]T, 0, heads*n*d)
		for i := range heads * n {
			head, weights, total := i/n*n, make([]float64, 0, n), 0.0
			for j := range n {
				if causal && j > i%n {
					break
				}
				s := 0.0
				for l := range d {
					s += value(q[i*d+l]) * value(k[(head+j)*d+l])
				}
				weights = append(weights, math.Exp(s*scale))
				total += weights[j]
			}
			for l := range d {
				s := 0.0
				for j, w := range weights {
					s += w * value(v[(head+j)*d+l])
				}
				o = append(o, y(float32(s/total)))
			}
		}
		return []any{in(q), in(k), in(v), out(o, 1e-2), int32(n), float32(scale)}
	}}
}

// descriptors is a matrix product by two blocks that copy tiles of so many rows by descriptors.
func descriptors(part string, rows int) run {
	return run{file: "tensors", part: part, kernel: "matmul_tma", least: 90, grid: dims(2), args: func(r *rand.Rand) []any {
		m, n, k := 2*rows-20, 144, 160
		a, b := halves(r, m*k), halves(r, n*k)
		c := product(m, n, k, func(i, l int) float64 { return a[i*k+l].float() }, func(l, j int) float64 { return b[j*k+l].float() })
		return []any{in(a), in(b), out(fill(m*n, func(i int) half { return toHalf(c[i]) }), 1e-2), int32(m), int32(n), int32(k)}
	}}
}

// minifloat is a type of floating-point numbers of up to 8 bits, from 2^-2 on and less than 4 where they are random.
type minifloat struct{ exponent, mantissa int }

var e4m3, e5m2, e2m1 = minifloat{4, 3}, minifloat{5, 2}, minifloat{2, 1}

func (s minifloat) bits() int { return 1 + s.exponent + s.mantissa }

func (s minifloat) random(r *rand.Rand) uint8 {
	if s == e2m1 {
		return uint8(r.IntN(16))
	}
	bias := 1<<(s.exponent-1) - 1
	return uint8(r.IntN(2)<<7 | (bias-2+r.IntN(4))<<s.mantissa | r.IntN(1<<s.mantissa))
}

func (s minifloat) value(b uint8) float64 {
	e, m := int(b)>>s.mantissa&(1<<s.exponent-1), float64(int(b)&(1<<s.mantissa-1))/float64(int(1)<<s.mantissa)
	v := math.Ldexp(1+m, e-(1<<(s.exponent-1)-1))
	if e == 0 {
		v = math.Ldexp(m, 2-1<<(s.exponent-1))
	}
	if b>>(s.bits()-1)&1 == 1 {
		return -v
	}
	return v
}

// withScales is a product of matrices of 128 rows and n columns with scales for groups along k: powers of two, or of groups of 16 E4M3.
func withScales(part string, n, k int, ta, tb minifloat, group int) run {
	const m = 128
	kernel, place := "scaled", func(row, g int) int { return row*(k/group) + g }
	if strings.HasSuffix(part, "_tma") {
		kernel = "scaled_tma"
		place = func(row, g int) int { return ((g/4*32+row%32)*4+row/32)*4 + g%4 }
	}
	return run{file: "matmul", part: part, kernel: kernel, least: 100, most: 100, grid: dims(1), args: func(r *rand.Rand) []any {
		matrix := func(rows int, t minifloat) (elements, scales []uint8, values []float64) {
			elements = fill(rows*k*t.bits()/8, func(int) uint8 {
				if t.bits() == 4 {
					return t.random(r) | t.random(r)<<4
				}
				return t.random(r)
			})
			scale := func(b uint8) float64 { return math.Ldexp(1, int(b)-127) }
			scales = fill(rows*k/group, func(int) uint8 { return uint8(125 + r.IntN(5)) })
			if group == 16 {
				scale = e4m3.value
				scales = fill(rows*k/group, func(int) uint8 { return e4m3.random(r) & 127 })
			}
			return elements, scales, fill(rows*k, func(i int) float64 {
				s := scale(scales[place(i/k, i%k/group)])
				if t.bits() == 4 {
					return s * t.value(elements[i/2]>>(i%2*4)&15)
				}
				return s * t.value(elements[i])
			})
		}
		a, sa, x := matrix(m, ta)
		b, sb, y := matrix(n, tb)
		c := product(m, n, k, func(i, l int) float64 { return x[i*k+l] }, func(l, j int) float64 { return y[j*k+l] })
		return []any{in(a), in(sa), in(b), in(sb), out(c, 1e-3), int32(k)}
	}}
}

// inPair is a matrix product by a pair of blocks, of so many rows.
func inPair(part string, m int) run {
	const n, k = 64, 64
	return run{file: "tensors", part: part, kernel: "pair", least: 100, most: 100, grid: dims(2), cluster: dims(2), args: func(r *rand.Rand) []any {
		a, b := halves(r, m*k), halves(r, k*n)
		return []any{in(a), in(b), out(matrices(m, n, k, a, b), 1e-5)}
	}}
}
