package simd

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/gemm"
)

// Products of matrices, in row-major order. The destination must not overlap operands. Sums run in float32, in an order that
// only the shape determines; NaN and Inf propagate, and an inner dimension of 0 gives zeros.

// MatMul computes dst = a·b: a is m×k, b is k×n, dst is m×n.
func MatMul(dst, a, b []float32, m, k, n int) { BatchedMatMul(dst, a, b, 1, m, k, n) }

// BatchedMatMul computes dst[i] = a[i]·b[i] for each of batch successive matrices: a is batch×m×k, b is batch×k×n, dst is
// batch×m×n.
func BatchedMatMul(dst, a, b []float32, batch, m, k, n int) {
	const name = "MatMul"
	engine.MustLen(name, len(a), elements(name, batch, m, k))
	engine.MustLen(name, len(b), elements(name, batch, k, n))
	engine.MustLen(name, len(dst), elements(name, batch, m, n))
	engine.MustApart(name, dst, a)
	engine.MustApart(name, dst, b)
	gemm.Run(&gemm.Product{M: m, N: n, K: k, AM: k, AK: 1, BK: n, BN: 1, LDC: n, Alpha: 1,
		Batch: batch, StrideA: m * k, StrideB: k * n, StrideC: m * n}, &gemm.Operands{A: a, B: b, C: dst}, 0)
}

// BatchedMatMul4D is BatchedMatMul for matrices with two leading axes, such as the heads of attention: a is batch×heads×m×k,
// b is batch×heads×k×n, dst is batch×heads×m×n.
func BatchedMatMul4D(dst, a, b []float32, batch, heads, m, k, n int) {
	BatchedMatMul(dst, a, b, area("MatMul", batch, heads), m, k, n)
}

// MatVec computes dst = a·x: a is m×k, x has k elements, dst has m.
func MatVec(dst, a, x []float32, m, k int) {
	const name = "MatVec"
	engine.MustLen(name, len(a), area(name, m, k))
	engine.MustLen(name, len(x), k)
	engine.MustLen(name, len(dst), m)
	engine.MustApart(name, dst, a)
	engine.MustApart(name, dst, x)
	if gemm.SmallMatVec(dst, a, x, m, k) {
		return
	}
	gemm.Run(&gemm.Product{M: m, N: 1, K: k, AM: k, AK: 1, BK: 1, BN: 1, LDC: 1, Alpha: 1, Batch: 1},
		&gemm.Operands{A: a, B: x, C: dst}, 0)
}

// VecMat computes dst = xᵀ·b: x has k elements, b is k×n, dst has n.
func VecMat(dst, x, b []float32, k, n int) {
	const name = "VecMat"
	engine.MustLen(name, len(x), k)
	engine.MustLen(name, len(b), area(name, k, n))
	engine.MustLen(name, len(dst), n)
	engine.MustApart(name, dst, x)
	engine.MustApart(name, dst, b)
	if gemm.SmallVecMat(dst, x, b, k, n) {
		return
	}
	gemm.Run(&gemm.Product{M: 1, N: n, K: k, AM: k, AK: 1, BK: n, BN: 1, LDC: n, Alpha: 1, Batch: 1},
		&gemm.Operands{A: x, B: b, C: dst}, 0)
}

// Product says what [Gemm] computes.
type Product struct {
	M, K, N int // dst is M×N, the inner dimension is K

	TransA bool // a is stored as K×M
	TransB bool // b is stored as N×K

	// Distances in elements between the beginnings of successive stored rows, for matrices that are parts of larger ones; 0
	// for rows that follow each other. Their slices hold at least what is between the first and the last element.
	StrideA, StrideB, StrideC int

	Alpha float32 // factor of the product; 0 means 1
	Beta  float32 // factor of the previous dst, which is not read if Beta is 0

	Bias     []float32          // added to each row: N elements; nil for none
	BiasRows bool               // bias is added to each column instead: M elements
	Act      compute.Activation // of the sum
}

// Gemm computes dst = act(alpha·a·b + beta·dst + bias). Elements between dst's rows are not touched.
func Gemm(dst, a, b []float32, p Product) {
	const name = "Gemm"
	var g gemm.Product // not a literal, which would be copied from another place
	g.M, g.N, g.K, g.Alpha, g.Beta, g.Batch = p.M, p.N, p.K, p.Alpha, p.Beta, 1
	if g.Alpha == 0 {
		g.Alpha = 1
	}
	g.AM, g.AK = mustMatrix(name, len(a), p.M, p.K, p.StrideA, p.TransA)
	g.BK, g.BN = mustMatrix(name, len(b), p.K, p.N, p.StrideB, p.TransB)
	g.LDC, _ = mustMatrix(name, len(dst), p.M, p.N, p.StrideC, false)
	engine.MustApart(name, dst, a)
	engine.MustApart(name, dst, b)
	if p.Bias != nil {
		g.BiasRows = p.BiasRows
		if p.BiasRows {
			engine.MustLen(name, len(p.Bias), p.M)
		} else {
			engine.MustLen(name, len(p.Bias), p.N)
		}
		engine.MustApart(name, dst, p.Bias)
	}
	if p.Act != compute.NoActivation {
		if int(p.Act) >= len(epilogues) {
			_, err := catalogue.ActivationEntry(p.Act)
			panic(fmt.Errorf("simd.%s: %w", name, err))
		}
		e := &epilogues[p.Act]
		g.Finish, g.FinishNS = e.act, e.ns
	}
	gemm.Run(&g, &gemm.Operands{A: a, B: b, C: dst, Bias: p.Bias}, 0)
}

// mustMatrix wants n elements to hold a matrix of rows×cols, stored transposed or not, and returns its strides from row to
// row and from column to column.
func mustMatrix(name string, n, rows, cols, stride int, trans bool) (row, col int) {
	if trans {
		rows, cols = cols, rows
	}
	size := area(name, rows, cols)
	if stride == 0 {
		engine.MustLen(name, n, size)
		stride = cols
	} else if stride < cols || size > 0 && (rows-1 > (math.MaxInt-cols)/stride || n < (rows-1)*stride+cols) {
		panic(fmt.Errorf("simd.%s: %d elements cannot hold %d rows of %d, %d apart: %w",
			name, n, rows, cols, stride, compute.ErrShape))
	}
	if trans {
		return 1, stride
	}
	return stride, 1
}

// epilogues are the activations as products run them.
var epilogues = func() (e [compute.Tanh + 1]struct {
	act func(context any, y []float32, at int)
	ns  float64
}) {
	for a := range e {
		if act, ns := engine.InPlace(compute.Activation(a)); act != nil {
			e[a].act, e[a].ns = func(_ any, y []float32, _ int) { act(y) }, ns
		}
	}
	return e
}()

// Outer computes dst[i][j] = x[i]·y[j]: dst is len(x)×len(y).
func Outer(dst, x, y []float32) {
	const name = "Outer"
	engine.MustLen(name, len(dst), area(name, len(x), len(y)))
	engine.MustApart(name, dst, x)
	engine.MustApart(name, dst, y)
	gemm.Run(&gemm.Product{M: len(x), N: len(y), K: 1, AM: 1, AK: 1, BK: len(y), BN: 1, LDC: len(y), Alpha: 1, Batch: 1},
		&gemm.Operands{A: x, B: y, C: dst}, 0)
}
