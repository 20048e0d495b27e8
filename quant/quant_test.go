package quant_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

// random returns the random numbers of a test.
func random(t testing.TB) *rand.Rand { return testseed.Rand(t) }

func normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func quantize(t testing.TB, typ quant.Type, x []float32) []byte {
	size, err := typ.RowSize(len(x))
	require.NoError(t, err)
	b := make([]byte, size)
	require.NoError(t, quant.Quantize(b, typ, x))
	return b
}

func dequantize(t testing.TB, typ quant.Type, b []byte) []float32 {
	x := make([]float32, len(b)/typ.BlockSize()*typ.BlockLen())
	require.NoError(t, quant.Dequantize(x, typ, b))
	return x
}

// rmse is the root mean square error over the root mean square.
func rmse(x, y []float32) float64 {
	var e, s float64
	for i := range x {
		e += math.Pow(float64(x[i])-float64(y[i]), 2)
		s += math.Pow(float64(x[i]), 2)
	}
	return math.Sqrt(e / s)
}

func TestTypes(t *testing.T) {
	require.Len(t, quant.Types(), 15)
	listed := 0
	for n := range quant.Type(100) {
		if !n.Valid() {
			require.Equal(t, fmt.Sprintf("type %d", n), n.String())
			require.Zero(t, n.BlockLen())
			require.Zero(t, n.BitsPerWeight())
			_, err := n.RowSize(256)
			require.ErrorIs(t, err, compute.ErrDType)
			continue
		}
		listed++
		parsed, err := quant.ParseType(n.String())
		require.NoError(t, err)
		require.Equal(t, n, parsed)
		if !n.Convertible() {
			size, err := n.RowSize(256)
			require.NoError(t, err)
			require.ErrorIs(t, quant.Dequantize(make([]float32, 256), n, make([]byte, size)), compute.ErrUnsupported)
		}
	}
	require.Equal(t, 35, listed)
	q4k, err := quant.ParseType("q4_k")
	require.NoError(t, err)
	require.Equal(t, quant.Q4_K, q4k)
	require.InDelta(t, 4.5, q4k.BitsPerWeight(), 0)
	_, err = quant.ParseType("q4")
	require.ErrorIs(t, err, compute.ErrArgument)
	require.False(t, quant.Type(math.MaxUint32).Valid())
	_, err = quant.I64.RowSize(math.MaxInt)
	require.ErrorIs(t, err, compute.ErrTooLarge)
}

// The errors of formats on normal values: what is measured, with a margin of a fifth. A search that has gone wrong is over it.
func TestErrorBounds(t *testing.T) {
	bounds := map[quant.Type]float64{
		quant.F32: 0, quant.F16: 2.5e-4, quant.BF16: 2e-3, quant.Q4_0: 0.104, quant.Q4_1: 0.093, quant.Q5_0: 0.052,
		quant.Q5_1: 0.045, quant.Q8_0: 0.0066, quant.Q8_1: 0.0066, quant.Q2_K: 0.35, quant.Q3_K: 0.178, quant.Q4_K: 0.087,
		quant.Q5_K: 0.044, quant.Q6_K: 0.0225, quant.Q8_K: 0.0086,
	}
	r := random(t)
	n, most := 256*128, 0.95
	if testing.Short() { // of so few values 0.9 may be measured, once in 200 runs
		n, most = n/8, 0.99
	}
	x := normals(r, n)
	weights := make([]float32, len(x))
	for i := range weights {
		weights[i] = float32(r.ExpFloat64())
	}
	for _, typ := range quant.Types() {
		blocks := quantize(t, typ, x)
		y := dequantize(t, typ, blocks)
		e := rmse(x, y)
		t.Logf("%v: %.5f", typ, e)
		require.LessOrEqual(t, e, bounds[typ], typ)
		require.Greater(t, e*2+1e-9, bounds[typ], "%v: the bound is loose", typ)

		// Weights make the weighted error smaller, where they are looked at.
		weighted := make([]byte, len(blocks))
		require.NoError(t, quant.QuantizeWeighted(weighted, typ, x, weights))
		switch typ {
		case quant.F32, quant.F16, quant.BF16, quant.Q8_0, quant.Q8_1, quant.Q8_K:
			require.Equal(t, blocks, weighted, typ)
		default:
			z := dequantize(t, typ, weighted)
			var plain, better float64
			for i, w := range weights {
				plain += float64(w) * math.Pow(float64(x[i]-y[i]), 2)
				better += float64(w) * math.Pow(float64(x[i]-z[i]), 2)
			}
			require.Less(t, better, most*plain, typ)
		}
	}
}

