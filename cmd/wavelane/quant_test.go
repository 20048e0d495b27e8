//go:build !js

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// feed makes the bytes the standard input of this process until the test ends.
func feed(t *testing.T, b []byte) {
	name := filepath.Join(t.TempDir(), "stdin")
	require.NoError(t, os.WriteFile(name, b, 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	old := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = old; f.Close() })
}

func floatBytes(x []float32) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, x)
	return b
}

func sines(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i) / 3))
	}
	return x
}

// More values than go through the memory at once.
func TestQuant(t *testing.T) {
	const rows, cols = 33, 512
	x := sines(rows * cols)
	for _, typ := range quant.Types() {
		size, err := typ.RowSize(len(x))
		require.NoError(t, err)
		blocks := make([]byte, size)
		require.NoError(t, quant.Quantize(blocks, typ, x))
		feed(t, floatBytes(x))
		name := strings.ToLower(typ.String())
		status, out, errOut := call(t.Context(), "quant", "quantize", "--type", name, "--rows", "33", "--cols", "512")
		require.Zero(t, status, errOut)
		require.True(t, string(blocks) == out, typ)

		y := make([]float32, len(x))
		require.NoError(t, quant.Dequantize(y, typ, blocks))
		feed(t, blocks)
		status, out, errOut = call(t.Context(), "quant", "dequantize", "--type", typ.String(), "--cols", "512")
		require.Zero(t, status, errOut)
		require.True(t, string(floatBytes(y)) == out, typ)
	}
}

func TestQuantWrongInput(t *testing.T) {
	x := sines(1024)
	bad := sines(10000)
	bad[9999] = float32(math.NaN())
	for _, c := range []struct {
		args    string
		in      []byte
		message string
	}{
		{"quantize --type Q8_0", floatBytes(x)[:4*1000], "after 992 values, 32 bytes, not the 128 of a block"},
		{"quantize --type F32", floatBytes(x)[:4*1000+3], "after 1000 values, 3 bytes, not the 4 of a block"},
		{"quantize --type Q4_0 --cols 384", floatBytes(x), "1024 values: 2 rows of 384 and 256 values more"},
		{"quantize --type Q4_0 --cols 512 --rows 3", floatBytes(x), "1024 values, not 3 × 512"},
		{"quantize --type Q4_0 --cols 512 --rows 1", floatBytes(x), "more than 1 × 512 values"},
		{"quantize --type F16", floatBytes(bad), "from number 8192 on: quant: value 1807 is NaN"},
		{"quantize --type F16", floatBytes([]float32{1, 70000}), "block 1 of F16 has a scale beyond its range"},
		{"dequantize --type Q4_K", make([]byte, 2*144-1), "after 256 values, 143 bytes, not the 144 of a block"},
		{"dequantize --type Q4_K --cols 512", make([]byte, 144), "256 values: 0 rows of 512 and 256 values more"},
	} {
		feed(t, c.in)
		status, _, errOut := call(t.Context(), append([]string{"quant"}, strings.Fields(c.args)...)...)
		require.Equal(t, 1, status, c.args)
		require.Contains(t, errOut, c.message, c.args)
	}
	for args, message := range map[string]string{
		"quantize":                                                    `--type "": there are F32`,
		"quantize --type Q4":                                          "there are F32, F16, Q4_0",
		"quantize --type IQ2_XS":                                      "there are F32, F16, Q4_0",
		"quantize --type Q4_0 --rows 3":                               "together with --cols",
		"quantize --type Q4_0 --cols 0":                               "at least 1",
		"quantize --type Q4_K --cols 32":                              "no whole blocks of Q4_K, which have 256",
		"dequantize --type Q4_K x":                                    `"x"`,
		"quantize --type F16 --cols 9 --rows -1":                      "at least 1",
		"quantize --type F16 --cols 9e9":                              "9e9",
		"dequantize --type Q8_0 --rows 9223372036854775807 --cols 32": "too many",
	} {
		feed(t, nil)
		status, out, errOut := call(t.Context(), append([]string{"quant"}, strings.Fields(args)...)...)
		require.Equal(t, 2, status, args)
		require.Empty(t, out)
		require.Contains(t, errOut, message, args)
	}
}

// An interrupt ends the command while it waits for input.
func TestQuantInterrupted(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin = old; w.Close(); r.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, _, errOut := call(ctx, "quant", "quantize", "--type", "Q8_0")
	require.Equal(t, 130, status, errOut)
}

func writeModel(t *testing.T) string {
	var b bytes.Buffer
	w := gguf.NewWriter(&b)
	tokens := make([]string, 1000)
	for i := range tokens {
		tokens[i] = strings.Repeat("x", i)
	}
	require.NoError(t, w.Set("general.architecture", "example"))
	require.NoError(t, w.Set("example.epsilon", float32(math.Inf(1))))
	require.NoError(t, w.Set("example.template", strings.Repeat("long ", 100)))
	require.NoError(t, w.Set("example.nested", []any{[]int32{1, 2}, []float64{math.NaN()}}))
	require.NoError(t, w.Set("tokens", tokens))
	require.NoError(t, w.AddTensor("blk.0.attn_q.weight", quant.Q4_K, 3, 512))
	require.NoError(t, w.AddTensor("evil\x1b[2J", quant.F32, 2))
	_, err := w.Write(make([]byte, 6*144+8))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	name := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

func TestGGUF(t *testing.T) {
	name := writeModel(t)
	status, out, errOut := call(t.Context(), "gguf", name)
	require.Zero(t, status, errOut)
	for _, line := range []string{"GGUF version 3", "metadata: 5", "1000 × string",
		`["", "x", "xx", "xxx", "xxxx", "xxxxx", "xxxxxx", "xxxxxxx", …]`,
		"+Inf", "[[1, 2], [\"NaN\"]]", "tensors: 2", "512 × 3", "864 bytes", `"evil\x1b[2J"`} {
		require.Contains(t, out, line)
	}
	require.NotContains(t, out, "\x1b")
	for _, line := range strings.Split(out, "\n") {
		require.Less(t, len(line), 200)
	}

	status, out, errOut = call(t.Context(), "gguf", name, "--json")
	require.Zero(t, status, errOut)
	var l ggufListing
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	require.Equal(t, 3, l.Version)
	require.Equal(t, []string{"general.architecture", "example.epsilon", "example.template", "example.nested", "tokens"},
		[]string{l.Metadata[0].Key, l.Metadata[1].Key, l.Metadata[2].Key, l.Metadata[3].Key, l.Metadata[4].Key})
	require.Equal(t, 1000, *l.Metadata[4].Length)
	require.Len(t, l.Metadata[4].Value, 8)
	require.Equal(t, "+Inf", l.Metadata[1].Value)
	require.Equal(t, ggufTensor{Name: "blk.0.attn_q.weight", Type: "Q4_K", Shape: []int{512, 3}, Elements: 1536, Bytes: 864,
		Offset: l.Tensors[0].Offset}, l.Tensors[0])

	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, b[:len(b)-100], 0o600))
	status, out, errOut = call(t.Context(), "gguf", name)
	require.Equal(t, 1, status)
	require.Empty(t, out)
	require.Contains(t, errOut, "malformed GGUF file")
	status, _, errOut = call(t.Context(), "gguf", name+".gguf")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, name+".gguf")
	status, _, _ = call(t.Context(), "gguf")
	require.Equal(t, 2, status)
}
