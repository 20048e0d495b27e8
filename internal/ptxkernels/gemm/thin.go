package gemm

import (
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
)

// thin is a product of a matrix with few vectors, for the gemv kernels: one side of the result is at most fewVectors long, the
// other one is called rows.
type thin struct {
	rows, vectors    int
	kMajor           bool // the matrix is K-major
	ofB              bool // the matrix is b, so that rows are columns of the result
	matrix, x        kit.Buffer
	strideM, strideX int // from product to product
	vectorK, vectorV int // strides of the vectors
	resultR, resultV int
	biasR, biasV     int // 1 if the bias runs along rows, or along vectors
}

// thin is the product in this form, if it has one: rather with a K-major matrix, then with more rows.
func (m *Problem) thin() (t thin, ok bool) {
	// A vector lies the same way whether it is transposed or not.
	kMajorA, kMajorB := !m.transA || m.M == 1, m.transB || m.N == 1
	ofA := thin{rows: m.M, vectors: m.N, kMajor: kMajorA, matrix: m.A, x: m.B, strideM: m.StrideA, strideX: m.StrideB,
		vectorK: m.N, vectorV: 1, resultR: m.N, resultV: 1, biasR: int(m.BiasOf & tiling.BiasOfRows / tiling.BiasOfRows),
		biasV: int(m.BiasOf & tiling.BiasOfColumns / tiling.BiasOfColumns)}
	if m.transB {
		ofA.vectorK, ofA.vectorV = 1, m.K
	}
	ofB := thin{ofB: true, rows: m.N, vectors: m.M, kMajor: kMajorB, matrix: m.B, x: m.A, strideM: m.StrideB, strideX: m.StrideA,
		vectorK: 1, vectorV: m.K, resultR: 1, resultV: m.N, biasR: ofA.biasV, biasV: ofA.biasR}
	if m.transA {
		ofB.vectorK, ofB.vectorV = m.M, 1
	}
	aOK, bOK := ofA.vectors <= FewVectors, ofB.vectors <= FewVectors
	if aOK && bOK {
		aOK = ofA.kMajor && !ofB.kMajor || ofA.kMajor == ofB.kMajor && ofA.rows >= ofB.rows
	}
	if aOK {
		return ofA, true
	}
	return ofB, bOK
}

func (t thin) name() string {
	if t.kMajor {
		return "rows"
	}
	return "columns"
}

// shape is log2 of the lanes that share a row, or of the warps that share out the depth: so that each has a few fours to read.
func (t thin) shape(m *Problem) int {
	if !t.kMajor {
		return min(scalar.Log2(gemvThreads/32), bits.Len(uint(m.K/16)))
	}
	whole := 4096 // of a depth from which a row is a block's; less if there are few rows
	if m.Batch*t.rows < 8*m.Caps.Multiprocessors {
		whole = 512
	}
	if m.K >= whole {
		return scalar.Log2(gemvThreads)
	}
	return min(5, bits.Len(uint(m.K/16)))
}

// blocks of one split.
func (t thin) blocks(m *Problem) int {
	if t.kMajor {
		return kit.CeilDiv(m.Batch*t.rows, gemvThreads>>t.shape(m))
	}
	return m.Batch * t.across(m)
}

// across is blocks of one product, of columns.
func (t thin) across(m *Problem) int {
	return kit.CeilDiv(t.rows, t.perLane(m)*gemvThreads>>t.shape(m))
}

// Kernel has room for the vectors.
func (t thin) Kernel(m *Problem) gemvKernels {
	kernels := gemvs[m.Elem(t.matrix)]
	return kernels[slices.IndexFunc(kernels, func(k gemvKernels) bool { return t.vectors <= k.vectors })]
}

// perLane is how many rows a lane has, in columns.
func (t thin) perLane(m *Problem) int {
	return columnsOf(16/m.Elem(t.matrix).Size(), t.Kernel(m).vectors)
}

// vector: whether everything may be read in fours, or a matrix of halves in eights.
func (t thin) Vector(m *Problem) bool {
	if !t.kMajor {
		return t.rows%t.perLane(m) == 0
	}
	return m.K%(16/m.Elem(t.matrix).Size()) == 0 && t.vectorK == 1 && (t.vectors == 1 || t.vectorV%4 == 0)
}

// emit writes result[split][…] to c.
func (t thin) emit(m *Problem, splits int, c kit.Buffer) {
	act := m.Act
	if splits > 1 { // who adds them up adds the bias
		act, t.biasR, t.biasV = 0, 0, 0
	}
	k := t.Kernel(m).columns
	if t.kMajor {
		k = t.Kernel(m).rows
	}
	product := m.M * m.N
	m.LaunchEpilogue(m.tail, t.ofB, k, [3]int{t.blocks(m) * splits, 1, 1}, gemvParams{
		K: m.K, Depth: tiling.DepthOf(m.K, splits), Vectors: t.vectors, Shape: t.shape(m), Flags: int(kit.FlagIf(gemvVector, t.Vector(m))), Act: int(act),
		VectorK: t.vectorK, VectorV: t.vectorV, ResultR: t.resultR, ResultV: t.resultV, BiasR: t.biasR, BiasV: t.biasV, HasBias: t.biasR + t.biasV,
		Rows: scalar.Divide(t.rows), Total: m.Batch * t.rows, Blocks: scalar.Divide(t.blocks(m)), Across: scalar.Divide(t.across(m)),
		StrideMatrix: uint64(t.strideM), StrideVectors: uint64(t.strideX), StrideResult: uint64(product), StrideSplit: uint64(m.Batch * product),
		Matrix: t.matrix, X: m.InFloat32(t.x), Bias: m.Bias, Result: c})
}
