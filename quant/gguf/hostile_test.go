package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// raw builds files of strings, which are written with their lengths, and numbers, each as wide as its type.
func raw(parts ...any) []byte {
	b := []byte("GGUF")
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(binary.LittleEndian.AppendUint64(b, uint64(len(p))), p...)
		case []byte:
			b = append(b, p...)
		default:
			b, _ = binary.Append(b, binary.LittleEndian, p)
		}
	}
	return b
}

type (
	u32 = uint32
	u64 = uint64
)

// tensor is what a file says of a tensor of one dimension.
func tensor(name string, n u64, typ quant.Type, at u64) []byte {
	return raw(name, u32(1), n, u32(typ), at)[4:]
}

// readAll opens a file and reads all that is in it.
func readAll(b []byte) error {
	f, err := gguf.New(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for _, k := range f.Keys() {
		v, _ := f.Value(k)
		if a, ok := v.(*gguf.Array); ok {
			if _, err := a.Values(); err != nil {
				return fmt.Errorf("values: %w", err)
			}
		}
	}
	for _, t := range f.Tensors() {
		data, err := t.Bytes()
		if err != nil {
			return fmt.Errorf("bytes: %w", err)
		}
		if int64(len(data)) != t.Size() {
			return errors.New("bytes of another size")
		}
	}
	return nil
}

func TestHostile(t *testing.T) {
	head := func(tensors, pairs u64) []byte { return raw(u32(3), tensors, pairs) }
	pair := func(parts ...any) []byte { return append(head(0, 1), raw(parts...)[4:]...) }
	tensors := func(data int, infos ...[]byte) []byte {
		b := append(head(u64(len(infos)), 0), bytes.Join(infos, nil)...)
		b = append(b, make([]byte, -len(b)&31)...)
		return append(b, make([]byte, data)...)
	}
	array := u32(gguf.ArrayKind)
	deep := []any{"deep", array}
	for range 100 {
		deep = append(deep, array, u64(1))
	}
	require.NoError(t, readAll(head(0, 0)))
	require.NoError(t, readAll(tensors(24, tensor("a", 3, quant.F32, 0))))
	require.NoError(t, readAll(tensors(40, tensor("a", 2, quant.F32, 32), tensor("b", 3, quant.F32, 0))), "in another order")

	for name, b := range map[string][]byte{
		"empty":                    nil,
		"no magic":                 []byte("GGML"),
		"cut in the version":       []byte("GGUF\x03"),
		"cut in the counts":        raw(u32(3), u64(1)),
		"tensors":                  head(1<<40, 0),
		"all the tensors":          head(math.MaxUint64, 0),
		"metadata":                 head(0, 1<<40),
		"all the metadata":         head(0, math.MaxUint64),
		"both":                     head(math.MaxUint64/24, math.MaxUint64/13),
		"missing metadata":         append(head(0, 1), make([]byte, 12)...),
		"empty key":                pair("", u32(0), uint8(1), u64(0)),
		"long key":                 pair(string(make([]byte, 1<<16)), u32(0), uint8(1)),
		"a key longer than all":    pair(u64(1<<62), u64(0), u64(0)),
		"key twice":                append(head(0, 2), raw("a", u32(0), uint8(1), "a", u32(0), uint8(1))[4:]...),
		"kind of a value":          pair("a", u32(13), u64(0)),
		"kind of an array":         pair("a", array, u32(99), u64(0)),
		"string":                   pair("a", u32(gguf.StringKind), u64(math.MaxUint64)),
		"cut string":               pair("a", u32(gguf.StringKind), u64(4), []byte("abc")),
		"array":                    pair("a", array, u32(gguf.Uint64Kind), u64(1<<61)),
		"array of strings":         pair("a", array, u32(gguf.StringKind), u64(3), "x", "y"),
		"huge array of strings":    pair("a", array, u32(gguf.StringKind), u64(1<<60), "x", "y"),
		"string in an array":       pair("a", array, u32(gguf.StringKind), u64(1), u64(1<<50)),
		"deep arrays":              pair(deep...),
		"wide arrays":              pair("a", array, array, u64(1<<40), u64(0)),
		"alignment 0":              pair("general.alignment", u32(gguf.Uint32Kind), u32(0)),
		"alignment 48":             pair("general.alignment", u32(gguf.Uint32Kind), u32(48)),
		"alignment of a kind":      pair("general.alignment", u32(gguf.Uint64Kind), u64(32)),
		"alignment as a text":      pair("general.alignment", u32(gguf.StringKind), "32"),
		"tensor twice":             tensors(64, tensor("a", 2, quant.F32, 0), tensor("a", 2, quant.F32, 32)),
		"dimensions":               tensors(64, raw("a", u32(5), u64(1), u64(1), u64(1), u64(1), u64(1), u32(0), u64(0))[4:]),
		"many dimensions":          tensors(64, raw("a", u32(math.MaxUint32))[4:], make([]byte, 32)),
		"a dimension":              tensors(64, tensor("a", 1<<63, quant.F32, 0)),
		"bytes overflow":           tensors(64, tensor("a", 1<<62, quant.F32, 0)),
		"elements overflow":        tensors(64, raw("a", u32(2), u64(1<<32), u64(1<<32), u32(0), u64(0))[4:]),
		"elements overflow late":   tensors(64, raw("a", u32(3), u64(1), u64(1<<32), u64(1<<32), u32(0), u64(0))[4:]),
		"part of a block":          tensors(64, tensor("a", 33, quant.Q8_0, 0)),
		"not aligned":              tensors(64, tensor("a", 2, quant.F32, 8)),
		"beyond the end":           tensors(64, tensor("a", 2, quant.F32, 64)),
		"far beyond the end":       tensors(64, tensor("a", 2, quant.F32, 1<<62)),
		"negative":                 tensors(64, tensor("a", 2, quant.F32, math.MaxUint64-31)),
		"one byte too few":         tensors(39, tensor("a", 2, quant.F32, 32), tensor("b", 3, quant.F32, 0)),
		"overlapping":              tensors(64, tensor("a", 9, quant.F32, 0), tensor("b", 2, quant.F32, 32)),
		"in the same place":        tensors(64, tensor("a", 8, quant.F32, 0), tensor("b", 8, quant.F32, 0)),
		"no data":                  append(head(1, 0), tensor("a", 2, quant.F32, 0)...),
		"cut in the tensor":        append(head(1, 0), tensor("a", 2, quant.F32, 0)[:20]...),
		"splits":                   pair("split.count", u32(gguf.Int32Kind), int32(-1)),
		"a million splits":         pair("split.count", u32(gguf.Uint32Kind), u32(1000000)),
		"dimension zero and large": tensors(0, raw("a", u32(3), u64(0), u64(1<<62), u64(1<<62), u32(0), u64(0))[4:]),
	} {
		require.ErrorIs(t, readAll(b), gguf.ErrMalformed, name)
	}
	for name, b := range map[string][]byte{
		"version 1":    raw(u32(1), u32(0), u32(0)),
		"version 4":    raw(u32(4), u64(0), u64(0)),
		"unknown type": tensors(64, tensor("a", 2, 31, 0)),
		"far type":     tensors(64, tensor("a", 2, math.MaxUint32, 0)),
	} {
		require.ErrorIs(t, readAll(b), compute.ErrUnsupported, name)
	}
	_, err := gguf.Open(t.TempDir())
	require.ErrorIs(t, err, compute.ErrArgument)
	empty := t.TempDir() + "/empty"
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = gguf.Open(empty)
	require.ErrorIs(t, err, gguf.ErrMalformed)
}

// vast is a file of any size that is zeros after its beginning.
type vast []byte

func (v vast) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	if at < int64(len(v)) {
		copy(p, v[at:])
	}
	return len(p), nil
}

