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
	runMultiplyOne
	operations
)

// operationNames are Go constants.
var operationNames = [operations]string{"opBlock", "opTile", "opPack", "opTranspose", "opTaps",
	"opDequantize", "opColumns", "opMultiply", "opMultiply8", "opMultiplyOne"}

var types = []signature{
	typeRun:     {nil, []byte{i32}},
	typeLoad:    {[]byte{i32, i32}, []byte{v128}},
	typeStore:   {[]byte{i32, i32, v128}, nil},
	typePacked:  {[]byte{i32, i32, i32, i32, i32, i32, f32, f32}, nil},
	typeStrided: {[]byte{i32, i32, i32, i32, i32, i32, i32, i32, i32, f32, f32}, nil},
	typeBlocks:  {[]byte{i32, i32, i32, i32, i32, i32}, nil},
	typeWeigh:   {[]byte{i32, i32, i32, i32, i32}, []byte{f32}},
	typeExpand:  {[]byte{i32, i32, i32}, nil},
	typeDots:    {[]byte{i32, i32, i32, i32}, nil},
}

// build makes the module of some kernels, for which operation i is kernel i, and the one for engines with relaxed SIMD that adds
// to it.
func build(kernels []*ir.Kernel) (plain, relaxed []byte, err error) {
	m := &module{
		types:     types,
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
			return nil, nil, err
		}
		table(f)
	}
	packed := len(kernels) + operations
	strided := packed + tileRows*tileVectors
	floats := strided + tileRows*tileVectors
	weights := floats + tileRows
	m.functions[funcApply] = applyFunction(weights)
	table(blockFunction(packed), tileFunction(strided), packFunction(), transposeFunction(), tapsFunction())
	table(dequantizeFunction(weights), columnsFunction(weights), multiplyFunction(weights, floats, false), multiplyFunction(weights, floats, true))
	table(oneRowFunction(len(m.functions) - 1))
	table(eachTile(packedTile)...)
	table(eachTile(stridedTile)...)
	for rows := 1; rows <= tileRows; rows++ {
		table(floatsFunction(rows))
	}
	for kind := range kindBytes {
		m.blocks(kind)
	}
	m.run, m.more = len(m.functions), formats*(kinds-kindBytes)
	m.functions = append(m.functions, runFunction())
	more := &module{types: types, from: weights + formats*kindBytes}
	for kind := kindBytes; kind < kinds; kind++ {
		more.blocks(kind)
	}
	return m.encode(), more.encode(), nil
}
