package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/safetensors"
)

const golden = "testdata/golden.safetensors"

// The file was written by the safetensors package: testdata/golden.py.
func TestGolden(t *testing.T) {
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	inMemory, err := safetensors.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	mapped, err := safetensors.Open(golden)
	require.NoError(t, err)
	for _, f := range []*safetensors.File{inMemory, mapped} {
		require.Equal(t, map[string]string{"format": "pt", "note": "Grüße"}, f.Metadata())
		shapes := map[string]string{}
		for _, x := range f.Tensors() {
			shapes[x.Name()] = fmt.Sprintf("%s%v%d", x.DType(), x.Shape(), x.Size())
		}
		require.Equal(t, map[string]string{"f32": "F32[3 4]48", "f16": "F16[12]24", "bf16": "BF16[2 6]24", "f64": "F64[1]8",
			"i64": "I64[2]16", "i32": "I32[]4", "u8": "U8[0 5]0", "bool": "BOOL[3]3"}, shapes)
		var x [3][12]float32
		for i, name := range []string{"f32", "f16", "bf16"} {
			tensor, err := f.Tensor(name)
			require.NoError(t, err)
			require.Equal(t, 12, tensor.Len())
			require.NoError(t, tensor.Float32s(x[i][:]))
			require.ErrorIs(t, tensor.Float32s(x[i][1:]), compute.ErrShape)
		}
		for i := range 12 {
			require.InDelta(t, -2+4*float64(i)/11, x[0][i], 1e-6)
			require.InDelta(t, x[0][i], x[1][i], 1e-3)
			require.InDelta(t, x[0][i], x[2][i], 1e-2)
		}
		integers, err := f.Tensor("i64")
		require.NoError(t, err)
		data, err := integers.Bytes()
		require.NoError(t, err)
		require.Equal(t, uint64(1<<40), binary.LittleEndian.Uint64(data[8:]))
		typ, ok := integers.Type()
		require.True(t, ok)
		require.Equal(t, quant.I64, typ)
		require.ErrorIs(t, integers.Float32s(make([]float32, 2)), compute.ErrDType)
		_, err = f.Tensor("f31")
		require.ErrorIs(t, err, safetensors.ErrMissing)
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		_, err = integers.Bytes()
		require.ErrorIs(t, err, compute.ErrClosed)
	}
}

func file(header, data string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+data...)
}

func parse(b []byte) error {
	f, err := safetensors.New(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for _, t := range f.Tensors() {
		if _, err := t.Bytes(); err != nil {
			return fmt.Errorf("bytes: %w", err)
		}
	}
	return nil
}

const two = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"b":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}`

func TestHostile(t *testing.T) {
	require.NoError(t, parse(file(`{}`, "")))
	require.NoError(t, parse(file(two+"  ", "xyz")))
	a := `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	for name, b := range map[string][]byte{
		"empty":            nil,
		"short":            []byte("1234567"),
		"huge header":      binary.LittleEndian.AppendUint64(nil, 1<<63),
		"header too long":  append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...),
		"no object":        file(`[]`, ""),
		"space first":      file(` {}`, ""),
		"cut":              file(`{`+a, "12345678"),
		"behind":           file(`{}x`, ""),
		"no data":          file(`{`+a+`}`, "1234567"),
		"more data":        file(`{`+a+`}`, "123456789"),
		"twice":            file(`{`+a+`,`+a+`}`, "12345678"),
		"overlap":          file(`{`+a+`,`+strings.Replace(a, `"a"`, `"b"`, 1)+`}`, "12345678"),
		"gap":              file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, "abc"),
		"negative":         file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[-2,0]}}`, ""),
		"negative shape":   file(`{"a":{"dtype":"U8","shape":[-2,-1],"data_offsets":[0,2]}}`, "ab"),
		"backwards":        file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}`, "ab"),
		"wrong size":       file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,2]}}`, "ab"),
		"overflow":         file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, ""),
		"not an integer":   file(`{"a":{"dtype":"F32","shape":[1e99],"data_offsets":[0,0]}}`, ""),
		"one offset":       file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}`, "12345678"),
		"no type":          file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, "12345678"),
		"no shape":         file(`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, "12345678"),
		"tensor is a list": file(`{"a":[]}`, ""),
		"metadata number":  file(`{"__metadata__":{"a":1}}`, ""),
		"metadata twice":   file(`{"__metadata__":{},"__metadata__":{}}`, ""),
	} {
		require.ErrorIs(t, parse(b), safetensors.ErrMalformed, name)
	}
	require.ErrorIs(t, parse(file(`{"a":{"dtype":"F3","shape":[2],"data_offsets":[0,8]}}`, "12345678")), compute.ErrUnsupported)
	_, err := safetensors.Open(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = safetensors.Open(t.TempDir())
	require.ErrorIs(t, err, compute.ErrArgument)
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(golden)
	require.NoError(f, err)
	f.Add(b)
	f.Add(file(two, "xyz"))
	f.Add(file(`{"__metadata__":{"a":"b"}}`, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := parse(b); err != nil {
			require.True(t, errors.Is(err, safetensors.ErrMalformed) || errors.Is(err, compute.ErrUnsupported), err)
		}
	})
}
