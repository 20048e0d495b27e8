package simd

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// Eigen is the eigen-decomposition of a real symmetric matrix A of n×n elements: A = Vᵀ·diag(λ)·V, where the rows of V are
// orthonormal eigenvectors. The zero value is ready for [Eigen.Decompose]. It is not safe for concurrent use while it
// decomposes.
type Eigen struct {
	n       int
	values  []float32 // descending
	vectors []float32 // n rows
	tridiagonal
}

// asymmetry is how far apart two mirrored elements may be, relative to the largest element.
const asymmetry = 1e-5

// SymmetricEigen decomposes a symmetric matrix of n×n elements in row-major order; see [Eigen.Decompose].
func SymmetricEigen(a []float32, n int) (*Eigen, error) {
	e := &Eigen{}
	if err := e.Decompose(a, n); err != nil {
		return nil, err
	}
	return e, nil
}

// Decompose sets e to the decomposition of a, a symmetric matrix of n×n elements in row-major order, which does not change.
// It allocates nothing if e held a decomposition of at least that size before.
//
// If n does not fit a, the error wraps compute.ErrShape. NaN, infinities, and mirrored elements that differ by more than 1e-5
// of the largest absolute value give an error that wraps compute.ErrArgument; smaller differences are averaged. After an
// error e is empty.
//
// The matrix is made tridiagonal by Householder reflections and diagonal by the implicit QL method, all in float64: see Golub
// and Van Loan, "Matrix Computations", 4th ed., §8.3. Rounding errors are of the order of 2⁻⁵² of the largest value, so
// float32 results are accurate except for relatively tiny values.
func (e *Eigen) Decompose(a []float32, n int) error {
	e.n = 0
	if n < 0 || n > math.MaxInt16 || len(a) != n*n {
		return fmt.Errorf("simd.SymmetricEigen: %d elements for a matrix of %d×%d: %w", len(a), n, n, compute.ErrShape)
	}
	if err := checkSymmetric(a, n); err != nil {
		return fmt.Errorf("simd.SymmetricEigen: %w", err)
	}
	e.reset(n)
	for i := range n {
		row := e.a[i*n : (i+1)*n]
		for j := range row {
			row[j] = (float64(a[i*n+j]) + float64(a[j*n+i])) / 2
		}
	}
	e.reduce()
	e.unfold()
	if !e.iterate() {
		return fmt.Errorf("simd.SymmetricEigen: no convergence for this matrix of %d×%d: %w", n, n, compute.ErrUnsupported)
	}
	e.n = n
	e.values, e.vectors = engine.Grow(e.values, n), engine.Grow(e.vectors, n*n)
	for i := range e.order {
		e.order[i] = i
	}
	slices.SortStableFunc(e.order, func(i, j int) int {
		switch {
		case e.d[i] > e.d[j]:
			return -1
		case e.d[i] < e.d[j]:
			return 1
		}
		return 0
	})
	for i, from := range e.order {
		e.values[i] = float32(e.d[from])
		row := e.vectors[i*n : (i+1)*n]
		for j, v := range e.z[from*e.wide:][:n] {
			row[j] = float32(v)
		}
	}
	return nil
}

// checkSymmetric names the first element that is not finite, or else the mirrored pair that is furthest apart.
func checkSymmetric(a []float32, n int) error {
	var largest, worst float64
	var row, col int
	for i := range n {
		for j := range i + 1 {
			x, y := float64(a[i*n+j]), float64(a[j*n+i])
			if d := math.Abs(x - y); d > worst {
				worst, row, col = d, i, j
			}
			if m := max(math.Abs(x), math.Abs(y)); m <= math.MaxFloat32 {
				largest = max(largest, m)
				continue
			}
			if math.IsInf(x, 0) || x != x {
				return fmt.Errorf("element [%d, %d] is %v: %w", i, j, x, compute.ErrArgument)
			}
			return fmt.Errorf("element [%d, %d] is %v: %w", j, i, y, compute.ErrArgument)
		}
	}
	if worst > asymmetry*largest {
		return fmt.Errorf("not symmetric: elements [%d, %d] and [%d, %d] are %g apart, the largest is %g: %w",
			row, col, col, row, worst, largest, compute.ErrArgument)
	}
	return nil
}

// N returns the size of the matrix: the number of values, of vectors, and of elements of a vector.
func (e *Eigen) N() int { return e.n }

// Values returns the n eigenvalues in descending order, with multiplicity. One beyond the range of float32 is infinite. The
// slice is e's own and valid until the next decomposition.
func (e *Eigen) Values() []float32 { return e.values[:e.n] }

// Vectors returns the eigenvectors as the rows of an n×n matrix in the order of the values; their signs are arbitrary. The
// slice is e's own and valid until the next decomposition.
func (e *Eigen) Vectors() []float32 { return e.vectors[:e.n*e.n] }

// Vector returns the eigenvector of Values()[i], row i of Vectors.
func (e *Eigen) Vector(i int) []float32 { return e.Vectors()[i*e.n : (i+1)*e.n] }

// All iterates over the values with their vectors, the largest value first.
func (e *Eigen) All() iter.Seq2[float32, []float32] {
	return func(yield func(float32, []float32) bool) {
		for i, v := range e.Values() {
			if !yield(v, e.Vector(i)) {
				return
			}
		}
	}
}

// Reconstruct sets dst, of n×n elements, to Vᵀ·diag(λ)·V: the matrix that was decomposed, but for rounding. Like all
// functions on slices it panics if the length is wrong. It allocates nothing.
func (e *Eigen) Reconstruct(dst []float32) {
	n := e.n
	engine.MustLen("Eigen.Reconstruct", len(dst), n*n)
	for i := range n {
		sum := e.p[:n]
		clear(sum)
		for k, v := range e.Values() {
			row := e.Vector(k)
			f := float64(v) * float64(row[i])
			for j, x := range row {
				sum[j] += f * float64(x)
			}
		}
		for j, s := range sum {
			dst[i*n+j] = float32(s)
		}
	}
}
