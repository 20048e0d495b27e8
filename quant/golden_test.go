package quant_test

import (
	"bytes"
	"flag"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// A larger file than the committed one is made by testdata/golden.py VALUES SEED.
var golden = flag.String("golden", "testdata/golden.gguf", "`file` that testdata/golden.py wrote")

var cases = []string{"normal", "uniform", "positive", "tiny", "vanishing", "huge", "constant", "outlier"}

func openGolden(t *testing.T) *gguf.File {
	f, err := gguf.Open(*golden)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func bytesOf(t *testing.T, f *gguf.File, name string) []byte {
	tensor, err := f.Tensor(name)
	require.NoError(t, err)
	b, err := tensor.Bytes()
	require.NoError(t, err)
	return b
}

func floatsOf(t *testing.T, f *gguf.File, name string) []float32 {
	tensor, err := f.Tensor(name)
	require.NoError(t, err)
	x := make([]float32, tensor.Len())
	require.NoError(t, tensor.Dequantize(x))
	return x
}

// compared are the types that GGML's library and the gguf package have.
func compared() []quant.Type {
	var types []quant.Type
	for _, typ := range quant.Types() {
		if typ != quant.F32 {
			types = append(types, typ)
		}
	}
	return types
}

func TestDequantizeGolden(t *testing.T) {
	f := openGolden(t)
	for _, typ := range compared() {
		blocks, want := bytesOf(t, f, "blocks."+typ.String()), floatsOf(t, f, "values."+typ.String())
		got := make([]float32, len(want))
		require.NoError(t, quant.Dequantize(got, typ, blocks))
		require.NotEmpty(t, want)
		for i, v := range want {
			if math.Float32bits(v) != math.Float32bits(got[i]) {
				t.Fatalf("%v: value %d is %v, not %v", typ, i, got[i], v)
			}
		}
	}
}

// The blocks are GGML's bit by bit, where its scales are finite; where they are not, Quantize says so.
func TestQuantizeGolden(t *testing.T) {
	f := openGolden(t)
	weights := floatsOf(t, f, "importance")
	for _, typ := range compared() {
		var blocks, beyond int
		for _, name := range cases {
			x := floatsOf(t, f, "x."+name)
			for _, suffix := range []string{"", ".w"} {
				name := name + "." + typ.String() + suffix
				if _, err := f.Tensor(name); suffix != "" && err != nil {
					continue // a type without weights
				}
				want := bytesOf(t, f, name)
				got := make([]byte, len(want))
				quantize := func(dst []byte, x []float32) error {
					if suffix != "" {
						return quant.QuantizeWeighted(dst, typ, x, weights)
					}
					return quant.Quantize(dst, typ, x)
				}
				err := quantize(got, x)
				if quant.Check(typ, want) != nil {
					require.ErrorIs(t, err, compute.ErrArgument, name)
					beyond++
					continue
				}
				require.NoError(t, err, name)
				for i, size := 0, typ.BlockSize(); i < len(want); i += size {
					if !bytes.Equal(want[i:i+size], got[i:i+size]) {
						require.Equal(t, want[i:i+size], got[i:i+size], "%s: block %d", name, i/size)
					}
					blocks++
				}
			}
		}
		t.Logf("%v: %d blocks are GGML's; %d arrays are beyond its range", typ, blocks, beyond)
		require.Greater(t, blocks, 10, typ)
	}
}
