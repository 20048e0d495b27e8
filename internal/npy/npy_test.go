package npy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/npy"
)

// file is a .npy file of a version with a header and data.
func file(version byte, header string, data ...byte) []byte {
	header += "\n"
	f := append([]byte("\x93NUMPY"), version, 0, byte(len(header)), byte(len(header)>>8))
	if version > 1 {
		f = append(f, 0, 0)
	}
	return append(append(f, header...), data...)
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want npy.Array
	}{
		"vector": {file(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", 1, 0, 2, 0),
			npy.Array{Kind: 'u', Size: 2, Shape: []int{2}, Data: []byte{1, 0, 2, 0}}},
		"number": {file(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 1, 2, 3, 4),
			npy.Array{Kind: 'f', Size: 4, Shape: []int{}, Data: []byte{1, 2, 3, 4}}},
		"big-endian": {file(3, `{"shape": (1, 2), "fortran_order": False, "descr": ">i2"}`, 1, 2, 3, 4),
			npy.Array{Kind: 'i', Size: 2, Shape: []int{1, 2}, Data: []byte{2, 1, 4, 3}}},
		"Fortran's order": {file(1, "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 3), }", 1, 4, 2, 5, 3, 6),
			npy.Array{Kind: 'b', Size: 1, Shape: []int{2, 3}, Data: []byte{1, 2, 3, 4, 5, 6}}},
		"Fortran's order, three dimensions": {file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 2), }", 1, 3, 2, 4),
			npy.Array{Kind: 'u', Size: 1, Shape: []int{2, 1, 2}, Data: []byte{1, 2, 3, 4}}},
		"complex": {file(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 1, 2, 3, 4, 5, 6, 7, 8),
			npy.Array{Kind: 'f', Size: 4, Shape: []int{1, 2}, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}}},
		"empty": {file(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 3), }"),
			npy.Array{Kind: 'f', Size: 8, Shape: []int{0, 3}, Data: []byte{}}},
	} {
		a, err := npy.Decode(c.file)
		require.NoError(t, err, name)
		c.want.Data = append([]byte(nil), c.want.Data...)
		require.Equal(t, c.want.Shape, a.Shape, name)
		require.Equal(t, string(c.want.Data), string(a.Data), name)
		require.Equal(t, [2]int{int(c.want.Kind), c.want.Size}, [2]int{int(a.Kind), a.Size}, name)
		again, err := npy.Decode(a.Encode())
		require.NoError(t, err, name)
		require.Equal(t, a, again, name)
		require.Zero(t, strings.IndexByte(string(a.Encode()), '\n')%64-63, "the data begin at a multiple of 64")
	}
}

// TestSaved reads a file as NumPy's format describes it, of np.arange(6, dtype='f4').reshape(2, 3).
func TestSaved(t *testing.T) {
	const head = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
	text := head + strings.Repeat(" ", 127-len(head)) + "\n" +
		"\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"
	name := filepath.Join(t.TempDir(), "a.npy")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	a, err := npy.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, a.Shape)
	require.Equal(t, text, string(a.Encode()), "and writes the same")
}

func TestRefused(t *testing.T) {
	good := "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
	for name, f := range map[string][]byte{
		"empty":         nil,
		"text":          []byte("1,2,3,4,5,6,7,8,9"),
		"version":       file(9, good, 1, 2, 3, 4),
		"short":         file(1, good, 1, 2, 3),
		"long":          file(1, good, 1, 2, 3, 4, 5),
		"cut header":    file(1, good)[:20],
		"cut length":    []byte("\x93NUMPY\x02\x00\x01\x00"),
		"object":        file(1, strings.Replace(good, "<f4", "|O", 1), 1, 2, 3, 4),
		"structure":     file(1, strings.Replace(good, "'<f4'", "[('x', '<f4')]", 1), 1, 2, 3, 4),
		"half complex":  file(1, strings.Replace(good, "<f4", "<c4", 1), 1, 2, 3, 4),
		"quarter float": file(1, strings.Replace(good, "<f4", "<f1", 1), 1),
		"bfloat16":      file(1, strings.Replace(good, "<f4", "<V2", 1), 1, 2),
		"huge":          file(1, strings.Replace(good, "(1,)", "(99999999999, 99999999999)", 1), 1, 2, 3, 4),
		"dimensions":    file(1, strings.Replace(good, "(1,)", "("+strings.Repeat("1,", 65)+")", 1), 1, 2, 3, 4),
		"no shape":      file(1, strings.Replace(good, "shape", "form", 1), 1, 2, 3, 4),
	} {
		_, err := npy.Decode(f)
		require.ErrorIs(t, err, npy.ErrFormat, name)
	}
	_, err := npy.ReadFile(filepath.Join(t.TempDir(), "none.npy"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzDecode: whatever is read is an array, and writing it gives the same one.
func FuzzDecode(f *testing.F) {
	f.Add(file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 1, 2, 3, 4))
	f.Add(file(2, "{'descr': '>c16', 'fortran_order': True, 'shape': (0, 2), }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := npy.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, npy.ErrFormat)
			return
		}
		again, err := npy.Decode(a.Encode())
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}
