package blocks

import (
	"golang.org/x/sys/cpu"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// vnni says whether AVX-512 has products of bytes.
var vnni = cpu.X86.HasAVX512VNNI

// avx2 says whether the active tier has these instructions.
func avx2() bool { return kernels.Active() == kernels.AVX2 || kernels.Active() == kernels.AVX512 }

func bytewise() bool { return vnni && kernels.Active() == kernels.AVX512 }

func (w *row) unpackQuants(q []int8, block int) {
	if !avx2() {
		w.quants(q, w, block)
		return
	}
	to, from, n := &q[0], &w.planes[0][w.size[0]*block], len(q)/w.block
	switch w.Type {
	case quant.Q4_0, quant.Q4_1:
		quantsNibblesAVX2(to, from, n)
	case quant.Q5_0, quant.Q5_1:
		quantsFifthsAVX2(to, from, n, &w.planes[1][4*block])
	case quant.Q2_K:
		quantsQ2KAVX2(to, from, n)
	case quant.Q3_K:
		quantsQ3KAVX2(to, from, n)
	case quant.Q4_K:
		quantsQ4KAVX2(to, from, n)
	case quant.Q5_K:
		quantsQ5KAVX2(to, from, n)
	default:
		quantsQ6KAVX2(to, from, n)
	}
}

func (w *row) unpackScales(a, b []float32, block int) {
	if !avx2() {
		w.scales(a, b, w, block)
		return
	}
	from, n := &w.planes[0][w.size[0]*block], len(a)*w.width/w.block
	halves := func(plane int) *byte { return &w.planes[plane][w.size[plane]*block] }
	switch w.Type {
	case quant.Q4_1, quant.Q5_1:
		done := len(a) &^ 7
		if done > 0 {
			plane := 1
			if w.Type == quant.Q5_1 {
				plane = 2
			}
			pairScalesAVX2(&a[0], &b[0], halves(plane), done/8)
		}
		w.scales(a[done:], b[done:], w, block+done)
	case quant.Q2_K:
		scalesQ2KAVX2(&a[0], &b[0], from, n, halves(1))
	case quant.Q3_K:
		scalesQ3KAVX2(&a[0], &w.planes[1][12*block], n, halves(2))
	case quant.Q4_K:
		scalesQ4KAVX2(&a[0], &b[0], from, n)
	case quant.Q5_K:
		scalesQ5KAVX2(&a[0], &b[0], from, n)
	case quant.Q6_K:
		scalesQ6KAVX2(&a[0], from, n, halves(1))
	default:
		w.scales(a, b, w, block)
	}
}

var zeros [Piece / 16]float32

func (m *room) expand(y []float32, q []int8) {
	b, n := &m.b[0], len(y)/m.width
	if !m.affine {
		b = &zeros[0]
	}
	switch kernels.Active() {
	case kernels.AVX512:
		expandAVX512(&y[0], &q[0], &m.a[0], b, &m.offset, m.width, n)
	case kernels.AVX2:
		expandAVX2(&y[0], &q[0], &m.a[0], b, &m.offset, m.width, n)
	default:
		expandGo(y, q, m.a[:], m.b[:], m.format)
	}
}

// raised is what the integers stand above zero in dot.
func raised(f *format) float32 {
	if f.quants == nil && bytewise() {
		return 128
	}
	return f.offset
}

func weigh(s, a, scale, b, sum []float32) (total float32) {
	done := 0
	switch n := len(s); {
	case kernels.Active() == kernels.AVX512 && n >= 16:
		done = n &^ 15
		total = weighAVX512(&s[0], &a[0], &scale[0], &b[0], &sum[0], done/16)
	case kernels.Active() == kernels.AVX2 && n >= 8:
		done = n &^ 7
		total = weighAVX2(&s[0], &a[0], &scale[0], &b[0], &sum[0], done/8)
	}
	return total + weighGo(s[done:], a[done:], scale[done:], b[done:], sum[done:])
}

func (m *room) dot(q, x []int8) float32 {
	n := len(q) / 32
	switch signed := m.quants == nil; {
	case !avx2():
		return dotGo(q, x, m.s[:], m.width)
	case bytewise() && signed:
		return dot32SignedVNNI(&q[0], &x[0], &m.s[0], n)
	case bytewise() && m.width == 32:
		return dot32VNNI(&q[0], &x[0], &m.s[0], n)
	case bytewise():
		return dot16VNNI(&q[0], &x[0], &m.s[0], n)
	case signed:
		return dot32SignedAVX2(&q[0], &x[0], &m.s[0], n)
	case m.width == 32:
		return dot32AVX2(&q[0], &x[0], &m.s[0], n)
	}
	return dot16AVX2(&q[0], &x[0], &m.s[0], n)
}

// product is the dot product of the row's n values from lo on with x, times the scales in the room.
func (m *room) product(x []int8, lo, n int) float32 {
	w, block := &m.row, lo/m.block
	if w.quants == nil || !avx2() {
		return m.dot(m.integers(lo, n), x)
	}
	from, s, count := &w.planes[0][w.size[0]*block], &m.s[0], n/w.block
	if bytewise() {
		switch w.Type {
		case quant.Q4_0, quant.Q4_1:
			return productNibblesVNNI(&x[0], s, from, count)
		case quant.Q5_0, quant.Q5_1:
			return productFifthsVNNI(&x[0], s, from, count, &w.planes[1][4*block])
		case quant.Q2_K:
			return productQ2KVNNI(&x[0], s, from, count)
		case quant.Q3_K:
			return productQ3KVNNI(&x[0], s, from, count)
		case quant.Q4_K:
			return productQ4KVNNI(&x[0], s, from, count)
		case quant.Q5_K:
			return productQ5KVNNI(&x[0], s, from, count)
		}
		return productQ6KVNNI(&x[0], s, from, count)
	}
	switch w.Type {
	case quant.Q4_0, quant.Q4_1:
		return productNibblesAVX2(&x[0], s, from, count)
	case quant.Q5_0, quant.Q5_1:
		return productFifthsAVX2(&x[0], s, from, count, &w.planes[1][4*block])
	case quant.Q2_K:
		return productQ2KAVX2(&x[0], s, from, count)
	case quant.Q3_K:
		return productQ3KAVX2(&x[0], s, from, count)
	case quant.Q4_K:
		return productQ4KAVX2(&x[0], s, from, count)
	case quant.Q5_K:
		return productQ5KAVX2(&x[0], s, from, count)
	}
	return productQ6KAVX2(&x[0], s, from, count)
}

// productFloats is the product of floats with the row's values from lo on, at most a piece.
func (m *room) productFloats(x []float32, lo int) float32 {
	if !avx2() {
		return m.expanded(x, lo)
	}
	m.scales(lo, len(x))
	q, a, b, offset, n := &m.integers(lo, len(x))[0], &m.a[0], &m.b[0], &m.offset, len(x)/32
	wide := kernels.Active() == kernels.AVX512
	switch {
	case m.quants == nil && wide:
		return floatsBytes32AVX512(q, &x[0], a, b, offset, n)
	case m.quants == nil:
		return floatsBytes32AVX2(q, &x[0], a, b, offset, n)
	case m.affine && m.width == 16 && wide:
		return floatsMinima16AVX512(q, &x[0], a, b, offset, n)
	case m.affine && m.width == 16:
		return floatsMinima16AVX2(q, &x[0], a, b, offset, n)
	case m.affine && wide:
		return floatsMinima32AVX512(q, &x[0], a, b, offset, n)
	case m.affine:
		return floatsMinima32AVX2(q, &x[0], a, b, offset, n)
	case m.width == 16 && wide:
		return floatsOffset16AVX512(q, &x[0], a, b, offset, n)
	case m.width == 16:
		return floatsOffset16AVX2(q, &x[0], a, b, offset, n)
	case wide:
		return floatsOffset32AVX512(q, &x[0], a, b, offset, n)
	}
	return floatsOffset32AVX2(q, &x[0], a, b, offset, n)
}
