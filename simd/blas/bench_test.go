package blas_test

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	wavelane "github.com/wavelane/wavelane/simd/blas"
)

// BenchmarkLevel3 compares with gonum what a general product makes fast; GFLOPS counts the operations that are needed.
func BenchmarkLevel3(b *testing.B) {
	const n = 512
	matrix := func() []float32 {
		x := make([]float32, n*n)
		for i := range x {
			x[i] = float32(i%17)/17 - 0.5
			if i/n == i%n {
				x[i] = n
			}
		}
		return x
	}
	x, y, z := matrix(), matrix(), matrix()
	for name, routine := range map[string]struct {
		flops float64
		f     func(i blas.Float32)
	}{
		"gemm":  {2, func(i blas.Float32) { i.Sgemm(blas.NoTrans, blas.Trans, n, n, n, 1, x, n, y, n, 0, z, n) }},
		"symm":  {2, func(i blas.Float32) { i.Ssymm(blas.Left, blas.Upper, n, n, 1, x, n, y, n, 0, z, n) }},
		"syrk":  {1, func(i blas.Float32) { i.Ssyrk(blas.Lower, blas.NoTrans, n, n, 1, x, n, 0, z, n) }},
		"syr2k": {2, func(i blas.Float32) { i.Ssyr2k(blas.Lower, blas.NoTrans, n, n, 1, x, n, y, n, 0, z, n) }},
		"trmm": {1, func(i blas.Float32) {
			i.Strmm(blas.Left, blas.Upper, blas.NoTrans, blas.NonUnit, n, n, 1.0/n, x, n, y, n)
		}},
		"trsm": {1, func(i blas.Float32) { i.Strsm(blas.Left, blas.Upper, blas.NoTrans, blas.NonUnit, n, n, n, x, n, y, n) }},
	} {
		for who, i := range map[string]blas.Float32{"gonum": gonum.Implementation{}, "wavelane": wavelane.Implementation{}} {
			b.Run(fmt.Sprintf("%s/%s", name, who), func(b *testing.B) {
				for b.Loop() {
					routine.f(i)
				}
				b.ReportMetric(routine.flops*n*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
			})
		}
	}
}
