// Package wasm translates kernels to one WebAssembly module with SIMD128, for GOOS=js.
package wasm

import (
	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// Operations that are not kernels, after those.
const (
	runBlock = iota
	runTile
	runPack
	runTranspose
	runTaps
	runDequantize
	runColumns
	runMultiply
	runMultiply8
	operations
)

// operationNames are Go constants.
var operationNames = [operations]string{"opBlock", "opTile", "opPack", "opTranspose", "opTaps",
	"opDequantize", "opColumns", "opMultiply", "opMultiply8"}

// build makes the module of some kernels. Operation i is kernel i.
func build(kernels []*ir.Kernel) ([]byte, error) {
	m := &module{
		types: []signature{
			typeRun:     {nil, []byte{i32}},
			typeLoad:    {[]byte{i32, i32}, []byte{v128}},
			typeStore:   {[]byte{i32, i32, v128}, nil},
			typePacked:  {[]byte{i32, i32, i32, i32, i32, i32, f32, f32}, nil},
			typeStrided: {[]byte{i32, i32, i32, i32, i32, i32, i32, i32, i32, f32, f32}, nil},
			typeBlocks:  {[]byte{i32, i32, i32, i32, i32, i32}, []byte{f32}},
			typeWeigh:   {[]byte{i32, i32, i32, i32, i32}, []byte{f32}},
			typeExpand:  {[]byte{i32, i32, i32}, nil},
			typeDots:    {[]byte{i32, i32, i32, i32}, nil},
		},
		functions: []function{funcLoad: loadFunction(), funcStore: storeFunction(), funcApply: {}, funcWeigh: weighFunction()},
	}
	table := func(list ...function) {
		for _, f := range list {
			m.table = append(m.table, len(m.functions))
			m.functions = append(m.functions, f)
		}
	}
	for _, k := range kernels {
		f, err := kernelFunction(k)
		if err != nil {
			return nil, err
		}
		table(f)
	}
	packed := len(kernels) + operations
	strided := packed + tileRows*tileVectors
	weights := strided + tileRows*tileVectors
	m.functions[funcApply] = applyFunction(weights)
	table(blockFunction(packed), tileFunction(strided), packFunction(), transposeFunction(), tapsFunction())
	table(dequantizeFunction(weights), columnsFunction(weights), multiplyFunction(weights, false), multiplyFunction(weights, true))
	table(eachTile(packedTile)...)
	table(eachTile(stridedTile)...)
	m.blocks()
	m.run = len(m.functions)
	m.functions = append(m.functions, runFunction())
	return m.encode(), nil
}
