package cudacorpus

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// threads are the kernels of one element a thread: y is f of x.
func threads[X, Y any](file, kernel string, least, n int, err float64, x func(r *rand.Rand) X, f func(v X) Y) run {
	return run{file: file, kernel: kernel, least: least, grid: dims((n + 63) / 64), block: dims(64), args: func(r *rand.Rand) []any {
		have := fill(n, func(int) X { return x(r) })
		return []any{in(have), out(fill(n, func(i int) Y { return f(have[i]) }), err), int32(n)}
	}}
}

// warps are the kernels of one block of two warps without a length: y is f of the 32 values of a warp and the lane.
func warps[X, Y any](kernel string, least int, x func(r *rand.Rand) X, f func(v []X, lane int) Y) run {
	return run{file: "warp", kernel: kernel, least: least, grid: dims(1), block: dims(64), args: func(r *rand.Rand) []any {
		have := fill(64, func(int) X { return x(r) })
		return []any{in(have), out(fill(64, func(i int) Y { return f(have[i/32*32:i/32*32+32], i%32) }), 1e-6)}
	}}
}

func small(r *rand.Rand) int32 { return int32(r.IntN(2001) - 1000) }

// ballot has a bit for each value for which f holds.
func ballot[T any](v []T, f func(v T) bool) (m uint32) {
	for i, v := range v {
		if f(v) {
			m |= 1 << i
		}
	}
	return m
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// threadRuns are the kernels of what threads and warps do, and of whole programs.
var threadRuns = []run{
	{file: "async", kernel: "pipeline", least: 80, grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		const tiles = 5
		x := floats(r, 2*tiles*256)
		return []any{in(x), out(fill(512, func(i int) float32 {
			s := float32(0)
			for t := range tiles {
				s += x[i/256*tiles*256+t*256+(63-i%256/4)*4+i%4]
			}
			return s
		}), 0), int32(tiles)}
	}},
	{file: "async", kernel: "group_copy", least: 80, grid: dims(1), block: dims(64), shared: 256, args: func(r *rand.Rand) []any {
		x := ints(r, 150)
		return []any{in(x), out(fill(150, func(i int) int32 { return x[i/64*64+min(64, 150-i/64*64)-1-i%64] }), 0), int32(150)}
	}},
	{file: "barrier", kernel: "split_barrier", least: 80, grid: dims(1), block: dims(128), args: func(r *rand.Rand) []any {
		x := ints(r, 128)
		y := slices.Clone(x)
		for range 3 {
			z := slices.Clone(y)
			for i := range y {
				y[i] = 3*z[i] + z[(i+1)%128]
			}
		}
		return []any{in(x), out(y, 0), int32(3)}
	}},
	{file: "async", kernel: "cluster_histogram", least: 90, grid: dims(4), block: dims(64), cluster: dims(2), args: func(r *rand.Rand) []any {
		x, bins := ints(r, 500), make([]int32, 64)
		for _, v := range x {
			bins[v&63]++
		}
		return []any{in(x), inout(make([]int32, 64), bins, 0), int32(500)}
	}},
	{file: "async", kernel: "bulk_copy", least: 90, grid: dims(2), block: dims(256), args: func(r *rand.Rand) []any {
		x := floats(r, 512)
		return []any{in(x), out(fill(512, func(i int) float32 { return x[i/256*256+255-i%256] }), 0)}
	}},
	warps("votes", 0, small, func(v []int32, lane int) uint32 {
		r := ballot(v, func(v int32) bool { return v > 0 })
		r ^= bit(slices.Max(v) > 900)<<3 ^ bit(slices.Min(v) > -2000)<<7
		if lane < 20 {
			return r + uint32(v[(lane+7)%20]) + uint32(v[lane^1])*5
		}
		from := lane
		if lane%4 < 2 {
			from += 2
		}
		return r + uint32(v[from])*3
	}),
	{file: "warp", kernel: "aggregated", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		x := ints(r, 100)
		n := len(slices.DeleteFunc(slices.Clone(x), func(v int32) bool { return v <= 0 }))
		return []any{in(x), inout([]int32{0}, []int32{int32(n)}, 0), int32(100)}
	}},
	warps("tiles_of_four", 0, func(r *rand.Rand) float32 { return r.Float32() }, func(v []float32, lane int) float32 {
		v, lane = v[lane/4*4:][:4], lane%4
		s := v[0] + 2*v[1] + 3*v[2] + 4*v[3] + v[3-lane]
		if slices.Max(v) > 0.9 {
			return -s
		}
		return s
	}),
	warps("matches", 70, func(r *rand.Rand) int32 { return r.Int32N(3) }, func(v []int32, lane int) uint32 {
		same := ballot(v, func(o int32) bool { return o&3 == v[lane]&3 })
		if slices.Min(v) == slices.Max(v) {
			return same ^ math.MaxUint32 ^ 1
		}
		return same
	}),
	warps("warp_reductions", 80, (*rand.Rand).Uint32, func(v []uint32, _ int) uint32 {
		sum, xor, and, or := uint32(0), uint32(0), ^uint32(0), uint32(0)
		least := int32(math.MaxInt32)
		for _, x := range v {
			sum, xor, and, or, least = sum+x, xor^x, and&(x|0xff0f), or|x&0xf0f0, min(least, int32(x))
		}
		return sum ^ slices.Max(v) ^ xor + and + or + uint32(least)
	}),
	threads("scalar", "functions", 0, 100, 3e-6, func(r *rand.Rand) float32 { return r.Float32()*6 - 3 }, func(f float32) float32 {
		v := float64(f)
		s := math.Sin(v) + math.Cos(v*3)*math.Exp(-v*v) + math.Log(1+v*v) + math.Pow(math.Abs(v)+0.5, 1.7) + math.Erf(v) + math.Atan2(v, float64(float32(0.3)))
		return float32(s + math.Sqrt(v*v+2) + 1/math.Sqrt(v*v+1) + math.Cbrt(v) + math.Tanh(v) +
			math.Mod(float64(f*10), float64(float32(0.7))) + math.Round(v*4) + v/3)
	}),
	threads("scalar", "doubles", 0, 70, 1e-12, func(r *rand.Rand) float64 { return r.Float64()*3 - 1 }, func(v float64) float64 {
		return math.Sin(v)*math.Exp(v) + math.Log(v*v+1)/math.Sqrt(v*v+1) + math.Pow(v*v, 0.3) + v*v + 1 + math.Gamma(v+2.5) + math.Trunc(v*100)
	}),
	{file: "scalar", kernel: "black_scholes", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		const n, rate, s = 150, 0.02, 0.3
		num := func(from, to float32) []float32 {
			return fill(n, func(int) float32 { return from + r.Float32()*(to-from) })
		}
		price, strike, years := num(5, 30), num(1, 100), num(0.25, 10)
		value := func(sign float64) []float32 {
			return fill(n, func(i int) float32 {
				p, k, t := float64(price[i]), float64(strike[i]), float64(years[i])
				d1 := (math.Log(p/k) + (rate+s*s/2)*t) / (s * math.Sqrt(t))
				norm := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
				return float32(sign * (p*norm(sign*d1) - k*math.Exp(-rate*t)*norm(sign*(d1-s*math.Sqrt(t)))))
			})
		}
		return []any{in(price), in(strike), in(years), out(value(1), 1e-4), out(value(-1), 1e-4), float32(rate), float32(s), int32(n)}
	}},
	threads("scalar", "integers", 0, 200, 0, (*rand.Rand).Uint32, func(v uint32) uint32 {
		w := uint64(v) * 0x9e3779b97f4a7c15
		r := v/7 + v%10 + uint32(int32(v)/13) + uint32(int32(v)%11) + uint32(w/1000003) + uint32(w%77)
		perm := func(x, y, s uint32) (p uint32) {
			for i := range 4 {
				p |= uint32((uint64(y)<<32|uint64(x))>>(8*(s>>(4*i)&7))&255) << (8 * i)
			}
			return p
		}
		high, _ := bits.Mul32(v, v)
		ffs := uint32(0)
		if v != 0 {
			ffs = uint32(bits.TrailingZeros32(v)) + 1
		}
		r ^= uint32(bits.OnesCount32(v)) + uint32(bits.LeadingZeros32(v))*3 + ffs*5 + bits.Reverse32(v)>>7 + perm(v, v*3, 0x5140) +
			high + uint32((uint64(r)<<32|uint64(v))>>27)
		difference := int64(int32(v)) - 1000
		return r + uint32(int64(w)>>33) + v/(v&15+1) + uint32(max(difference, -difference)) + 5 +
			uint32(bits.OnesCount64(w)) + uint32(bits.LeadingZeros64(w))
	}),
	{file: "scalar", kernel: "halves", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		a, x := toHalf(-2.5), fill(200, func(int) half { return toHalf(r.Float32()*2 - 1) })
		y := fill(200, func(i int) half {
			return toHalf(max(float32(a.float()*x[i].float()+1-2*float64(i%2)), -1.5))
		})
		for i := 0; i < 200; i += 2 {
			if y[i].float() >= 0.5 {
				y[i], y[i+1] = y[i+1], y[i]
			}
		}
		return []any{in(x), out(y, 0), uint16(a), int32(100)}
	}},
	threads("scalar", "gelu_bf16", 80, 100, 1.0/128, func(r *rand.Rand) bfloat { return toBfloat(r.Float32()*6 - 3) }, func(v bfloat) bfloat {
		return toBfloat(float32(v.float() / 2 * (1 + math.Erf(v.float()/math.Sqrt2))))
	}),
	{file: "scalar", kernel: "structures", grid: dims(1), block: dims(32), args: func(r *rand.Rand) []any {
		type options struct {
			Kind   int8
			_      [1]int8
			Offset int16
			_      [4]int8
			Scale  float64
			Order  [4]int32
		}
		o := options{Kind: 'r', Offset: -7, Scale: 1.5, Order: [4]int32{2, 0, 3, 1}}
		x := fill(100, func(int) float64 { return r.Float64() })
		return []any{in(x), out(fill(100, func(i int) float64 { return x[i/4*4+int(o.Order[i%4])]*1.5 - 7 }), 1e-15), o, int32(25)}
	}},
	{file: "scalar", kernel: "calls", grid: dims(2), block: dims(32), args: func(r *rand.Rand) []any {
		which := fill(50, func(int) int32 { return r.Int32N(3) })
		return []any{in(which), out(fill(50, func(i int) float32 {
			a, b := 0, 1
			for range i % 9 {
				a, b = b, a+b
			}
			return []float32{float32(2 * i), float32(i * i), float32(i + 1)}[which[i]] + float32(a)
		}), 0), int32(50)}
	}},
	{file: "scalar", kernel: "mandelbrot", grid: dims(2, 3), block: dims(16, 8), args: func(r *rand.Rand) []any {
		const w, h, limit = 30, 20, 50
		fma := func(a, b, c float32) float32 { return float32(math.FMA(float64(a), float64(b), float64(c))) }
		return []any{out(fill(w*h, func(i int) uint8 {
			cx, cy := fma(float32(i%w), 3/float32(w), -2), fma(float32(i/w), 2/float32(h), -1)
			x, y, k := float32(0), float32(0), uint8(0)
			for k < limit && fma(x, x, float32(y*y)) < 4 {
				x, y = float32(float32(float32(x*x)-float32(y*y))+cx), fma(2*x, y, cy)
				k++
			}
			return k
		}), 0), int32(w), int32(h), int32(limit)}
	}},
	{file: "scalar", kernel: "interpreter", grid: dims(1), block: dims(64), args: func(r *rand.Rand) []any {
		x := fill(64, func(int) int32 { return r.Int32N(100) })
		return []any{in([]uint8{0, 3, 2, 5, 1, 3, 3, 4, 0, 5, 2, 1}), in(x), out(fill(64, func(i int) int32 {
			v := x[i]*(x[i]-3) + int32(i) - 6
			v = max(v, -v)
			return v + v*int32(i)
		}), 0), int32(12)}
	}},
	{file: "physics", kernel: "bodies", grid: dims(2), block: dims(64), shared: 1024, args: func(r *rand.Rand) []any {
		x := floats(r, 4*100)
		return []any{in(x), out(fill(400, func(i int) float32 {
			if i%4 == 3 {
				return 0
			}
			a := 0.0
			for j := range 100 {
				var d [3]float64
				l := 0.01
				for k := range 3 {
					d[k] = float64(x[4*j+k]) - float64(x[i/4*4+k])
					l += d[k] * d[k]
				}
				a += d[i%4] * float64(x[4*j+3]) / (l * math.Sqrt(l))
			}
			return float32(a)
		}), 1e-3), int32(100), float32(0.01)}
	}},
	{file: "physics", kernel: "sparse_rows", grid: dims(3), block: dims(128), args: func(r *rand.Rand) []any {
		const rows = 11
		start, column, value, x, y := []int32{0}, []int32{}, []float32{}, floats(r, 80), make([]float32, rows)
		for i := range rows {
			s := 0.0
			for range r.IntN(70) {
				c, v := r.Int32N(80), r.Float32()
				column, value = append(column, c), append(value, v)
				s += float64(x[c]) * float64(v)
			}
			start, y[i] = append(start, int32(len(column))), float32(s)
		}
		return []any{in(start), in(column), in(value), in(x), out(y, 1e-5), int32(rows)}
	}},
	{file: "physics", kernel: "softmax", grid: dims(3), block: dims(96), args: func(r *rand.Rand) []any {
		const n = 200
		x := floats(r, 3*n)
		return []any{in(x), out(fill(3*n, func(i int) float32 {
			s := 0.0
			for _, v := range x[i/n*n:][:n] {
				s += math.Exp(float64(v))
			}
			return float32(math.Exp(float64(x[i])) / s)
		}), 1e-6), int32(n)}
	}},
	{file: "physics", kernel: "search_level", grid: dims(2), block: dims(32), args: func(r *rand.Rand) []any {
		// A ring of 50 with chords; nodes at distance 1 of node 0 are known.
		start, edge := make([]int32, 51), []int32{}
		for i := range int32(50) {
			edge = append(edge, (i+1)%50, (i*7+3)%50)
			start[i+1] = int32(len(edge))
		}
		have := fill(50, func(int) int32 { return -1 })
		have[0], have[1], have[3] = 0, 1, 1
		want := slices.Clone(have)
		for _, i := range []int{1, 3} {
			for _, e := range edge[start[i]:start[i+1]] {
				if want[e] < 0 {
					want[e] = 2
				}
			}
		}
		return []any{in(start), in(edge), inout(have, want, 0), inout([]int32{0}, []int32{1}, 0), int32(1), int32(50)}
	}},
	{file: "physics", kernel: "subsequence", grid: dims(1), block: dims(64), shared: 4 * 3 * 81, args: func(r *rand.Rand) []any {
		a, b := fill(80, func(int) int8 { return int8(r.IntN(4)) }), fill(50, func(int) int8 { return int8(r.IntN(4)) })
		last := make([]int32, 51)
		for _, x := range a {
			now := make([]int32, 51)
			for j, y := range b {
				now[j+1] = max(last[j+1], now[j])
				if x == y {
					now[j+1] = last[j] + 1
				}
			}
			last = now
		}
		return []any{in(a), in(b), out(last[50:], 0), int32(80), int32(50)}
	}},
	{file: "physics", kernel: "monte_carlo", grid: dims(2), block: dims(64), args: func(r *rand.Rand) []any {
		seed, hits := r.Uint32(), uint64(0)
		for i := range uint32(128) {
			s := seed + i*2654435761
			for range 20 {
				s ^= s << 13
				s ^= s >> 17
				s ^= s << 5
				if x, y := s>>16, s&0xffff; x*x/2+y*y/2 < 0x7fffffff {
					hits++
				}
			}
		}
		return []any{inout([]uint64{0}, []uint64{hits}, 0), seed, int32(20)}
	}},
	{file: "physics", kernel: "under_lock", grid: dims(5), block: dims(32), args: func(*rand.Rand) []any {
		return []any{inout([]int32{0}, []int32{15}, 0)}
	}},
}
