package lower

import (
	"math/bits"
	"slices"
)

// thin is a product of a matrix with few vectors, for the gemv kernels: one side of the result is at most fewVectors long, the
// other one is called rows.
type thin struct {
	rows, vectors    int
	along            bool // the matrix lies along the depth
	ofB              bool // the matrix is b, so that rows are columns of the result
	matrix, x        Buffer
	strideM, strideX int // from product to product
	vectorK, vectorV int // strides of the vectors
	resultR, resultV int
	biasR, biasV     int // 1 if the bias runs along rows, or along vectors
}

// thin is the product in this form, if it has one: rather with a matrix that lies along the depth, then with more rows.
func (m *matmul) thin() (t thin, ok bool) {
	// A vector lies the same way whether it is transposed or not.
	alongA, alongB := !m.transA || m.M == 1, m.transB || m.N == 1
	ofA := thin{rows: m.M, vectors: m.N, along: alongA, matrix: m.a, x: m.b, strideM: m.StrideA, strideX: m.StrideB,
		vectorK: m.N, vectorV: 1, resultR: m.N, resultV: 1, biasR: int(m.biasOf & biasOfRows / biasOfRows),
		biasV: int(m.biasOf & biasOfColumns / biasOfColumns)}
	if m.transB {
		ofA.vectorK, ofA.vectorV = 1, m.K
	}
	ofB := thin{ofB: true, rows: m.N, vectors: m.M, along: alongB, matrix: m.b, x: m.a, strideM: m.StrideB, strideX: m.StrideA,
		vectorK: 1, vectorV: m.K, resultR: 1, resultV: m.N, biasR: ofA.biasV, biasV: ofA.biasR}
	if m.transA {
		ofB.vectorK, ofB.vectorV = m.M, 1
	}
	aOK, bOK := ofA.vectors <= fewVectors, ofB.vectors <= fewVectors
	if aOK && bOK {
		aOK = ofA.along && !ofB.along || ofA.along == ofB.along && ofA.rows >= ofB.rows
	}
	if aOK {
		return ofA, true
	}
	return ofB, bOK
}

func (t thin) name() string {
	if t.along {
		return "rows"
	}
	return "columns"
}

// shape is log2 of the lanes that share a row, or of the warps that share out the depth: so that each has a few fours to read.
func (t thin) shape(m *matmul) int {
	if !t.along {
		return min(log2(gemvThreads/32), bits.Len(uint(m.K/16)))
	}
	whole := 4096 // of a depth from which a row is a block's; less if there are few rows
	if m.Batch*t.rows < 8*m.caps.Multiprocessors {
		whole = 512
	}
	if m.K >= whole {
		return log2(gemvThreads)
	}
	return min(5, bits.Len(uint(m.K/16)))
}

// blocks of one split.
func (t thin) blocks(m *matmul) int {
	if t.along {
		return ceilDiv(m.Batch*t.rows, gemvThreads>>t.shape(m))
	}
	return m.Batch * t.across(m)
}

// across is blocks of one product, of columns.
func (t thin) across(m *matmul) int { return ceilDiv(t.rows, t.perLane(m)*gemvThreads>>t.shape(m)) }

// kernel has room for the vectors.
func (t thin) kernel(m *matmul) gemvKernels {
	kernels := gemvs[m.elem(t.matrix)]
	return kernels[slices.IndexFunc(kernels, func(k gemvKernels) bool { return t.vectors <= k.vectors })]
}

// perLane is how many rows a lane has, in columns.
func (t thin) perLane(m *matmul) int {
	return columnsOf(16/m.elem(t.matrix).Size(), t.kernel(m).vectors)
}

// vector: whether everything may be read in fours, or a matrix of halves in eights.
func (t thin) vector(m *matmul) bool {
	if !t.along {
		return t.rows%t.perLane(m) == 0
	}
	return m.K%(16/m.elem(t.matrix).Size()) == 0 && t.vectorK == 1 && (t.vectors == 1 || t.vectorV%4 == 0)
}

// emit writes result[split][…] to c.
func (t thin) emit(m *matmul, splits int, c Buffer) {
	act := m.act
	if splits > 1 { // who adds them up adds the bias
		act, t.biasR, t.biasV = 0, 0, 0
	}
	sizes := []uint32{uint32(m.K), uint32(depthOf(m.K, splits)), uint32(t.vectors), uint32(t.shape(m)),
		flagIf(gemvVector, t.vector(m)), act, uint32(t.vectorK), uint32(t.vectorV), uint32(t.resultR), uint32(t.resultV),
		uint32(t.biasR), uint32(t.biasV),
		uint32(t.biasR + t.biasV)}
	sizes = append(sizes, divisorOf(t.rows)...)
	sizes = append(sizes, uint32(m.Batch*t.rows))
	sizes = append(sizes, divisorOf(t.blocks(m))...)
	sizes = append(sizes, divisorOf(t.across(m))...)
	k := t.kernel(m).columns
	if t.along {
		k = t.kernel(m).rows
	}
	product := m.M * m.N
	m.launchTail(m.tail, t.ofB, k, [3]int{t.blocks(m) * splits, 1, 1}, sizes, uint64(t.strideM), uint64(t.strideX), uint64(product),
		uint64(m.Batch*product),
		t.matrix, m.inFloat32(t.x), m.bias, c)
}
