package gguf_test

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// The files were written by the gguf Python package: testdata/golden.py.

var goldenMetadata = []struct {
	key   string
	value any // slices for arrays
}{
	{"general.architecture", "test"}, {"general.alignment", uint32(64)}, {"z.uint8", uint8(200)}, {"int8", int8(-100)},
	{"uint16", uint16(60000)}, {"int16", int16(-30000)}, {"uint32", uint32(4000000000)}, {"int32", int32(-2000000000)},
	{"float32", float32(1.5)}, {"uint64", uint64(1 << 63)}, {"int64", int64(-1 << 62)}, {"float64", 0.1}, {"yes", true},
	{"no", false}, {"text", "Grüße, 世界"}, {"words", []string{"one", "", "drei"}}, {"ints", []int32{1, -2, 3}},
	{"floats", []float32{0.5, -0.25}}, {"bools", []bool{true, false, true}}, {"bytes", []uint8{1, 2, 255}},
	{"shorts", []uint16{1, 2, 65535}},
}

func open(t *testing.T, name string) *gguf.File {
	f, err := gguf.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func requireMetadata(t *testing.T, f *gguf.File, from int) {
	keys := f.Keys()
	require.Len(t, keys, len(goldenMetadata)-from)
	for i, m := range goldenMetadata[from:] {
		require.Equal(t, m.key, keys[i])
		v, ok := f.Value(m.key)
		require.True(t, ok)
		if a, ok := v.(*gguf.Array); ok {
			var err error
			v, err = a.Values()
			require.NoError(t, err)
		}
		require.Equal(t, m.value, v, m.key)
	}
}

func requireTensors(t *testing.T, f *gguf.File) {
	require.Len(t, f.Tensors(), 4)
	for i, want := range []struct {
		name  string
		typ   quant.Type
		shape []int
		size  int64
	}{
		{"matrix", quant.F32, []int{3, 2}, 24}, {"half", quant.F16, []int{5}, 10}, {"blocks", quant.Q8_0, []int{64, 2}, 136},
		{"integers", quant.I64, []int{2, 2, 1, 1}, 32},
	} {
		x := f.Tensors()[i]
		require.Equal(t, want.name, x.Name())
		require.Equal(t, want.typ, x.Type())
		require.Equal(t, want.shape, x.Dims())
		require.Equal(t, want.size, x.Size())
		require.Equal(t, want.shape[0], x.Cols())
		require.Equal(t, x.Len(), x.Rows()*x.Cols())
		require.Zero(t, x.Offset()%int64(f.Alignment()))
		b, err := x.Bytes()
		require.NoError(t, err)
		streamed, err := io.ReadAll(x.Reader())
		require.NoError(t, err)
		require.Equal(t, b, streamed)
	}
	matrix, err := f.Tensor("matrix")
	require.NoError(t, err)
	x := make([]float32, 6)
	require.NoError(t, matrix.Dequantize(x))
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5}, x)
	require.ErrorIs(t, matrix.Dequantize(x[1:]), compute.ErrShape)

	blocks, err := f.Tensor("blocks")
	require.NoError(t, err)
	m, err := blocks.Matrix()
	require.NoError(t, err)
	require.Equal(t, [2]int{2, 64}, [2]int{m.Rows, m.Cols})
	y := make([]float32, 128)
	require.NoError(t, m.Dequantize(y))
	for i, v := range y {
		require.InDelta(t, math.Sin(float64(i)), v, 0.005)
	}
	integers, err := f.Tensor("integers")
	require.NoError(t, err)
	require.ErrorIs(t, integers.Dequantize(make([]float32, 4)), compute.ErrUnsupported)
	_, err = f.Tensor("matrices")
	require.ErrorIs(t, err, gguf.ErrMissing)
}

func TestReadGolden(t *testing.T) {
	f := open(t, "all.gguf")
	require.Equal(t, 3, f.Version())
	require.Equal(t, 64, f.Alignment())
	requireMetadata(t, f, 0)
	requireTensors(t, f)

	// The same through a reader, as on Windows and js, and as version 2, which has the same layout.
	b, err := os.ReadFile("testdata/all.gguf")
	require.NoError(t, err)
	require.Equal(t, int64(len(b)), f.Size())
	b[4] = 2
	f, err = gguf.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, 2, f.Version())
	requireMetadata(t, f, 0)
	requireTensors(t, f)
}

