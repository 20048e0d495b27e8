//go:build !js

package main

import (
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
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
func onnxModel(t *testing.T, operator string) string { return onnxModelOf(t, operator, 1, -1, 2) }

// onnxModelOf is such a file for elements of a type and a shape, whose dimension of less than 0 is called rows.
func onnxModelOf(t *testing.T, operator string, elem uint64, dims ...int) string {
	value := func(name string) message {
		var shape message
		for _, d := range dims {
			if d < 0 {
				shape = shape.bytes(1, message{}.text(2, "rows"))
			} else {
				shape = shape.bytes(1, message{}.int(1, uint64(d)))
			}
		}
		return message{}.text(1, name).bytes(2, message{}.bytes(1, message{}.int(1, elem).bytes(2, shape)))
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
	for _, part := range []string{"from 0 to 3", "device:", "relu", "median of 3", "GFLOP and 3.2e-05 MB of operands and results in 1 steps"} {
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

// Pictures come in any order of channels and pixels, as bytes or floats, in the model's size or their own.
func TestONNXPictures(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	for i := range 6 {
		img.SetNRGBA(i%3, i/3, color.NRGBA{R: uint8(10 * i), G: 100, B: 200, A: 255})
	}
	picture := filepath.Join(t.TempDir(), "p.png")
	f, err := os.Create(picture)
	require.NoError(t, err)
	require.NoError(t, png.Encode(f, img))
	require.NoError(t, f.Close())

	const float, uint8s, int64s = 1, 2, 7
	result := func(elem uint64, dims []int, more ...string) (*npy.Array, string) {
		folder := t.TempDir()
		args := append([]string{"onnx", onnxModelOf(t, "Identity", elem, dims...), "--device", "cpu", "--input", "x=" + picture, "--out", folder}, more...)
		status, _, errOut := call(t.Context(), args...)
		if status != 0 {
			return nil, errOut
		}
		a, err := npy.ReadFile(filepath.Join(folder, "y.npy"))
		require.NoError(t, err)
		return a, ""
	}
	at := func(a *npy.Array, i int) float32 {
		return math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}

	a, _ := result(float, []int{1, 3, -1, -1}, "--mean", "0.5", "--std", "1,2,0.25")
	require.Equal(t, []int{1, 3, 2, 3}, a.Shape)
	require.InDelta(t, 50./255-0.5, at(a, 5), 1e-6)
	require.InDelta(t, (100./255-0.5)/2, at(a, 6+5), 1e-6)
	require.InDelta(t, (200./255-0.5)*4, at(a, 12), 1e-6)
	a, _ = result(uint8s, []int{-1, -1, -1, 3})
	require.Equal(t, []int{1, 2, 3, 3}, a.Shape)
	require.Equal(t, []uint8{50, 100, 200}, a.Data[15:])
	a, _ = result(uint8s, []int{1, -1, -1})
	require.Equal(t, []int{1, 2, 3}, a.Shape)
	require.Equal(t, uint8((299*50+587*100+114*200+500)/1000), a.Data[5])
	a, _ = result(uint8s, []int{3, 8, 12})
	require.Equal(t, []int{3, 8, 12}, a.Shape)
	require.Equal(t, uint8(100), a.Data[8*12+50], "scaled")
	a, _ = result(uint8s, []int{-1, -1, -1, -1}, "--shape", "x=1,3,0,0")
	require.Equal(t, []int{1, 3, 2, 3}, a.Shape)

	for _, x := range []struct {
		elem uint64
		dims []int
		more []string
		want string
	}{
		{int64s, []int{1, 3, 2, 3}, nil, "int64"}, {float, []int{2, 3, 4, 4}, nil, "is [2 3 4 4]"}, {float, []int{4, 4}, nil, "channel"},
		{float, []int{-1, -1, -1, -1}, nil, "--shape"}, {float, []int{3, -1, -1}, []string{"--mean", "1,2"}, "--mean has 2"},
		{float, []int{3, -1, -1}, []string{"--std", "0"}, "--std is 0"}, {float, []int{3, -1, -1}, []string{"--input", "z=" + picture}, "no input"},
	} {
		_, errOut := result(x.elem, x.dims, x.more...)
		require.Contains(t, errOut, x.want)
	}
}
