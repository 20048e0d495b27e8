package blas

import (
	"gonum.org/v1/gonum/blas"

	"github.com/wavelane/wavelane/simd"
)

// Sgemv computes y = alpha·op(A)·x + beta·y for A of m×n.
func (Implementation) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32,
	y []float32, incY int) {
	trans, ok := transposed(tA)
	rows, cols, p, q := m, n, lda, 1
	if trans {
		rows, cols, p, q = n, m, 1, lda
	}
	u, okX := plain(cols, x, incX)
	v, okY := plain(rows, y, incY)
	if !ok || !okX || !okY || !apart(u, v) || alpha == 0 || !fits(a, m, n, lda) {
		reference.Sgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	multiply(rows, 1, cols, alpha, matrix{a, p, q}, matrix{u, 1, 1}, beta, v, 1)
}

// Sger adds alpha·x·yᵀ to A of m×n. Increments other than 1 are done here too: gonum v0.17.0 reads before its slices where
// they are negative.
func (Implementation) Sger(m, n int, alpha float32, x []float32, incX int, y []float32, incY int, a []float32, lda int) {
	if alpha == 0 || !fits(a, m, n, lda) || !holds(m, x, incX) || !holds(n, y, incY) { // nothing to do, or a panic
		reference.Sger(m, n, alpha, x, incX, y, incY, a, lda)
		return
	}
	plain := incY == 1 && apart(y[:n], a)
	for i := range m {
		row, f := a[i*lda:][:n], alpha*x[place(i, m, incX)]
		if plain {
			simd.Axpy(row, y[:n], f)
			continue
		}
		for j := range row {
			row[j] += f * y[place(j, n, incY)]
		}
	}
}

// triangle returns the elements of row i right of the diagonal, or left of it in a lower triangle, and where they begin.
func triangle(ul blas.Uplo, n int, a []float32, lda, i int) (part []float32, from int) {
	if ul == blas.Upper {
		return a[i*lda+i+1 : i*lda+n], i + 1
	}
	return a[i*lda : i*lda+i], 0
}

func validUplo(ul blas.Uplo) bool { return ul == blas.Upper || ul == blas.Lower }
func validDiag(d blas.Diag) bool  { return d == blas.Unit || d == blas.NonUnit }

// Ssymv computes y = alpha·A·x + beta·y for the symmetric A of n×n of which one triangle is given.
func (i Implementation) Ssymv(ul blas.Uplo, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32,
	y []float32, incY int) {
	u, okX := plain(n, x, incX)
	v, okY := plain(n, y, incY)
	if !okX || !okY || !apart(u, v) || alpha == 0 || !validUplo(ul) || !fits(a, n, n, lda) {
		reference.Ssymv(ul, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	if beta != 1 {
		i.Sscal(n, beta, v, 1)
	}
	for i, xi := range u {
		part, from := triangle(ul, n, a, lda, i)
		v[i] += alpha * (a[i*lda+i]*xi + simd.Dot(part, u[from:][:len(part)]))
		to := v[from:][:len(part)]
		simd.Axpy(to, part, alpha*xi)
	}
}

// Ssyr adds alpha·x·xᵀ to one triangle of A of n×n.
func (Implementation) Ssyr(ul blas.Uplo, n int, alpha float32, x []float32, incX int, a []float32, lda int) {
	u, ok := plain(n, x, incX)
	if !ok || alpha == 0 || !validUplo(ul) || !fits(a, n, n, lda) || !apart(u, a) {
		reference.Ssyr(ul, n, alpha, x, incX, a, lda)
		return
	}
	for i, xi := range u {
		part, from := triangle(ul, n, a, lda, i)
		a[i*lda+i] += alpha * xi * xi
		simd.Axpy(part, u[from:][:len(part)], alpha*xi)
	}
}

// Ssyr2 adds alpha·(x·yᵀ + y·xᵀ) to one triangle of A of n×n.
func (Implementation) Ssyr2(ul blas.Uplo, n int, alpha float32, x []float32, incX int, y []float32, incY int, a []float32, lda int) {
	u, okX := plain(n, x, incX)
	v, okY := plain(n, y, incY)
	if !okX || !okY || alpha == 0 || !validUplo(ul) || !fits(a, n, n, lda) || !apart(u, a) || !apart(v, a) {
		reference.Ssyr2(ul, n, alpha, x, incX, y, incY, a, lda)
		return
	}
	for i := range n {
		part, from := triangle(ul, n, a, lda, i)
		a[i*lda+i] += 2 * alpha * u[i] * v[i]
		simd.Axpy(part, v[from:][:len(part)], alpha*u[i])
		simd.Axpy(part, u[from:][:len(part)], alpha*v[i])
	}
}

// Strmv computes x = op(A)·x for a triangular A of n×n.
func (Implementation) Strmv(ul blas.Uplo, tA blas.Transpose, d blas.Diag, n int, a []float32, lda int, x []float32, incX int) {
	trans, ok := transposed(tA)
	u, okX := plain(n, x, incX)
	if !ok || !okX || !validUplo(ul) || !validDiag(d) || !fits(a, n, n, lda) || !apart(u, a) {
		reference.Strmv(ul, tA, d, n, a, lda, x, incX)
		return
	}
	// Each step must read elements of x that no earlier step has changed.
	forward := (ul == blas.Upper) != trans
	for s := range n {
		i := s
		if !forward {
			i = n - 1 - s
		}
		part, from := triangle(ul, n, a, lda, i)
		rest := u[from:][:len(part)]
		diagonal := u[i]
		if d == blas.NonUnit {
			diagonal *= a[i*lda+i]
		}
		if trans {
			simd.Axpy(rest, part, u[i])
			u[i] = diagonal
		} else {
			u[i] = diagonal + simd.Dot(part, rest)
		}
	}
}

// Strsv solves op(A)·x = b for a triangular A of n×n; x holds b before and the solution afterwards.
func (Implementation) Strsv(ul blas.Uplo, tA blas.Transpose, d blas.Diag, n int, a []float32, lda int, x []float32, incX int) {
	trans, ok := transposed(tA)
	u, okX := plain(n, x, incX)
	if !ok || !okX || !validUplo(ul) || !validDiag(d) || !fits(a, n, n, lda) || !apart(u, a) {
		reference.Strsv(ul, tA, d, n, a, lda, x, incX)
		return
	}
	forward := (ul == blas.Lower) != trans
	for s := range n {
		i := s
		if !forward {
			i = n - 1 - s
		}
		part, from := triangle(ul, n, a, lda, i)
		rest := u[from:][:len(part)]
		if !trans {
			u[i] -= simd.Dot(part, rest)
		}
		if d == blas.NonUnit {
			u[i] /= a[i*lda+i]
		}
		if trans {
			simd.Axpy(rest, part, -u[i])
		}
	}
}