func TestTypedAccess(t *testing.T) {
	f := open(t, "all.gguf")
	for _, key := range []string{"z.uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"} {
		n, err := f.Int(key)
		require.NoError(t, err)
		x, err := f.Float(key)
		require.NoError(t, err)
		require.InDelta(t, float64(n), x, 0)
	}
	x, err := f.Float("float32")
	require.NoError(t, err)
	require.InDelta(t, 1.5, x, 0)
	_, err = f.Int("uint64")
	require.ErrorIs(t, err, compute.ErrDType, "it does not fit")
	_, err = f.Int("float32")
	require.ErrorIs(t, err, compute.ErrDType)
	_, err = f.Float("text")
	require.ErrorIs(t, err, compute.ErrDType)
	yes, err := gguf.Value[bool](f, "yes")
	require.NoError(t, err)
	require.True(t, yes)
	text, err := gguf.Value[string](f, "text")
	require.NoError(t, err)
	require.Equal(t, "Grüße, 世界", text)
	_, err = gguf.Value[string](f, "yes")
	require.ErrorIs(t, err, compute.ErrDType)
	words, err := gguf.Values[string](f, "words")
	require.NoError(t, err)
	require.Equal(t, []string{"one", "", "drei"}, words)
	_, err = gguf.Values[string](f, "ints")
	require.ErrorIs(t, err, compute.ErrDType)
	require.ErrorContains(t, err, "3 × int32")
	ints, err := gguf.Values[int32](f, "ints")
	require.NoError(t, err)
	require.Equal(t, []int32{1, -2, 3}, ints)
	_, err = gguf.Values[int64](f, "ints")
	require.ErrorIs(t, err, compute.ErrDType)
	_, err = gguf.Values[complex64](f, "ints")
	require.ErrorIs(t, err, compute.ErrDType)
	_, err = gguf.Values[int32](f, "text")
	require.ErrorIs(t, err, compute.ErrDType)
	_, err = f.Int("nothing")
	require.ErrorIs(t, err, gguf.ErrMissing)
	_, ok := f.Value("nothing")
	require.False(t, ok)
}

func TestBigEndian(t *testing.T) {
	_, err := gguf.Open("testdata/bigendian.gguf")
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "big-endian")
}

func TestClose(t *testing.T) {
	f, err := gguf.Open("testdata/all.gguf")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, err = f.Tensors()[0].Bytes()
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = f.Tensors()[0].Reader().Read(make([]byte, 1))
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = gguf.Values[string](f, "words")
	require.ErrorIs(t, err, compute.ErrClosed)
}

const first, second = "split-00001-of-00002.gguf", "split-00002-of-00002.gguf"

func TestSplit(t *testing.T) {
	requireTensors(t, open(t, first))

	parts := make([][]byte, 2)
	for i, name := range []string{first, second} {
		var err error
		parts[i], err = os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
	}
	section := func(b []byte) *io.SectionReader { return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))) }
	f, err := gguf.NewSplit(section(parts[0]), section(parts[1]))
	require.NoError(t, err)
	requireTensors(t, f)
	require.Equal(t, int64(len(parts[0])+len(parts[1])), f.Size())

	_, err = gguf.New(bytes.NewReader(parts[0]), int64(len(parts[0])))
	require.ErrorIs(t, err, compute.ErrArgument, "one of two")
	_, err = gguf.NewSplit(section(parts[1]), section(parts[0]))
	require.ErrorIs(t, err, compute.ErrArgument, "in the wrong order")
	_, err = gguf.NewSplit(section(parts[0]), section(parts[0]))
	require.ErrorIs(t, err, gguf.ErrMalformed, "the first one twice")
	for _, none := range [][]*io.SectionReader{nil, {section(parts[0]), nil}} {
		_, err = gguf.NewSplit(none...)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err = gguf.Open(filepath.Join("testdata", second))
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "open the first")

	// Alone, under another name, and with a second file that ends too early.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, first), parts[0], 0o600))
	_, err = gguf.Open(filepath.Join(dir, first))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, second)
	require.NoError(t, os.WriteFile(filepath.Join(dir, second), parts[1][:200], 0o600))
	_, err = gguf.Open(filepath.Join(dir, first))
	require.ErrorIs(t, err, gguf.ErrMalformed)
	require.ErrorContains(t, err, second)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.gguf"), parts[0], 0o600))
	_, err = gguf.Open(filepath.Join(dir, "model.gguf"))
	require.ErrorIs(t, err, compute.ErrArgument)
}
