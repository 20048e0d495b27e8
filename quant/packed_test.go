package quant_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

var weightFormats = []compute.BlockFormat{compute.Q4_0, compute.Q4_1, compute.Q5_0, compute.Q5_1, compute.Q8_0,
	compute.Q2_K, compute.Q3_K, compute.Q4_K, compute.Q5_K, compute.Q6_K}

func TestPack(t *testing.T) {
	n := 0
	r, again := random(t), &quant.Packed{}
	for _, typ := range quant.Types() {
		planes := typ.Planes()
		if planes == nil {
			_, err := quant.PackedWords(typ, 256)
			require.ErrorIs(t, err, compute.ErrUnsupported)
			continue
		}
		n++
		sum := 0
		for i, p := range planes {
			require.True(t, i > 0 || p.Size%16 == 0, "the first plane is whole vectors")
			require.True(t, i != 1 || len(planes) == 2 || p.Size%4 == 0, "the second is whole words, where another follows")
			sum += p.Size
		}
		require.Equal(t, typ.BlockSize(), sum, "%v", typ)
		for _, blocks := range []int{0, 1, 2, 3, 16, 17} {
			m := &quant.Matrix{Type: typ, Rows: 3, Cols: blocks * typ.BlockLen(), Data: make([]byte, 3*blocks*typ.BlockSize())}
			for i := range m.Data {
				m.Data[i] = byte(r.Uint32())
			}
			p, err := quant.Pack(m)
			require.NoError(t, err)
			require.NoError(t, quant.PackInto(again, m))
			require.Equal(t, p.Type, again.Type)
			require.Equal(t, p.Shape(), again.Shape())
			require.True(t, slices.Equal(p.Words, again.Words), "whatever was in it before")
			words, err := quant.PackedWords(typ, m.Cols)
			require.NoError(t, err)
			require.Equal(t, []int{3, words}, p.Shape())
			require.Zero(t, words%4)
			cols, err := quant.PackedCols(typ, words)
			require.NoError(t, err)
			require.Equal(t, m.Cols, cols)
			back, err := p.Unpack()
			require.NoError(t, err)
			require.Equal(t, m, back)
			if blocks > 1 { // the second block's first plane follows the first's
				at, b := planes[0].Size, planes[0].Offset+typ.BlockSize()
				got := binary.LittleEndian.AppendUint32(nil, p.Words[at/4])
				require.Equal(t, m.Data[b:b+4], got)
			}
		}
	}
	require.Equal(t, len(weightFormats), n)
	for _, f := range weightFormats {
		require.Equal(t, quant.Type(f).String(), f.String())
	}
}

func TestPackErrors(t *testing.T) {
	short := &quant.Matrix{Type: quant.Q4_0, Rows: 2, Cols: 32, Data: make([]byte, 18)}
	_, err := quant.Pack(short)
	require.ErrorIs(t, err, compute.ErrShape)
	p := &quant.Packed{Type: quant.Q8_0, Rows: 1, Cols: 32, Words: []uint32{1, 2}}
	require.ErrorIs(t, quant.PackInto(p, short), compute.ErrShape)
	require.Equal(t, &quant.Packed{Type: quant.Q8_0, Rows: 1, Cols: 32, Words: []uint32{1, 2}}, p)
	_, err = quant.Pack(&quant.Matrix{Type: quant.Q4_0, Rows: 1, Cols: 31})
	require.ErrorIs(t, err, compute.ErrShape)
	_, err = quant.Pack(&quant.Matrix{Type: quant.Q8_1, Rows: 1, Cols: 32, Data: make([]byte, 36)})
	require.ErrorIs(t, err, compute.ErrUnsupported)
	for _, words := range []int{-1, 1, 7, 9, 12} {
		_, err = quant.PackedCols(quant.Q4_K, words)
		require.ErrorIs(t, err, compute.ErrShape)
	}
	_, err = quant.PackedCols(quant.F16, 4)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = (&quant.Packed{Type: quant.Q4_0, Rows: 2, Cols: 32, Words: make([]uint32, 15)}).Unpack()
	require.ErrorIs(t, err, compute.ErrShape)
}
