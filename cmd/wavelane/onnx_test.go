//go:build !js

package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wavelane/wavelane/internal/npy"
)

// message is one of the file format.
type message []byte

func (m message) bytes(field protowire.Number, data []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), data)
}

func (m message) text(field protowire.Number, s string) message { return m.bytes(field, []byte(s)) }

func (m message) int(field protowire.Number, x uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), x)
}

// onnxModel is a file with y = relu(x) by an operator of that name, of any number of rows of two.
func onnxModel(t *testing.T, operator string) string {
	value := func(name string) message {
		shape := message{}.bytes(1, message{}.text(2, "rows")).bytes(1, message{}.int(1, 2))
		return message{}.text(1, name).bytes(2, message{}.bytes(1, message{}.int(1, 1).bytes(2, shape)))
	}
	node := message{}.text(1, "x").text(2, "y").text(3, "only").text(4, operator)
	graph := message{}.bytes(1, node).text(2, "g").bytes(11, value("x")).bytes(12, value("y"))
	file := filepath.Join(t.TempDir(), "model.onnx")
	require.NoError(t, os.WriteFile(file, message{}.int(1, 8).text(2, "the test").bytes(7, graph).bytes(8, message{}.int(2, 17)), 0o600))
	return file
}

func TestONNX(t *testing.T) {
	file := onnxModel(t, "Relu")
	status, out, errOut := call(t.Context(), "onnx", file)
	require.Zero(t, status, errOut)
	for _, part := range []string{"the test", "ai.onnx 17", "rows × 2", "float32", "Relu"} {
		require.Contains(t, out, part)
	}
	status, out, errOut = call(t.Context(), "onnx", file, "--json")
	require.Zero(t, status, errOut)
	var l onnxListing
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	require.Equal(t, map[string]int{"Relu": 1}, l.Operators)
	require.Equal(t, []string{"rows", "2"}, l.Inputs[0].Shape)

	folder := t.TempDir()
	data := []byte{}
	for _, x := range []float32{-1, 2, 3, -4} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	x := filepath.Join(folder, "x.npy")
	require.NoError(t, os.WriteFile(x, (&npy.Array{Kind: 'f', Size: 4, Shape: []int{2, 2}, Data: data}).Encode(), 0o600))
	status, out, errOut = call(t.Context(), "onnx", file, "--run", "--device", "cpu", "--input", "x="+x, "--out", folder, "--plan", "--profile", "--repeat", "3")
	require.Zero(t, status, errOut)
	for _, part := range []string{"from 0 to 3", "device:", "relu", "median of 3"} {
		require.Contains(t, out, part)
	}
	y, err := npy.ReadFile(filepath.Join(folder, "y.npy"))
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, y.Shape)
	require.Equal(t, float32(2), math.Float32frombits(binary.LittleEndian.Uint32(y.Data[4:])))

	status, out, errOut = call(t.Context(), "onnx", file, "--compare", "cpu,cpu", "--shape", "x=3,2")
	require.Zero(t, status, errOut)
	require.Contains(t, out, "largest difference 0")
}

func TestONNXMistakes(t *testing.T) {
	file, other := onnxModel(t, "Relu"), onnxModel(t, "Nonsense")
	for _, c := range []struct {
		status  int
		args    string
		message string
	}{
		{2, file + " --run", "--shape x"},
		{2, file + " --run --shape x", "--shape x"},
		{2, file + " --run --shape x=1,z", "x=1,z"},
		{2, file + " --run --input x", "--input x"},
		{2, file + " --repeat 0", "--repeat"},
		{2, file + " --compare cpu --shape x=1,2", "--compare"},
		{1, file + " --run --input x=none.npy", "none.npy"},
		{1, file + " --run --device cpu --shape x=1,3", "shape"},
		{1, "none.onnx", "none.onnx"},
		{1, other + " --run --device cpu --shape x=1,2", `node "only" (Nonsense)`},
	} {
		status, _, errOut := call(t.Context(), append([]string{"onnx"}, strings.Fields(c.args)...)...)
		require.Equal(t, c.status, status, "%s: %s", c.args, errOut)
		require.Contains(t, errOut, c.message, c.args)
	}
	status, out, _ := call(t.Context(), "onnx", other)
	require.Zero(t, status)
	require.Contains(t, out, `node "only" (Nonsense): no such operator`)
}
