package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// piece is what one dispatch computes of a batch of products: all of it where the limits of the device allow.
// Offsets, strides and row lengths count elements; offsets are from the start of the binding.
type piece struct {
	batch, m, n, k            int
	a, b, c                   Buffer
	offA, offB, offC          int
	lda, ldb, ldc             int
	strideA, strideB, strideC int
	row0, col0                int // of the result
}

// pieces cuts a batch of products into what the device can bind: along the batch, along the rows of a and of the result,
// along the columns of a transposed b, and along the depth where operands lie in memory by it. The pieces of a group, one for
// each part of the depth, cover the same part of the result and have to be added up. Elements of 16 bits count as if they had
// 32.
func (m *matmul) pieces(lda, ldb int) ([][]piece, error) {
	limit := int(min(m.caps.MaxBinding, 1<<62)) / 4
	rowB, rowsB := m.rhsRow(ldb), m.K
	if m.TransB {
		rowsB = m.N
	}
	sizeA, sizeB, sizeC := m.M*m.K, rowB*rowsB, m.M*m.N
	sums := m.sums() // each of which has its own scratch memory
	all := func(size, stride int) int { return int(wgsl.BufferSize(4*(size+(m.Batch-1)*stride))) / 4 }
	base := piece{batch: m.Batch, m: m.M, n: m.N, k: m.K, a: m.a, b: m.b, c: m.c,
		lda: lda, ldb: ldb, ldc: m.N, strideA: m.StrideA, strideB: m.StrideB, strideC: sizeC}
	if max(all(sizeA, m.StrideA), all(sizeB, m.StrideB), all(sums*sizeC, sums*sizeC)) <= limit {
		return [][]piece{{base}}, nil
	}
	limit -= m.align() / 2 // room for the alignment at both ends
	rows, cols, depth, batch := m.M, m.N, m.K, 1
	if most := max(sizeA, sizeB, sums*sizeC); most <= limit {
		batch = limit / most
	} else {
		if m.TransA {
			depth = min(depth, limit/m.M)
		} else {
			rows = min(rows, limit/max(m.K, 1))
		}
		if m.TransB {
			cols = min(cols, limit/max(rowB, 1))
		} else {
			depth = min(depth, limit/rowB)
		}
		if depth < m.K {
			depth = min(depth, mostDepth) &^ 3
			sums = ceilDiv(m.K, max(depth, 1))
		}
		rows = min(rows, limit/m.N, limit/max(1, sums*cols))
		if m.TransA && rows < m.M {
			rows &^= 3 // where vectors of a row start
		}
		if rows < 1 || cols < 1 || depth < 1 && m.K > 0 {
			return nil, m.tooLarge("a row of an operand or of the result", max(m.M, m.N, m.K), "multiply in blocks")
		}
	}
	var groups [][]piece
	for z := 0; z < m.Batch; z += batch {
		for i := 0; i < m.M; i += rows {
			for j := 0; j < m.N; j += cols {
				var group []piece
				for k := 0; k == 0 || k < m.K; k += max(depth, 1) {
					p := base
					p.batch, p.m, p.n, p.k = min(batch, m.Batch-z), min(rows, m.M-i), min(cols, m.N-j), min(depth, m.K-k)
					group = append(group, m.at(p, z, i, j, k))
				}
				groups = append(groups, group)
			}
		}
	}
	return groups, nil
}

// at binds what a piece needs that begins with product z, row i, column j and depth k.
func (m *matmul) at(p piece, z, i, j, k int) piece {
	last := p.batch - 1
	if m.TransA {
		p.a, p.offA = m.windowOf(m.A, m.a, z*m.StrideA+k*p.lda, last*m.StrideA+p.k*p.lda)
		p.offA += i
	} else {
		p.a, p.offA = m.windowOf(m.A, m.a, z*m.StrideA+i*p.lda, last*m.StrideA+p.m*p.lda)
		p.offA += k
	}
	if m.Format != 0 {
		first, n := k, p.k
		if m.TransB {
			first, n = j, p.n
		}
		p.b, p.offB = m.window(m.b, first*m.rhsRow(p.ldb), n*m.rhsRow(p.ldb))
		p.offB /= 4
	} else if m.TransB {
		p.b, p.offB = m.windowOf(m.B, m.b, z*m.StrideB+j*p.ldb, last*m.StrideB+p.n*p.ldb)
		p.offB += k
	} else {
		p.b, p.offB = m.windowOf(m.B, m.b, z*m.StrideB+k*p.ldb, last*m.StrideB+p.k*p.ldb)
		p.offB += j
	}
	p.c, p.offC = m.window(m.c, z*p.strideC+i*p.ldc, last*p.strideC+p.m*p.ldc)
	p.offC += j
	p.row0, p.col0 = i, j
	return p
}

// rhsRow is the number of elements of four bytes that a row of b takes in memory.
func (m *matmul) rhsRow(ldb int) int {
	if m.Format != 0 {
		return 4 * ldb
	}
	return ldb
}

// window binds elements [first, first+n) of a buffer of four-byte elements as near as alignment allows, and returns where in
// the binding the first one lies.
func (s *step) window(b Buffer, first, n int) (Buffer, int) {
	return s.windowOf(compute.Float32, b, first, n)
}

// windowOf is window for elements of type d.
func (s *step) windowOf(d compute.DType, b Buffer, first, n int) (Buffer, int) {
	if n == 0 {
		return b, 0
	}
	p := s.part(d.Size()*first, d.Size()*(first+n))
	return p.of(b), first - p.base/d.Size()
}

func (s *step) tooLarge(what string, elements int, wayOut string) error {
	return fmt.Errorf("%s has %d bytes, a binding may have %d: %s: %w", what, 4*elements, s.caps.MaxBinding, wayOut, compute.ErrTooLarge)
}
