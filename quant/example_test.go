package quant_test

import (
	"fmt"

	"github.com/wavelane/wavelane/quant"
)

func ExampleQuantize() {
	x := make([]float32, 256)
	for i := range x {
		x[i] = float32(i)/128 - 1
	}
	size, err := quant.Q4_K.RowSize(len(x))
	if err != nil {
		fmt.Println(err)
		return
	}
	blocks := make([]byte, size)
	if err := quant.Quantize(blocks, quant.Q4_K, x); err != nil {
		fmt.Println(err)
		return
	}
	y := make([]float32, len(x))
	if err := quant.Dequantize(y, quant.Q4_K, blocks); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d values in %d bytes: %.3f became %.3f\n", len(x), size, x[200], y[200])
	// Output: 256 values in 144 bytes: 0.562 became 0.541
}

func ExampleQuantizeMatrix() {
	const out, in = 4, 64
	weights := make([]float32, out*in)
	for i := range weights {
		weights[i] = float32(i%7) - 3
	}
	m, err := quant.QuantizeMatrix(quant.Q8_0, out, in, weights, quant.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d rows of %d bytes, %.1f bits per weight\n", m.Rows, m.RowSize(), m.Type.BitsPerWeight())
	// Output: 4 rows of 68 bytes, 8.5 bits per weight
}

func ExampleParseType() {
	t, err := quant.ParseType("q6_k")
	fmt.Println(t, t.BlockLen(), t.BlockSize(), err)
	// Output: Q6_K 256 210 <nil>
}
