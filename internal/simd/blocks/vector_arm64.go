package blocks

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// How many instructions a weight takes in products with one row of x, with what its scales take, counted in the generated text (which
// says for each loop what it consists of). They were not measured on hardware. GGML's kernels are those in llama-cpp-python 0.3.36, by
// clang 14 -O3; with the K formats their x has a scale for 256 values instead of one for 32.
//
//	        SDOT           without        GGML, SDOT     floats
//	        vector   all   vector   all   vector   all   vector   all
//	Q4_0      0.22  0.41     0.28  0.48     0.38  0.59     0.91  1.15
//	Q4_1      0.25  0.45     0.31  0.52     0.42  0.70     1.13  1.39
//	Q5_0      0.41  0.64     0.47  0.70     0.44  0.98     1.10  1.38
//	Q5_1      0.44  0.68     0.50  0.74     0.53  1.13     1.32  1.62
//	Q8_0      0.16  0.35     0.25  0.45     0.25  0.48     0.79  1.02
//	Q2_K      0.43  0.64     0.50  0.70     0.47  0.59     1.26  1.48
//	Q3_K      0.52  0.73     0.59  0.80     0.55  0.94     1.16  1.37
//	Q4_K      0.29  0.44     0.35  0.50     0.29  0.52     1.17  1.38
//	Q5_K      0.40  0.56     0.46  0.62     0.48  0.71     1.29  1.50
//	Q6_K      0.46  0.68     0.52  0.74     0.55  0.76     1.10  1.31
//
// Without scales Q4_K has 0.20 vector instructions. Four rows of x at once take 0.10 vector instructions and 0.16 in all for each
// product with SDOT, 0.15 and 0.22 where 16 values share a scale.

// dotProduct says whether the processor has products of bytes (FEAT_DotProd), which those since 2018 have.
var dotProduct = cpu.ARM64.HasASIMDDP

// neon says whether the active tier has vectors.
func neon() bool { return kernels.Active() == kernels.NEON }

func bytewise() bool { return dotProduct && neon() }

func (w *row) unpackQuants(q []int8, block int) {
	if !neon() {
		w.quants(q, w, block)
		return
	}
	to, from, n := &q[0], &w.planes[0][w.size[0]*block], len(q)/w.block
	switch w.Type {
	case quant.Q4_0, quant.Q4_1:
		quantsNibblesNEON(to, from, n)
	case quant.Q5_0, quant.Q5_1:
		quantsFifthsNEON(to, from, n, &w.planes[1][4*block])
	case quant.Q2_K:
		quantsQ2KNEON(to, from, n)
	case quant.Q3_K:
		quantsQ3KNEON(to, from, n)
	case quant.Q4_K:
		quantsQ4KNEON(to, from, n)
	case quant.Q5_K:
		quantsQ5KNEON(to, from, n)
	default:
		quantsQ6KNEON(to, from, n)
	}
}

func (w *row) unpackScales(a, b []float32, block int) {
	if !neon() {
		w.scales(a, b, w, block)
		return
	}
	from, n := &w.planes[0][w.size[0]*block], len(a)*w.width/w.block
	halves := func(plane int) *byte { return &w.planes[plane][w.size[plane]*block] }
	switch w.Type {
	case quant.Q4_1, quant.Q5_1:
		done := len(a) &^ 3
		if done > 0 {
			plane := 1
			if w.Type == quant.Q5_1 {
				plane = 2
			}
			pairScalesNEON(&a[0], &b[0], halves(plane), done/4)
		}
		w.scales(a[done:], b[done:], w, block+done)
	case quant.Q2_K:
		scalesQ2KNEON(&a[0], &b[0], from, n, halves(1))
	case quant.Q3_K:
		scalesQ3KNEON(&a[0], &w.planes[1][12*block], n, halves(2))
	case quant.Q4_K:
		scalesQ4KNEON(&a[0], &b[0], from, n)
	case quant.Q5_K:
		scalesQ5KNEON(&a[0], &b[0], from, n)
	case quant.Q6_K:
		scalesQ6KNEON(&a[0], from, n, halves(1))
	default:
		w.scales(a, b, w, block)
	}
}

func (m *room) expand(y []float32, q []int8) {
	switch n := len(y) / m.width; {
	case !neon():
		expandGo(y, q, m.a[:], m.b[:], m.format)
	case m.affine:
		expandAffineNEON(&y[0], &q[0], &m.a[0], &m.b[0], m.width, n)
	default:
		expandNEON(&y[0], &q[0], &m.a[0], int(m.offset), m.width, n)
	}
}

// raised is what the integers stand above zero in dot.
func raised(f *format) float32 { return f.offset }

// rowFunctions are those for floats, and those for integers with SDOT and without.
var rowFunctions = map[quant.Type][3]rowFunction{
	quant.Q4_0: {rowsQ4_0FloatsNEON, rowsQ4_0SDOT, rowsQ4_0NEON},
	quant.Q4_1: {rowsQ4_1FloatsNEON, rowsQ4_1SDOT, rowsQ4_1NEON},
	quant.Q5_0: {rowsQ5_0FloatsNEON, rowsQ5_0SDOT, rowsQ5_0NEON},
	quant.Q5_1: {rowsQ5_1FloatsNEON, rowsQ5_1SDOT, rowsQ5_1NEON},
	quant.Q8_0: {rowsQ8_0FloatsNEON, rowsQ8_0SDOT, rowsQ8_0NEON},
	quant.Q2_K: {rowsQ2KFloatsNEON, rowsQ2KSDOT, rowsQ2KNEON},
	quant.Q3_K: {rowsQ3KFloatsNEON, rowsQ3KSDOT, rowsQ3KNEON},
	quant.Q4_K: {rowsQ4KFloatsNEON, rowsQ4KSDOT, rowsQ4KNEON},
	quant.Q5_K: {rowsQ5KFloatsNEON, rowsQ5KSDOT, rowsQ5KNEON},
	quant.Q6_K: {rowsQ6KFloatsNEON, rowsQ6KSDOT, rowsQ6KNEON},
}

// rowsFloats and rows8 set y to the products of rows of weights from lo on with one row of x, if there are instructions for it.

func (w *Weights) rowsFloats(y, x []float32, lo int) bool {
	if !neon() || len(x) == 0 || len(y) == 0 {
		return false
	}
	w.multiplySummed(rowFunctions[w.Type][0], y, x, lo)
	return true
}

func groupSums16(sum, x *float32, n int) { groupSums16NEON(sum, x, n) }

func groupSums32(sum, x *float32, n int) { groupSums32NEON(sum, x, n) }

func (w *Weights) rows8(y []float32, x *Rounded, lo int) bool {
	if !neon() || len(x.Q) == 0 || len(y) == 0 {
		return false
	}
	f := 2
	if bytewise() {
		f = 1
	}
	scale, sum := x.groups(w.width, 0, len(x.Q)/w.width)
	w.multiplyRows(rowFunctions[w.Type][f], y, (*byte)(unsafe.Pointer(&x.Q[0])), &scale[0], &sum[0], lo)
	return true
}

func (r *Rounded) roundVectors(_ []float32, lo, _ int) int { return lo }
