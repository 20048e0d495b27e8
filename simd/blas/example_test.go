package blas_test

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	wavelane "github.com/wavelane/wavelane/simd/blas"
)

// A program that uses gonum's blas32 gets wavelane's kernels by one line.
func Example() {
	blas32.Use(wavelane.Implementation{})

	a := blas32.General{Rows: 2, Cols: 3, Stride: 3, Data: []float32{1, 2, 3, 4, 5, 6}}
	b := blas32.General{Rows: 3, Cols: 1, Stride: 1, Data: []float32{1, 0, -1}}
	c := blas32.General{Rows: 2, Cols: 1, Stride: 1, Data: make([]float32, 2)}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c)
	fmt.Println(c.Data)
	// Output: [-2 -2]
}
