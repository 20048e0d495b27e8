//go:build !js

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/npy"
	"github.com/wavelane/wavelane/onnx"
)

// decoded are the elements of an array.
func decoded[E onnx.Element](a *npy.Array) (onnx.Tensor, error) {
	data := make([]E, a.Len())
	if err := binary.Read(bytes.NewReader(a.Data), binary.LittleEndian, data); err != nil {
		return onnx.Tensor{}, err
	}
	t := onnx.Of(data)
	t.Shape = slices.Clone(a.Shape)
	return t, nil
}

// tensorOf is an array of a .npy file as a tensor.
func tensorOf(a *npy.Array) (onnx.Tensor, error) {
	switch fmt.Sprintf("%c%d", a.Kind, a.Size) {
	case "f4":
		return decoded[float32](a)
	case "f8":
		return decoded[float64](a)
	case "f2":
		return decoded[compute.F16](a)
	case "i8":
		return decoded[int64](a)
	case "i4":
		return decoded[int32](a)
	case "i2":
		return decoded[int16](a)
	case "i1":
		return decoded[int8](a)
	case "u8":
		return decoded[uint64](a)
	case "u4":
		return decoded[uint32](a)
	case "u2":
		return decoded[uint16](a)
	case "u1":
		return decoded[uint8](a)
	case "b1":
		return decoded[bool](a)
	}
	return onnx.Tensor{}, fmt.Errorf("elements of type %c%d: %w", a.Kind, a.Size, compute.ErrUnsupported)
}

// arrayOf is a tensor as an array of a .npy file.
func arrayOf(t onnx.Tensor) (*npy.Array, error) {
	kinds := map[onnx.ElementType]npy.Array{onnx.Float32: {Kind: 'f', Size: 4}, onnx.Float64: {Kind: 'f', Size: 8}, onnx.Float16: {Kind: 'f', Size: 2},
		onnx.Int64: {Kind: 'i', Size: 8}, onnx.Int32: {Kind: 'i', Size: 4}, onnx.Int16: {Kind: 'i', Size: 2}, onnx.Int8: {Kind: 'i', Size: 1},
		onnx.Uint64: {Kind: 'u', Size: 8}, onnx.Uint32: {Kind: 'u', Size: 4}, onnx.Uint16: {Kind: 'u', Size: 2}, onnx.Uint8: {Kind: 'u', Size: 1},
		onnx.Bool: {Kind: 'b', Size: 1}}
	a, ok := kinds[t.Type]
	if !ok {
		return nil, fmt.Errorf(".npy files have no elements of type %v: %w", t.Type, compute.ErrUnsupported)
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, t.Data); err != nil {
		return nil, err
	}
	a.Shape, a.Data = t.Shape, b.Bytes()
	return &a, nil
}

func widened[E float32 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](data []E) []float64 {
	out := make([]float64, len(data))
	for i, x := range data {
		out[i] = float64(x)
	}
	return out
}

// numbers are the elements as float64; none of texts.
func numbers(t onnx.Tensor) []float64 {
	switch data := t.Data.(type) {
	case []float32:
		return widened(data)
	case []float64:
		return data
	case []int8:
		return widened(data)
	case []int16:
		return widened(data)
	case []int32:
		return widened(data)
	case []int64:
		return widened(data)
	case []uint8:
		return widened(data)
	case []uint16:
		return widened(data)
	case []uint32:
		return widened(data)
	case []uint64:
		return widened(data)
	case []compute.F16:
		out := make([]float64, len(data))
		for i, x := range data {
			out[i] = float64(x.Float32())
		}
		return out
	case []compute.BF16:
		out := make([]float64, len(data))
		for i, x := range data {
			out[i] = float64(x.Float32())
		}
		return out
	case []bool:
		out := make([]float64, len(data))
		for i, x := range data {
			if x {
				out[i] = 1
			}
		}
		return out
	}
	return nil
}