// Whatever the magnitudes of values and weights are, there is an error or values that are not farther off than their block is
// wide.
func TestMagnitudes(t *testing.T) {
	r := random(t)
	const subnormal = 3e-4 // small scales have few bits in binary16
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	for range rounds {
		x, w := normals(r, 512), make([]float32, 512)
		size := math.Pow(10, r.Float64()*50-35)
		for i := range x {
			x[i] *= float32(size)
			w[i] = float32(math.Pow(10, r.Float64()*20-8))
			if r.IntN(8) == 0 {
				w[i] = 0
			}
		}
		for _, typ := range quant.Types() {
			n := typ.BlockLen()
			plain, weighted := make([]byte, 512/n*typ.BlockSize()), make([]byte, 512/n*typ.BlockSize())
			err := quant.Quantize(plain, typ, x)
			errWeighted := quant.QuantizeWeighted(weighted, typ, x, w)
			if typ == quant.F32 || typ == quant.BF16 || typ == quant.Q8_K || size < 1000 {
				require.NoError(t, err, "%v: %g", typ, size)
				require.NoError(t, errWeighted, "%v: %g", typ, size)
			}
			for i, b := range [][]byte{plain, weighted} {
				if e := []error{err, errWeighted}[i]; e != nil {
					require.ErrorIs(t, e, compute.ErrArgument)
					continue
				}
				y := dequantize(t, typ, b)
				for at := 0; at < len(x); at += n {
					var wide float64
					for _, v := range x[at : at+n] {
						wide = max(wide, math.Abs(float64(v)))
					}
					for j := at; j < at+n; j++ {
						if e := math.Abs(float64(x[j] - y[j])); !(e <= subnormal+1.1*float64(1+i)*wide) {
							t.Fatalf("%v: %g became %g, and the largest is %g", typ, x[j], y[j], wide)
						}
					}
				}
			}
		}
	}
}

// Blocks of zeros are zeros, and a lone value keeps its sign and its size, wherever it stands.
func TestLoneValues(t *testing.T) {
	r := random(t)
	for _, typ := range quant.Types() {
		for _, lone := range []float32{0, 1, -1, 0.37, -123} {
			x := make([]float32, 256)
			at := r.IntN(len(x))
			x[at] = lone
			y := dequantize(t, typ, quantize(t, typ, x))
			for i := range x {
				require.InDelta(t, x[i], y[i], 0.07*math.Abs(float64(lone)), "%v: %v at %d, value %d", typ, lone, at, i)
			}
		}
	}
}

func TestLengths(t *testing.T) {
	for _, typ := range quant.Types() {
		n, size := typ.BlockLen(), typ.BlockSize()
		require.NoError(t, quant.Quantize(nil, typ, nil))
		require.NoError(t, quant.Dequantize(nil, typ, nil))
		require.NoError(t, quant.QuantizeWeighted(nil, typ, nil, nil))
		for _, c := range []struct{ values, bytes int }{{2 * n, size}, {n, 2 * size}, {n, size - 1}, {n, 0}, {0, size},
			{n + 1, size}, {n - 1, size}} {
			x, b := make([]float32, c.values), make([]byte, c.bytes)
			require.ErrorIs(t, quant.Quantize(b, typ, x), compute.ErrShape, "%v %v", typ, c)
			require.ErrorIs(t, quant.Dequantize(x, typ, b), compute.ErrShape, "%v %v", typ, c)
		}
		x, b := make([]float32, 4*n), make([]byte, 4*size)
		require.NoError(t, quant.QuantizeWeighted(b, typ, x, make([]float32, 2*n)))
		require.ErrorIs(t, quant.QuantizeWeighted(b, typ, x, make([]float32, 3*n)), compute.ErrShape)
		require.ErrorIs(t, quant.QuantizeWeighted(b, typ, x, nil), compute.ErrShape)
		if n > 1 {
			require.ErrorIs(t, quant.QuantizeWeighted(b, typ, x, make([]float32, n/2)), compute.ErrShape)
			require.ErrorIs(t, quant.Check(typ, b[1:]), compute.ErrShape)
		}
	}
	require.ErrorIs(t, quant.Quantize(nil, 99, nil), compute.ErrDType)
	require.ErrorIs(t, quant.Check(99, nil), compute.ErrDType)
}

