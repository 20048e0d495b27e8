package simd_test

import (
	"errors"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/simd"
)

func ExampleAdd() {
	a, b := []float32{1, 2, 3}, []float32{10, 20, 30}
	sum := make([]float32, 3)
	simd.Add(sum, a, b)
	simd.Scale(sum, sum, 2) // in place
	fmt.Println(sum)
	// Output: [22 44 66]
}

// Lengths that do not agree are a mistake of the program, which panics with an error.
func ExampleAdd_lengths() {
	defer func() {
		err := recover().(error)
		fmt.Println(errors.Is(err, compute.ErrShape), err)
	}()
	simd.Add(make([]float32, 3), make([]float32, 3), make([]float32, 4))
	// Output: true simd.Add: 4 elements where 3 belong: shape mismatch
}

func ExampleDot() {
	fmt.Println(simd.Dot([]float32{1, 2, 3}, []float32{4, 5, 6}))
	// Output: 32
}

// A matrix in half the memory.
func ExampleMatVecHalf() {
	weights, y := make([]compute.F16, 4), make([]float32, 2)
	simd.Narrow(weights, []float32{1, 2, 3, 4})
	simd.MatVecHalf(y, weights, []float32{10, 1}, 2, 2)
	fmt.Println(y)
	// Output: [12 34]
}

func ExampleSoftmax() {
	x := []float32{1, 2, 3}
	simd.Softmax(x, x)
	fmt.Printf("%.3f, the largest is number %d\n", x, simd.ArgMax(x))
	// Output: [0.090 0.245 0.665], the largest is number 2
}

func ExampleLayerNorm() {
	x := []float32{1, 2, 3, 4}
	gamma, beta := []float32{1, 1, 1, 1}, []float32{0, 0, 0, 0}
	simd.LayerNorm(x, x, gamma, beta, 1e-5)
	fmt.Printf("%.3f\n", x)
	// Output: [-1.342 -0.447 0.447 1.342]
}

func ExampleCorrelation() {
	height := []float32{1.60, 1.70, 1.80, 1.90}
	weight := []float32{55, 70, 74, 90}
	fmt.Printf("mean %.2f, σ %.3f, correlation %.3f\n", simd.Mean(height), simd.StdDev(height), simd.Correlation(height, weight))
	// Output: mean 1.75, σ 0.112, correlation 0.978
}

// A server that handles many requests at a time may give each of them one thread.
func ExampleSetThreads() {
	defer simd.SetThreads(simd.SetThreads(1))
	x := make([]float32, 1_000_000)
	simd.Exp(x, x)
	fmt.Println(simd.Sum(x))
	// Output: 1e+06
}

// Functions on slices need no device.
func Example_slices() {
	const m, k, n = 1, 2, 2
	logits, query, key := []float32{1, 1}, []float32{1, 2}, []float32{3, 4}
	a, b, covariance := []float32{1, 2}, []float32{1, 0, 0, 1}, []float32{2, 0, 0, 1}
	p, c := make([]float32, 2), make([]float32, m*n)

	simd.Softmax(p, logits)
	score := simd.Dot(query, key)
	simd.MatMul(c, a, b, m, k, n)
	eigen, err := simd.SymmetricEigen(covariance, n)

	fmt.Println(p, score, c, eigen.Values(), err)
	// Output: [0.5 0.5] 11 [1 2] [2 1] <nil>
}
