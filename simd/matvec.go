package simd

import "github.com/wavelane/wavelane/simd/internal/kernels"

// A product of which one side is a vector reads its matrix once and needs no packing. The vector is contiguous either way:
// one axis of its matrix has size 1.

const (
	vectorBlock = 1024    // outputs that a unit of the column kernel works on: they stay in the first cache
	splitDot    = 1 << 14 // length of the parts of a long inner dimension
)

// vector lowers products with M = 1 or N = 1, the latter as the transposed product.
func (p *product) vector() work {
	n, strideV, strideM := p.N, p.StrideA, p.StrideB // outputs per item
	matrix := 1                                      // which operand is the matrix
	along, across := p.bk, p.bn                      // strides of the matrix along the inner dimension and across outputs
	if p.N == 1 {
		n, strideV, strideM = p.M, p.StrideB, p.StrideA
		matrix = 0
		along, across = p.ak, p.am
	}
	dots := along == 1
	perUnit := vectorBlock
	if dots {
		perUnit = 1
	}
	cols := ceilDiv(n, perUnit)
	splits := 1
	if p.Batch*cols < 16 {
		splits = max(1, ceilDiv(p.K, splitDot))
	}
	length := ceilDiv(p.K, splits) // of a part of the inner dimension
	size := p.Batch * n

	// part computes outputs j of one item from a part of the inner dimension.
	part := func(a *args, item, j, split int, y []float32) {
		v := a.in[1-matrix].f32()[item*strideV:]
		m := a.in[matrix].f32()[item*strideM:]
		lo, hi := split*length, min(p.K, (split+1)*length)
		if dots {
			for i := range y {
				y[i] = dotFast(v[lo:hi], m[(j+i)*across+lo*along:])
			}
			return
		}
		columns(y, v[lo:hi], m[lo*along+j:], along, a)
	}
	finish := func(a *args, item, j int, y []float32) {
		switch {
		case !p.bias:
			p.apply(y, nil)
		case p.N == 1:
			p.apply(y, p.biasAt(a, 0, 1))
		default:
			p.apply(y, p.biasAt(a, j, j+len(y)))
		}
	}
	w := work{phases: []phase{{units: p.Batch * cols * splits, ns: 5 + float64(min(perUnit, n))*(0.4*float64(length)+p.actNS),
		do: func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				split, item, j := u%splits, u/splits/cols, u/splits%cols*perUnit
				y := a.out.f32()
				if splits > 1 {
					y = words32(a)[split*size:]
				}
				y = y[item*n+j:][:min(perUnit, n-j)]
				part(a, item, j, split, y)
				if splits == 1 {
					finish(a, item, j, y)
				}
			}
		}}}}
	if splits > 1 {
		w.scratch = (splits*size + 1) / 2 * 8
		w.phases = append(w.phases, phase{units: p.Batch, ns: float64(n*splits) + p.actNS*float64(n),
			do: func(a *args, lo, hi int) {
				for item := lo; item < hi; item++ {
					y := a.out.f32()[item*n : (item+1)*n]
					for i := range y {
						s := 0.0
						for k := range splits {
							s += float64(words32(a)[k*size+item*n+i])
						}
						y[i] = float32(s)
					}
					finish(a, item, 0, y)
				}
			}})
	}
	return w
}

// columns computes y = Σ v[k]·m[k*ld:], four rows of the matrix at a time, and blocks of rows apart to keep sums short.
func columns(y, v, m []float32, ld int, a *args) {
	block := borrow(len(y))
	defer scratch.Put(block)
	clear(y)
	for k := 0; k < len(v) && !a.stop.Load(); k += kc {
		t, part := *block, v[k:min(k+kc, len(v))]
		rows := m[k*ld:]
		clear(t)
		for len(part) >= 4 {
			axpy4(t, rows, rows[ld:], rows[2*ld:], rows[3*ld:], part)
			part = part[4:]
			rows = rows[min(4*ld, len(rows)):]
		}
		for i, f := range part {
			axpy(t, rows[i*ld:], f)
		}
		kernels.Add(y, y, t)
	}
}

// axpy4 adds f[0]·a + f[1]·b + f[2]·c + f[3]·d to y.
func axpy4(y, a, b, c, d, f []float32) {
	a, b, c, d = a[:len(y)], b[:len(y)], c[:len(y)], d[:len(y)]
	f0, f1, f2, f3 := f[0], f[1], f[2], f[3]
	for i := range y {
		y[i] += (f0*a[i] + f1*b[i]) + (f2*c[i] + f3*d[i])
	}
}

// dotFast is a dot product in float32 lanes, in blocks whose sums are added in float64. B may be longer than a.
func dotFast(a, b []float32) float32 {
	total := 0.0
	b = b[:len(a)]
	for len(a) > 0 {
		n := min(len(a), 1024)
		x, y := a[:n], b[:n]
		a, b = a[n:], b[n:]
		var s0, s1, s2, s3 float32
		for len(x) >= 4 && len(y) >= 4 {
			s0 += x[0] * y[0]
			s1 += x[1] * y[1]
			s2 += x[2] * y[2]
			s3 += x[3] * y[3]
			x, y = x[4:], y[4:]
		}
		for i, v := range x {
			s0 += v * y[i]
		}
		total += float64(s0+s1) + float64(s2+s3)
	}
	return float32(total)
}
