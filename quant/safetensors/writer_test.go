package safetensors_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/safetensors"
)

// rewrite writes what f holds, its data in pieces of a size.
func rewrite(t *testing.T, w *safetensors.Writer, f *safetensors.File, piece int) {
	for key, value := range f.Metadata() {
		require.NoError(t, w.Set(key, value))
	}
	var all []byte
	for _, x := range f.Tensors() {
		require.NoError(t, w.AddTensor(x.Name(), x.DType(), x.Shape()...))
		b, err := x.Bytes()
		require.NoError(t, err)
		all = append(all, b...)
	}
	for len(all) > 0 {
		n, err := w.Write(all[:min(piece, len(all))])
		require.NoError(t, err)
		all = all[n:]
	}
}

// The writer writes the bytes of the safetensors package.
func TestWriteGolden(t *testing.T) {
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	f, err := safetensors.Open(golden)
	require.NoError(t, err)
	defer f.Close()
	for _, piece := range []int{1, 7, 1000} {
		var out bytes.Buffer
		w := safetensors.NewWriter(&out)
		rewrite(t, w, f, piece)
		require.NoError(t, w.Close())
		require.Equal(t, want, out.Bytes())
	}
	name := filepath.Join(t.TempDir(), "x")
	require.NoError(t, safetensors.WriteFile(name, func(w *safetensors.Writer) error { rewrite(t, w, f, 50); return nil }))
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Names that JSON escapes, shapes without dimensions or elements, and a file without anything come back.
func TestWriteNames(t *testing.T) {
	names := []string{"", "a\"b\\c\n", "<ä&日>", "__metadata", "\u2028"}
	var out bytes.Buffer
	w := safetensors.NewWriter(&out)
	for i, name := range names {
		require.NoError(t, w.Set(name, name))
		require.NoError(t, w.AddTensor(name, "I16", make([]int, i%2)...))
	}
	n, err := w.Write(make([]byte, 6))
	require.NoError(t, err)
	require.Equal(t, 6, n)
	require.NoError(t, w.Close())
	f, err := safetensors.New(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	require.Len(t, f.Metadata(), len(names))
	for i, name := range names {
		require.Equal(t, name, f.Metadata()[name])
		x, err := f.Tensor(name)
		require.NoError(t, err)
		require.Len(t, x.Shape(), i%2)
	}

	out.Reset()
	require.NoError(t, safetensors.NewWriter(&out).Close())
	require.NoError(t, parse(out.Bytes()))
	require.Len(t, out.Bytes(), 16)
}

// failing fails after so many bytes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	n := min(f.left, len(p))
	if f.left -= n; n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func TestWriteErrors(t *testing.T) {
	w := safetensors.NewWriter(io.Discard)
	require.NoError(t, w.Set("a", "b"))
	require.NoError(t, w.AddTensor("a", "F32", 2))
	for _, err := range []error{w.Set("a", "c"), w.Set("\xff", ""), w.Set("b", "\xff"), w.AddTensor("a", "F32", 2), w.AddTensor("\xff", "F32"),
		w.AddTensor("__metadata__", "F32")} {
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	require.ErrorIs(t, w.AddTensor("b", "F31"), compute.ErrDType)
	require.ErrorIs(t, w.AddTensor("b", "F32", -1), compute.ErrShape)
	require.ErrorIs(t, w.AddTensor("b", "F32", math.MaxInt/2), compute.ErrShape)
	require.ErrorIs(t, w.AddTensor("b", "U8", math.MaxInt), compute.ErrTooLarge)
	n, err := w.Write(make([]byte, 7))
	require.NoError(t, err)
	require.Equal(t, 7, n)
	require.ErrorIs(t, w.Close(), compute.ErrShape, "a byte is missing")
	require.ErrorIs(t, w.Set("c", "d"), compute.ErrArgument, "too late")
	require.ErrorIs(t, w.AddTensor("b", "F32"), compute.ErrArgument, "too late")
	n, err = w.Write(make([]byte, 2))
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, compute.ErrShape, "a byte too many")
	require.NoError(t, w.Close())

	for left := range 72 { // of 72 bytes
		w := safetensors.NewWriter(&failing{left})
		require.NoError(t, w.AddTensor("a", "F32", 2))
		w.Write(make([]byte, 8))
		require.ErrorIs(t, w.Close(), io.ErrShortWrite, left)
	}
}

// A file that cannot be written as a whole leaves the one that was there, and nothing else.
func TestWriteFileIsAtomic(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "x.safetensors")
	write := func(value byte, fail error) error {
		return safetensors.WriteFile(name, func(w *safetensors.Writer) error {
			if err := w.AddTensor("a", "U8", 1<<21); err != nil {
				return err
			}
			if _, err := w.Write(bytes.Repeat([]byte{value}, 1<<21)); err != nil {
				return err
			}
			return fail
		})
	}
	onPurpose := errors.New("on purpose")
	require.NoError(t, write(1, nil))
	require.NoError(t, write(2, nil))
	require.ErrorIs(t, write(3, onPurpose), onPurpose)
	require.ErrorIs(t, safetensors.WriteFile(name, func(w *safetensors.Writer) error { return w.AddTensor("a", "U8", 1) }), compute.ErrShape)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, parse(b))
	require.Equal(t, byte(2), b[len(b)-1])
	require.ErrorIs(t, safetensors.WriteFile(filepath.Join(folder, "none", "x"), func(*safetensors.Writer) error { return nil }), os.ErrNotExist)
	require.Error(t, safetensors.WriteFile(folder, func(*safetensors.Writer) error { return nil }), "a folder is not replaced")
}
