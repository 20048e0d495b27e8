package wgsl

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// piece is what one dispatch computes of a batch of products: all of it where the limits of the device allow.
// Offsets, strides and row lengths count elements; offsets are from the start of the binding.
type piece struct {
	batch, m, n, k            int
	a, b, c                   Buffer
	offA, offB, offC          int
	lda, ldb, ldc             int
	strideA, strideB, strideC int
	bias0                     int
}

// parts cuts a batch of products into pieces whose bindings the device allows: along the batch, then along the rows of a and
// of the result and the columns of a transposed b. Where an operand lies in memory by rows of the inner dimension, that is cut
// instead, and deep is true: the pieces have to be added.
func (m *matmul) parts(lda, ldb int) (pieces []piece, deep bool, err error) {
	limit := int(min(m.caps.MaxBinding, 1<<62)) / 4
	sizeA, sizeB, sizeC := m.M*m.K, m.K*m.N, m.M*m.N
	sums := m.sums() // of which each has its place in scratch memory
	all := func(size, stride int) int { return size + (m.Batch-1)*stride }
	base := piece{batch: m.Batch, m: m.M, n: m.N, k: m.K, lda: lda, ldb: ldb, ldc: m.N, strideA: m.StrideA, strideB: m.StrideB, strideC: sizeC,
		a: m.a, b: m.b, c: result}
	padded := func(n int) int { return int(BufferSize(4*n)) / 4 }
	if padded(all(sizeA, m.StrideA)) <= limit && padded(all(sizeB, m.StrideB)) <= limit && padded(sums*m.Batch*sizeC) <= limit {
		return []piece{base}, false, nil
	}
	limit -= m.align() / 2 // room for the alignment at both ends
	rows, cols, group := m.M, m.N, 1
	if most := max(sizeA, sizeB, sums*sizeC); most <= limit {
		group = limit / most
	} else {
		if m.TransA && sizeA > limit || !m.TransB && sizeB > limit {
			pieces, err := m.deepParts(base, limit)
			return pieces, true, err
		}
		rows = min(rows, limit/(sums*m.N))
		if m.TransA {
			rows = multipleOf4(rows, m.M) // where vectors of a row start
		} else {
			rows = min(rows, limit/max(m.K, 1))
		}
		if sizeB > limit {
			cols = min(cols, limit/m.K)
		}
		if rows < 1 || cols < 1 {
			return nil, false, m.tooLarge("a row of the result or of an operand", max(m.N, m.K), "multiply in blocks")
		}
	}
	for z := 0; z < m.Batch; z += group {
		for i := 0; i < m.M; i += rows {
			for j := 0; j < m.N; j += cols {
				p := base
				p.batch, p.m, p.n = min(group, m.Batch-z), min(rows, m.M-i), min(cols, m.N-j)
				last := p.batch - 1
				firstA, lenA := z*m.StrideA+i*lda, last*m.StrideA+p.m*m.K
				if m.TransA {
					firstA, lenA = z*m.StrideA, last*m.StrideA+sizeA
				}
				firstB, lenB := z*m.StrideB, last*m.StrideB+sizeB
				if m.TransB {
					firstB, lenB = z*m.StrideB+j*ldb, last*m.StrideB+p.n*m.K
				}
				p.a, p.offA = m.window(m.a, firstA, lenA)
				p.b, p.offB = m.window(m.b, firstB, lenB)
				p.c, p.offC = m.window(result, z*sizeC+i*m.N, last*sizeC+p.m*m.N)
				p.offC += j
				if m.TransA {
					p.offA += i
				}
				p.bias0 = j
				if m.Bias == "row" {
					p.bias0 = i
				}
				pieces = append(pieces, p)
			}
		}
	}
	return pieces, false, nil
}

// deepParts cuts along the inner dimension.
func (m *matmul) deepParts(base piece, limit int) ([]piece, error) {
	depth := min(m.K, mostDepth)
	if m.TransA {
		depth = min(depth, limit/m.M)
	} else if m.M*m.K > limit {
		depth = 0
	}
	if !m.TransB {
		depth = min(depth, limit/m.N)
	} else if m.K*m.N > limit {
		depth = 0
	}
	depth &^= 3
	if depth == 0 || m.Batch > 1 || ceilDiv(m.K, depth)*m.M*m.N > limit {
		return nil, m.tooLarge("an operand", max(m.M, m.N)*m.K, "store a untransposed and b transposed, or multiply in blocks")
	}
	var pieces []piece
	for k := 0; k < m.K; k += depth {
		p := base
		p.k = min(depth, m.K-k)
		if m.TransA {
			p.a, p.offA = m.window(m.a, k*m.M, p.k*m.M)
		} else {
			p.offA = k
		}
		if m.TransB {
			p.offB = k
		} else {
			p.b, p.offB = m.window(m.b, k*m.N, p.k*m.N)
		}
		p.offC = len(pieces) * m.M * m.N
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// window binds elements [first, first+n) of a buffer of four-byte elements as near as alignment allows, and returns where in
// the binding the first one lies.
func (s *step) window(b Buffer, first, n int) (Buffer, int) {
	if n == 0 {
		return b, 0
	}
	p := s.part(4*first, 4*(first+n))
	return p.of(b), first - p.base/4
}

func multipleOf4(n, all int) int {
	if n >= all {
		return n
	}
	return n &^ 3
}

func (s *step) tooLarge(what string, elements int, wayOut string) error {
	return fmt.Errorf("%s has %d bytes, a binding may have %d: %s: %w", what, 4*elements, s.caps.MaxBinding, wayOut, compute.ErrTooLarge)
}
