// Package wasm translates kernels to one WebAssembly module with SIMD128, for GOOS=js.
package wasm

import (
	"github.com/wavelane/wavelane/simd/internal/asmgen/ir"
)

// build makes the module of some kernels. Operation i is kernel i; then comes that of matrix products.
func build(kernels []*ir.Kernel) ([]byte, error) {
	m := &module{
		types: []signature{
			typeRun:   {nil, []byte{i32}},
			typeLoad:  {[]byte{i32, i32}, []byte{v128}},
			typeStore: {[]byte{i32, i32, v128}, nil},
			typeTile:  {[]byte{i32, i32, i32, i32, i32, i32, f32, f32}, nil},
		},
		functions: []function{funcLoad: loadFunction(), funcStore: storeFunction()},
	}
	add := func(f function) {
		m.table = append(m.table, len(m.functions))
		m.functions = append(m.functions, f)
	}
	for _, k := range kernels {
		f, err := kernelFunction(k)
		if err != nil {
			return nil, err
		}
		add(f)
	}
	add(blockFunction(len(kernels) + 1))
	for rows := 1; rows <= tileRows; rows++ {
		for vectors := 1; vectors <= tileVectors; vectors++ {
			add(tileFunction(rows, vectors))
		}
	}
	m.run = len(m.functions)
	m.functions = append(m.functions, runFunction())
	return m.encode(), nil
}