func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	r := random(t)
	for _, typ := range quant.Types() {
		x := normals(r, 512)
		b := make([]byte, 512/typ.BlockLen()*typ.BlockSize())
		for _, bad := range []float32{nan, inf, -inf} {
			x[300] = bad
			err := quant.Quantize(b, typ, x)
			require.ErrorIs(t, err, compute.ErrArgument)
			require.ErrorContains(t, err, "value 300")
		}
		x[300] = 1
		for _, bad := range []float32{nan, inf, -1, 2e12} {
			w := make([]float32, 512)
			w[7] = bad
			require.ErrorIs(t, quant.QuantizeWeighted(b, typ, x, w), compute.ErrArgument)
		}
		// What float32 can hold and the scale cannot.
		for i := range x {
			x[i] = math.MaxFloat32
		}
		x[0] = -x[0]
		if err := quant.Quantize(b, typ, x); typ != quant.F32 && typ != quant.Q8_K {
			require.ErrorIs(t, err, compute.ErrArgument, typ)
		} else {
			require.NoError(t, err, typ)
		}
	}
}

// An infinite or NaN scale gives infinities and NaNs in its own block, and Check tells which block.
func TestBadScales(t *testing.T) {
	r := random(t)
	for _, typ := range quant.Types() {
		if typ.BlockLen() == 1 {
			continue
		}
		blocks := quantize(t, typ, normals(r, 4*typ.BlockLen()))
		require.NoError(t, quant.Check(typ, blocks))
		at := 2 * typ.BlockSize()
		switch typ {
		case quant.Q2_K:
			at += quant.Q2_KMin
		case quant.Q3_K:
			at += quant.Q3_KScale
		case quant.Q6_K:
			at += quant.Q6_KScale
		case quant.Q8_K:
			at += 2
		}
		binary.LittleEndian.PutUint16(blocks[at:], 0x7fc0) // a NaN in binary16 and as the upper half of a float32
		require.ErrorContains(t, quant.Check(typ, blocks), "block 2 ")
		y := dequantize(t, typ, blocks)
		for i, v := range y {
			require.Equal(t, i/typ.BlockLen() == 2, v != v, "%v: value %d is %v", typ, i, v)
		}
	}
}

func TestHalves(t *testing.T) {
	for h := range 1 << 16 {
		var b [2]byte
		binary.LittleEndian.PutUint16(b[:], uint16(h))
		want := float16.Frombits(uint16(h)).Float32()
		got := dequantize(t, quant.F16, b[:])[0]
		if want != want && got != got {
			continue
		}
		if math.Float32bits(want) != math.Float32bits(got) {
			t.Fatalf("%#04x is %v, not %v", h, want, got)
		}
	}
}

func TestScales(t *testing.T) {
	r := random(t)
	for range 1000 {
		var b, again [12]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		scales, mins := quant.UnpackScalesK4(&b)
		quant.PackScalesK4(&again, &scales, &mins)
		require.Equal(t, b, again)
		signed := quant.UnpackScalesQ3K(&b)
		again = [12]byte{}
		quant.PackScalesQ3K(&again, &signed)
		require.Equal(t, b, again)
	}
}

// FuzzDequantize feeds any bytes to all formats. What is finite can be quantised again, unless its scale is beyond range.
func FuzzDequantize(f *testing.F) {
	f.Add(uint32(quant.Q4_K), bytes.Repeat([]byte("0123456789abcdef"), 9))
	f.Add(uint32(quant.Q8_0), make([]byte, 2*34))
	f.Add(uint32(77), []byte{})
	f.Fuzz(func(t *testing.T, n uint32, b []byte) {
		typ := quant.Type(n)
		x := make([]float32, len(b)/max(typ.BlockSize(), 1)*typ.BlockLen())
		if err := quant.Dequantize(x, typ, b); err != nil {
			require.True(t, errors.Is(err, compute.ErrShape) || errors.Is(err, compute.ErrDType), err)
			return
		}
		checked := quant.Check(typ, b)
		again := make([]byte, len(b))
		if err := quant.Quantize(again, typ, x); err != nil {
			require.ErrorIs(t, err, compute.ErrArgument)
			return
		}
		require.NoError(t, quant.Check(typ, again))
		if checked == nil {
			for i, v := range dequantize(t, typ, again) {
				require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0), "value %d", i)
			}
		}
	})
}
