package onnx_test

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Messages of the file format, written by hand: just what tests need.

type message []byte

func (m message) bytes(field protowire.Number, data []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), data)
}

func (m message) text(field protowire.Number, s string) message { return m.bytes(field, []byte(s)) }

func (m message) int(field protowire.Number, x int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(x))
}

func intAttribute(name string, x int64) message { return message{}.text(1, name).int(3, x).int(20, 2) }

func graphAttribute(name string, g message) message {
	return message{}.text(1, name).bytes(6, g).int(20, 5)
}

// node applies an operator; in and out are lists of names.
func node(name, op string, in, out []string, attributes ...message) message {
	var m message
	for _, n := range in {
		m = m.text(1, n)
	}
	for _, n := range out {
		m = m.text(2, n)
	}
	m = m.text(3, name).text(4, op)
	for _, a := range attributes {
		m = m.bytes(5, a)
	}
	return m
}

func floats(name string, data []float32, dims ...int64) message {
	var m message
	for _, d := range dims {
		m = m.int(1, d)
	}
	raw := make([]byte, 4*len(data))
	for i, x := range data {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return m.int(2, 1).text(8, name).bytes(9, raw)
}

func ints(name string, data []int64, dims ...int64) message {
	var m message
	for _, d := range dims {
		m = m.int(1, d)
	}
	for _, x := range data {
		m = m.int(7, x)
	}
	return m.int(2, 7).text(8, name)
}

// value is a name with a tensor type; dimensions of less than 0 have a name.
func value(name string, elem int64, dims ...int64) message {
	var shape message
	for _, d := range dims {
		if d < 0 {
			shape = shape.bytes(1, message{}.text(2, "n"))
		} else {
			shape = shape.bytes(1, message{}.int(1, d))
		}
	}
	return message{}.text(1, name).bytes(2, message{}.bytes(1, message{}.int(1, elem).bytes(2, shape)))
}

// graph is nodes, weights, inputs and outputs.
type graph struct {
	nodes, weights, inputs, outputs []message
}

func (g graph) message() message {
	var m message
	for _, n := range g.nodes {
		m = m.bytes(1, n)
	}
	m = m.text(2, "test")
	for _, w := range g.weights {
		m = m.bytes(5, w)
	}
	for _, v := range g.inputs {
		m = m.bytes(11, v)
	}
	for _, v := range g.outputs {
		m = m.bytes(12, v)
	}
	return m
}

// model is a file of operator set 17.
func model(g graph) []byte {
	return message{}.int(1, 8).text(2, "wavelane's tests").bytes(7, g.message()).bytes(8, message{}.text(1, "").int(2, 17))
}

const (
	float32Type = 1
	int64Type   = 7
	boolType    = 9
)

// perceptron is y = relu(x·w + b) with x of any number of rows.
func perceptron() graph {
	return graph{
		nodes: []message{node("product", "MatMul", []string{"x", "w"}, []string{"p"}), node("sum", "Add", []string{"p", "b"}, []string{"s"}),
			node("activation", "Relu", []string{"s"}, []string{"y"})},
		weights: []message{floats("w", []float32{1, 2, 3, 4, 5, 6}, 3, 2), floats("b", []float32{-10, 1}, 2)},
		inputs:  []message{value("x", float32Type, -1, 3)},
		outputs: []message{value("y", float32Type, -1, 2)},
	}
}
