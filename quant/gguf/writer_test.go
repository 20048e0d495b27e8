package gguf_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// rewrite writes what f holds, its data in pieces of a size.
func rewrite(t *testing.T, f *gguf.File, piece int) []byte {
	var out bytes.Buffer
	w := gguf.NewWriter(&out)
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		require.NoError(t, w.Set(key, v))
	}
	var all []byte
	for _, x := range f.Tensors() {
		require.NoError(t, w.AddTensor(x.Name(), x.Type(), x.Shape()...))
		b, err := x.Bytes()
		require.NoError(t, err)
		all = append(all, b...)
	}
	for len(all) > 0 {
		n, err := w.Write(all[:min(piece, len(all))])
		require.NoError(t, err)
		all = all[n:]
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// What the Python package wrote and this package writes again is the same file, byte by byte.
func TestRewriteGolden(t *testing.T) {
	want, err := os.ReadFile("testdata/all.gguf")
	require.NoError(t, err)
	for _, piece := range []int{1, 7, 1 << 20} {
		require.Equal(t, want, rewrite(t, open(t, "all.gguf"), piece))
	}
}

func TestWriteValues(t *testing.T) {
	var out bytes.Buffer
	w := gguf.NewWriter(&out)
	for _, m := range goldenMetadata[2:] {
		require.NoError(t, w.Set(m.key, m.value))
	}
	nested := []any{[]int32{1, 2}, []any{[]string{"a", "bc"}, []bool{}}, []float64{}}
	require.NoError(t, w.Set("nested", nested))
	require.NoError(t, w.AddTensor("empty", quant.Q4_K, 3, 0))
	require.NoError(t, w.AddTensor("one", quant.F32, 1))
	require.NoError(t, w.AddTensor("last empty", quant.F16, 0))
	_, err := w.Write([]byte{0, 0, 0x80, 0x3f})
	require.NoError(t, err)
	require.NoError(t, w.Close())

	f, err := gguf.New(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	v, ok := f.Value("nested")
	require.True(t, ok)
	got, err := v.(*gguf.Array).Values()
	require.NoError(t, err)
	require.Equal(t, nested, got)
	one, err := f.Tensor("one")
	require.NoError(t, err)
	x := make([]float32, 1)
	require.NoError(t, one.Dequantize(x))
	require.Equal(t, []float32{1}, x)
	require.Equal(t, out.Bytes(), rewrite(t, f, 3))

	// Without tensors.
	out.Reset()
	w = gguf.NewWriter(&out)
	for _, m := range goldenMetadata {
		require.NoError(t, w.Set(m.key, m.value))
	}
	require.NoError(t, w.Close())
	f, err = gguf.New(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	requireMetadata(t, f, 0)
	require.Empty(t, f.Tensors())
}

// failing is a writer that has room for some bytes.
type failing int

func (f *failing) Write(p []byte) (int, error) {
	n := min(len(p), int(*f))
	*f -= failing(n)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func TestWriterErrors(t *testing.T) {
	w := gguf.NewWriter(io.Discard)
	for _, c := range []struct {
		key   string
		value any
		is    error
	}{
		{"", 1, compute.ErrArgument}, {"a", 1, compute.ErrDType}, {"a", nil, compute.ErrDType},
		{"a", []any{1}, compute.ErrDType}, {"a", []int{1}, compute.ErrDType},
		{"a", map[string]int{}, compute.ErrDType}, {"a", []any{"x"}, compute.ErrDType},
		{"general.alignment", uint32(0), compute.ErrArgument}, {"general.alignment", uint32(48), compute.ErrArgument},
		{"general.alignment", 32, compute.ErrArgument}, {string(make([]byte, 1<<16)), uint8(1), compute.ErrArgument},
	} {
		require.ErrorIs(t, w.Set(c.key, c.value), c.is, "%.20q %v", c.key, c.value)
	}
	require.NoError(t, w.Set("a", uint8(1)))
	require.ErrorIs(t, w.Set("a", uint8(1)), compute.ErrArgument)
	require.NoError(t, w.AddTensor("x", quant.F32, 3))
	require.ErrorIs(t, w.Set("general.alignment", uint32(64)), compute.ErrArgument, "the tensor has its place already")
	require.ErrorIs(t, w.AddTensor("x", quant.F32, 3), compute.ErrArgument)
	require.ErrorIs(t, w.AddTensor("y", quant.Q8_0, 33), compute.ErrShape)
	require.ErrorIs(t, w.AddTensor("y", quant.F32, -1), compute.ErrShape)
	require.ErrorIs(t, w.AddTensor("y", quant.F32), compute.ErrShape)
	require.ErrorIs(t, w.AddTensor("y", quant.F32, 1, 1, 1, 1, 1), compute.ErrShape)
	require.ErrorIs(t, w.AddTensor("y", 99, 1), compute.ErrDType)
	require.ErrorIs(t, w.AddTensor("y", quant.F32, 1<<31, 1<<31, 1<<31), compute.ErrTooLarge)
	n, err := w.Write(make([]byte, 8))
	require.NoError(t, err)
	require.Equal(t, 8, n)
	require.ErrorIs(t, w.Close(), compute.ErrShape, "4 bytes are missing")
	require.ErrorIs(t, w.Set("b", uint8(1)), compute.ErrArgument)
	require.ErrorIs(t, w.AddTensor("y", quant.F32, 3), compute.ErrArgument)
	n, err = w.Write(make([]byte, 8))
	require.ErrorIs(t, err, compute.ErrShape)
	require.Equal(t, 4, n)

	for room := range 96 { // the bytes of the file
		f := failing(room)
		w := gguf.NewWriter(&f)
		require.NoError(t, w.AddTensor("x", quant.F32, 3))
		_, err := w.Write(make([]byte, 12))
		require.ErrorIs(t, err, io.ErrShortWrite, "%d bytes", room)
		require.Equal(t, err, w.Close())
	}
}

func ExampleWriter() {
	var file bytes.Buffer
	w := gguf.NewWriter(&file)
	err := errors.Join(
		w.Set("general.architecture", "example"),
		w.Set("tokenizer.ggml.tokens", []string{"<s>", "a", "b"}),
		w.AddTensor("weight", quant.F32, 1, 2),
	)
	if err == nil {
		_, err = w.Write([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40})
	}
	if err = errors.Join(err, w.Close()); err != nil {
		fmt.Println(err)
		return
	}

	f, err := gguf.New(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := gguf.Values[string](f, "tokenizer.ggml.tokens")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(tokens), "tokens")
	for _, t := range f.Tensors() {
		x := make([]float32, t.Len())
		fmt.Println(t.Name(), t.Type(), t.Shape(), t.Dequantize(x), x)
	}
	// Output:
	// 3 tokens
	// weight F32 [1 2] <nil> [1 2]
}