// Large claims that a large file makes plausible must not be paid for before they are checked.
func TestAllocation(t *testing.T) {
	for name, b := range map[string][]byte{
		"tensors":  raw(u32(3), u64(1<<30), u64(0)),
		"metadata": raw(u32(3), u64(0), u64(1<<30)),
		"array":    raw(u32(3), u64(0), u64(2), "a", u32(gguf.ArrayKind), u32(gguf.Float64Kind), u64(1<<33)),
		"string":   raw(u32(3), u64(0), u64(1), "a", u32(gguf.StringKind), u64(1<<36)),
		"tensor":   raw(u32(3), u64(2), u64(0), tensor("a", 1<<33, quant.F32, 0), tensor("a", 1<<33, quant.F32, 0)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := gguf.New(vast(b), 1<<40)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, gguf.ErrMalformed, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), name)
	}
}

// Every file that is cut short is an error, or all that is in it can still be read.
func TestTruncated(t *testing.T) {
	b, err := os.ReadFile("testdata/all.gguf")
	require.NoError(t, err)
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 0; n < len(b); n += step {
		err := readAll(b[:n])
		if n < len(b)-32 { // the last tensor has 32 bytes, and 32 of padding
			require.ErrorIs(t, err, gguf.ErrMalformed, n)
		} else {
			require.NoError(t, err, n)
		}
		// And one whose size is claimed to be larger than it is.
		_, err = gguf.New(io.NewSectionReader(bytes.NewReader(b[:n]), 0, int64(n)), int64(len(b)))
		if n < 800 {
			require.ErrorIs(t, err, gguf.ErrMalformed, n)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"all.gguf", "bigendian.gguf", first, second} {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add(raw(u32(2), u64(1), u64(1), "a", u32(9), u32(9), u64(1), u32(8), u64(1), "b", tensor("t", 32, quant.Q4_0, 0),
		make([]byte, 64)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readAll(b); err != nil {
			is := func(target error) bool { return errors.Is(err, target) }
			require.True(t, slices.ContainsFunc([]error{gguf.ErrMalformed, gguf.ErrMissing, compute.ErrUnsupported,
				compute.ErrArgument, compute.ErrDType}, is), err)
			return
		}
		// What can be read can be written and read again.
		g, err := gguf.New(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		for _, x := range g.Tensors() {
			if len(x.Shape()) == 0 {
				return // one element without dimensions, which is read and not written
			}
		}
		require.NoError(t, readAll(rewrite(t, g, 1000)))
	})
}
