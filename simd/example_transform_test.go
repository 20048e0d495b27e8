package simd_test

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/simd"
)

func ExampleTranspose() {
	x := []float32{
		1, 2, 3,
		4, 5, 6,
	}
	dst := make([]float32, 6)
	simd.Transpose(dst, x, 2, 3)
	fmt.Println(dst)
	// Output: [1 4 2 5 3 6]
}

func ExampleConv2D() {
	image := []float32{
		0, 0, 1, 1,
		0, 0, 1, 1,
		0, 0, 1, 1,
	}
	edges := []float32{-1, 1}
	x, w := [4]int{1, 1, 3, 4}, [4]int{1, 1, 1, 2}
	shape, err := simd.Conv2DShape(x, w, compute.Conv2DOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := make([]float32, shape[2]*shape[3])
	simd.Conv2D(dst, image, edges, nil, x, w, compute.Conv2DOptions{})
	fmt.Println(shape, dst)
	// Output: [1 1 3 3] [0 1 0 0 1 0 0 1 0]
}

func ExampleMaxPool2D() {
	x := []float32{
		1, 2, 5, 0,
		3, 4, 1, 7,
	}
	dst := make([]float32, 2)
	simd.MaxPool2D(dst, x, 1, 2, 4, compute.PoolOptions{Size: [2]int{2, 2}})
	fmt.Println(dst)
	// Output: [4 7]
}

func ExampleTopK() {
	logits := []float32{0.1, 2.5, -1, 2.5, 3}
	values, indices := make([]float32, 3), make([]int32, 3)
	simd.TopK(values, indices, logits)
	fmt.Println(values, indices)
	// Output: [3 2.5 2.5] [4 1 3]
}

func ExampleEmbedding() {
	table := []float32{
		0, 0,
		1, 10,
		2, 20,
	}
	ids := []int32{2, 1, 2}
	dst := make([]float32, 6)
	simd.Embedding(dst, table, ids, 2)
	fmt.Println(dst, simd.UniqueIDs(nil, ids))
	// Output: [2 20 1 10 2 20] [1 2]
}

func ExampleSymmetricEigen() {
	e, err := simd.SymmetricEigen([]float32{
		2, 1,
		1, 2,
	}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for value, vector := range e.All() {
		fmt.Printf("%.3f %.3f\n", value, vector[0]*vector[1])
	}
	// Output:
	// 3.000 0.500
	// 1.000 -0.500
}

func ExampleHashKeys() {
	keys := []string{"user:1", "user:2", "user:3"}
	hashes := make([]uint64, len(keys))
	simd.HashKeys(hashes, keys)
	for i, h := range hashes {
		fmt.Println(keys[i], "goes to partition", h%4)
	}
	// Output:
	// user:1 goes to partition 3
	// user:2 goes to partition 2
	// user:3 goes to partition 1
}
