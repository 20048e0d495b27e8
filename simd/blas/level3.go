package blas

import "gonum.org/v1/gonum/blas"

// Products with symmetric and triangular matrices are halved until the parts on the diagonal are small, and all that is off
// the diagonal becomes general products. See Elmroth, Gustavson, Jonsson and Kågström, "Recursive Blocked Algorithms and
// Hybrid Data Structures for Dense Matrix Library Software", 2004.

// leaf is the size from which gonum does the rest: dividing further costs more than it gains.
const leaf = 32

// halve returns where to cut a size, on whole vectors.
func halve(n int) int { return (n/2 + 15) &^ 15 }

// op returns a matrix, or part of one, as stored or transposed.
func op(a []float32, ld int, trans bool) matrix {
	if trans {
		return matrix{a, 1, ld}
	}
	return matrix{a, ld, 1}
}

// from returns a matrix from row p on, from column p on if it is transposed.
func from(a []float32, ld, p int, trans bool) []float32 {
	if trans {
		return a[p:]
	}
	return a[p*ld:]
}

// Sgemm computes C = alpha·op(A)·op(B) + beta·C, where op(A) is m×k, op(B) k×n and C m×n.
func (Implementation) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	transA, okA := transposed(tA)
	transB, okB := transposed(tB)
	rowsA, colsA, rowsB, colsB := m, k, k, n
	if transA {
		rowsA, colsA = k, m
	}
	if transB {
		rowsB, colsB = n, k
	}
	if !okA || !okB || alpha == 0 || !fits(a, rowsA, colsA, lda) || !fits(b, rowsB, colsB, ldb) || !fits(c, m, n, ldc) {
		reference.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	multiply(m, n, k, alpha, op(a, lda, transA), op(b, ldb, transB), beta, c, ldc)
}

// Ssyrk computes one triangle of C = alpha·A·Aᵀ + beta·C with A of n×k, or of alpha·Aᵀ·A + beta·C with A of k×n.
func (s Implementation) Ssyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32,
	c []float32, ldc int) {
	trans, ok := transposed(t)
	rows, cols := n, k
	if trans {
		rows, cols = k, n
	}
	if n <= leaf || !ok || alpha == 0 || !validUplo(ul) || !fits(a, rows, cols, lda) || !fits(c, n, n, ldc) {
		reference.Ssyrk(ul, t, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	p := halve(n)
	second := from(a, lda, p, trans)
	s.Ssyrk(ul, t, p, k, alpha, a, lda, beta, c, ldc)
	s.Ssyrk(ul, t, n-p, k, alpha, second, lda, beta, c[p*ldc+p:], ldc)
	if ul == blas.Upper {
		multiply(p, n-p, k, alpha, op(a, lda, trans), op(second, lda, !trans), beta, c[p:], ldc)
	} else {
		multiply(n-p, p, k, alpha, op(second, lda, trans), op(a, lda, !trans), beta, c[p*ldc:], ldc)
	}
}

// Ssyr2k computes one triangle of C = alpha·(A·Bᵀ + B·Aᵀ) + beta·C with A and B of n×k, or of alpha·(Aᵀ·B + Bᵀ·A) + beta·C
// with A and B of k×n.
func (s Implementation) Ssyr2k(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	trans, ok := transposed(t)
	rows, cols := n, k
	if trans {
		rows, cols = k, n
	}
	if n <= leaf || !ok || alpha == 0 || !validUplo(ul) ||
		!fits(a, rows, cols, lda) || !fits(b, rows, cols, ldb) || !fits(c, n, n, ldc) {
		reference.Ssyr2k(ul, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	p := halve(n)
	a2, b2 := from(a, lda, p, trans), from(b, ldb, p, trans)
	s.Ssyr2k(ul, t, p, k, alpha, a, lda, b, ldb, beta, c, ldc)
	s.Ssyr2k(ul, t, n-p, k, alpha, a2, lda, b2, ldb, beta, c[p*ldc+p:], ldc)
	if ul == blas.Upper {
		multiply(p, n-p, k, alpha, op(a, lda, trans), op(b2, ldb, !trans), beta, c[p:], ldc)
		multiply(p, n-p, k, alpha, op(b, ldb, trans), op(a2, lda, !trans), 1, c[p:], ldc)
	} else {
		multiply(n-p, p, k, alpha, op(a2, lda, trans), op(b, ldb, !trans), beta, c[p*ldc:], ldc)
		multiply(n-p, p, k, alpha, op(b2, ldb, trans), op(a, lda, !trans), 1, c[p*ldc:], ldc)
	}
}

// corner is the stored block off the diagonal of a matrix of n×n that is cut at p.
func corner(ul blas.Uplo, a []float32, lda, p int) []float32 {
	if ul == blas.Upper {
		return a[p:]
	}
	return a[p*lda:]
}

// Ssymm computes C = alpha·A·B + beta·C for side Left, alpha·B·A + beta·C for Right, with C of m×n and the symmetric A of
// which one triangle is given.
func (s Implementation) Ssymm(side blas.Side, ul blas.Uplo, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	size := n
	if side == blas.Left {
		size = m
	}
	if size <= leaf || side != blas.Left && side != blas.Right || alpha == 0 || !validUplo(ul) ||
		!fits(a, size, size, lda) || !fits(b, m, n, ldb) || !fits(c, m, n, ldc) {
		reference.Ssymm(side, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	p := halve(size)
	off, rest := corner(ul, a, lda, p), a[p*lda+p:]
	lower := ul == blas.Lower
	if side == blas.Left {
		b2, c2 := b[p*ldb:], c[p*ldc:]
		s.Ssymm(side, ul, p, n, alpha, a, lda, b, ldb, beta, c, ldc)
		s.Ssymm(side, ul, m-p, n, alpha, rest, lda, b2, ldb, beta, c2, ldc)
		multiply(p, n, m-p, alpha, op(off, lda, lower), op(b2, ldb, false), 1, c, ldc)
		multiply(m-p, n, p, alpha, op(off, lda, !lower), op(b, ldb, false), 1, c2, ldc)
		return
	}
	b2, c2 := b[p:], c[p:]
	s.Ssymm(side, ul, m, p, alpha, a, lda, b, ldb, beta, c, ldc)
	s.Ssymm(side, ul, m, n-p, alpha, rest, lda, b2, ldb, beta, c2, ldc)
	multiply(m, p, n-p, alpha, op(b2, ldb, false), op(off, lda, !lower), 1, c, ldc)
	multiply(m, n-p, p, alpha, op(b, ldb, false), op(off, lda, lower), 1, c2, ldc)
}

// triangular is what Strmm and Strsm have in common: a triangular A cut into A₁₁, A₂₂ and the block between them, and B cut
// likewise into B₁ and B₂, by rows for side Left, by columns for Right.
type triangular struct {
	side   blas.Side
	ul     blas.Uplo
	tA     blas.Transpose
	d      blas.Diag
	trans  bool
	a11    []float32
	a22    []float32
	off    []float32
	lda    int
	b1, b2 []float32
	ldb    int
	m1, m2 int // rows of B₁ and B₂
	n1, n2 int // columns
}

// cut returns false where there is nothing to cut: a small matrix, or arguments out of range.
func cut(side blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int,
	b []float32, ldb int) (t triangular, ok bool) {
	trans, ok := transposed(tA)
	size := n
	if side == blas.Left {
		size = m
	}
	if size <= leaf || side != blas.Left && side != blas.Right || !ok || alpha == 0 || !validUplo(ul) || !validDiag(d) ||
		!fits(a, size, size, lda) || !fits(b, m, n, ldb) {
		return t, false
	}
	p := halve(size)
	t = triangular{side: side, ul: ul, tA: tA, d: d, trans: trans, a11: a, a22: a[p*lda+p:], off: corner(ul, a, lda, p), lda: lda,
		b1: b, ldb: ldb, m1: m, m2: m, n1: n, n2: n}
	if side == blas.Left {
		t.b2, t.m1, t.m2 = b[p*ldb:], p, m-p
	} else {
		t.b2, t.n1, t.n2 = b[p:], p, n-p
	}
	return t, true
}

// upper says whether op(A) is an upper triangle.
func (t *triangular) upper() bool { return (t.ul == blas.Upper) != t.trans }

// first adds f times what B₂ contributes to B₁ through the block off the diagonal to beta·B₁.
func (t *triangular) first(f, beta float32) {
	if t.side == blas.Left {
		multiply(t.m1, t.n1, t.m2, f, op(t.off, t.lda, t.trans), op(t.b2, t.ldb, false), beta, t.b1, t.ldb)
	} else {
		multiply(t.m1, t.n1, t.n2, f, op(t.b2, t.ldb, false), op(t.off, t.lda, t.trans), beta, t.b1, t.ldb)
	}
}

// second adds f times what B₁ contributes to B₂ to beta·B₂.
func (t *triangular) second(f, beta float32) {
	if t.side == blas.Left {
		multiply(t.m2, t.n2, t.m1, f, op(t.off, t.lda, t.trans), op(t.b1, t.ldb, false), beta, t.b2, t.ldb)
	} else {
		multiply(t.m2, t.n2, t.n1, f, op(t.b1, t.ldb, false), op(t.off, t.lda, t.trans), beta, t.b2, t.ldb)
	}
}

// Strmm computes B = alpha·op(A)·B for side Left, alpha·B·op(A) for Right, with B of m×n and a triangular A.
func (s Implementation) Strmm(side blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32,
	a []float32, lda int, b []float32, ldb int) {
	t, ok := cut(side, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	if !ok {
		reference.Strmm(side, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	first := func() { s.Strmm(side, ul, tA, d, t.m1, t.n1, alpha, t.a11, lda, t.b1, ldb) }
	second := func() { s.Strmm(side, ul, tA, d, t.m2, t.n2, alpha, t.a22, lda, t.b2, ldb) }
	// The part that needs the other one goes first, while the other is as it was.
	if t.upper() == (side == blas.Left) {
		first()
		t.first(alpha, 1)
		second()
	} else {
		second()
		t.second(alpha, 1)
		first()
	}
}

// Strsm solves op(A)·X = alpha·B for side Left, X·op(A) = alpha·B for Right, with B of m×n and a triangular A; B becomes X.
func (s Implementation) Strsm(side blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32,
	a []float32, lda int, b []float32, ldb int) {
	t, ok := cut(side, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	if !ok {
		reference.Strsm(side, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	first := func(f float32) { s.Strsm(side, ul, tA, d, t.m1, t.n1, f, t.a11, lda, t.b1, ldb) }
	second := func(f float32) { s.Strsm(side, ul, tA, d, t.m2, t.n2, f, t.a22, lda, t.b2, ldb) }
	// The part that does not need the other one goes first.
	if t.upper() == (side == blas.Left) {
		second(alpha)
		t.first(-1, alpha)
		first(1)
	} else {
		first(alpha)
		t.second(-1, alpha)
		second(1)
	}
}
