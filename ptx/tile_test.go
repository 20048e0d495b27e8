package ptx_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx"
)

// The table in the documentation of TileLayout.
func TestTileConflicts(t *testing.T) {
	for _, c := range []struct {
		layout                     ptx.TileLayout
		row, column, rows8, vector int
	}{
		{ptx.TileLayout{Rows: 32, Cols: 32, Size: 4}, 1, 32, 8, 1},
		{ptx.TileLayout{Rows: 32, Cols: 32, Size: 4, Pad: 1}, 1, 1, 0, 0},
		{ptx.TileLayout{Rows: 32, Cols: 32, Size: 4, Pad: 4}, 1, 4, 1, 1},
		{ptx.TileLayout{Rows: 32, Cols: 32, Size: 4, Swizzled: true}, 1, 4, 1, 1},
		{ptx.TileLayout{Rows: 32, Cols: 64, Size: 2}, 1, 32, 8, 1},
		{ptx.TileLayout{Rows: 32, Cols: 64, Size: 2, Pad: 8}, 1, 4, 1, 1},
		{ptx.TileLayout{Rows: 32, Cols: 64, Size: 2, Swizzled: true}, 1, 4, 1, 1},
		{ptx.TileLayout{Rows: 32, Cols: 32, Size: 2, Swizzled: true}, 1, 4, 1, 1},
		{ptx.TileLayout{Rows: 32, Cols: 16, Size: 2, Swizzled: true}, 0, 4, 1, 1},
		{ptx.TileLayout{Rows: 32, Cols: 128, Size: 2, Swizzled: true}, 1, 4, 1, 1},
	} {
		l := c.layout
		require.NoError(t, l.Check())
		require.Equal(t, []int{c.row, c.column, c.rows8, c.vector},
			[]int{l.RowConflicts(), l.ColumnConflicts(), l.LdMatrixConflicts(), l.VectorConflicts()}, "%+v", l)
	}
}

// No two elements share a byte, and all lie inside.
func TestTileOffsets(t *testing.T) {
	for _, l := range []ptx.TileLayout{
		{Rows: 5, Cols: 7, Size: 4}, {Rows: 5, Cols: 7, Size: 2, Pad: 3}, {Rows: 9, Cols: 8, Size: 4, Swizzled: true},
		{Rows: 9, Cols: 64, Size: 1, Swizzled: true}, {Rows: 9, Cols: 32, Size: 8, Swizzled: true},
	} {
		require.NoError(t, l.Check())
		seen := map[int]bool{}
		for r := range l.Rows {
			for c := range l.Cols {
				at := l.Offset(r, c)
				require.False(t, seen[at])
				require.Zero(t, at%l.Size)
				require.LessOrEqual(t, at+l.Size, l.Bytes())
				seen[at] = true
			}
		}
	}
	for _, l := range []ptx.TileLayout{{}, {Rows: 1, Cols: 1, Size: 3}, {Rows: 8, Cols: 24, Size: 4, Swizzled: true},
		{Rows: 8, Cols: 48, Size: 4, Swizzled: true}, {Rows: 8, Cols: 8, Size: 4, Pad: -1}} {
		require.ErrorIs(t, l.Check(), compute.ErrArgument)
	}
}

func TestBankConflicts(t *testing.T) {
	lanes := func(f func(i int) int) []int { return numbers(32, f) }
	for _, c := range []struct {
		size, want int
		at         func(i int) int
	}{
		{4, 1, func(i int) int { return 4 * i }},
		{4, 1, func(int) int { return 400 }},              // one word for all
		{4, 2, func(i int) int { return 8 * i }},          // two words a bank
		{4, 32, func(i int) int { return 128 * i }},       // one bank
		{4, 1, func(i int) int { return 4 * (i * 33) }},   // odd stride
		{1, 1, func(i int) int { return i }},              // four lanes a word
		{2, 2, func(i int) int { return 2 * i * 4 }},      // 8 bytes apart
		{8, 1, func(i int) int { return 8 * i }},          // half a warp at a time
		{8, 2, func(i int) int { return 16 * i }},         //
		{16, 1, func(i int) int { return 16 * i }},        // a quarter at a time
		{16, 8, func(i int) int { return 128 * i }},       //
		{16, 1, func(i int) int { return 128 * (i / 8) }}, // the same for all of a quarter
	} {
		require.Equal(t, c.want, ptx.BankConflicts(c.size, lanes(c.at)))
	}
	require.Zero(t, ptx.BankConflicts(4, nil))
}

// Rounding to 16 bits, against arithmetic in float64.
func TestHalves(t *testing.T) {
	for h := range 1 << 16 {
		if x := f16(uint16(h)); !math.IsNaN(x) {
			require.Equal(t, ptx.F16(h), ptx.F16Of(float32(x)))
		}
	}
	r := ptxtest.Random(t)
	for range 100000 {
		x := math.Float32frombits(r.Uint32())
		got, bgot := ptx.F16Of(x), ptx.BF16Of(x)
		if x != x {
			require.True(t, math.IsNaN(f16(uint16(got))))
			require.True(t, bgot&0x7f80 == 0x7f80 && bgot&0x7f != 0)
			continue
		}
		below, above := f16(uint16(got)-1), f16(uint16(got)+1)
		for _, y := range []float64{below, above} {
			if !math.IsNaN(y) && !math.IsInf(y, 0) && got&0x7fff != 0x7c00 && got&0x7fff != 0 {
				require.LessOrEqual(t, math.Abs(float64(x)-f16(uint16(got))), math.Abs(float64(x)-y), "%v", x)
			}
		}
		if got&0x7fff == 0x7c00 {
			require.GreaterOrEqual(t, math.Abs(float64(x)), 65520.0)
		}
		b := math.Float32frombits(uint32(bgot) << 16)
		if !math.IsInf(float64(b), 0) {
			require.LessOrEqual(t, math.Abs(float64(x)-float64(b)), math.Abs(float64(b))/256+1e-40)
		}
	}
	for x, want := range map[float32]ptx.F16{65519: 0x7bff, 65520: 0x7c00, 1 << 30: 0x7c00, 0x1p-25: 0, 0x1.8p-25: 1, 0x1p-24: 1,
		0x1.8p-24: 2, 0x1.ffep-15: 0x0400, 2049: 0x6800, 2051: 0x6802} {
		require.Equal(t, want, ptx.F16Of(x), x)
	}
	require.Equal(t, ptx.F16(0x8000), ptx.F16Of(float32(math.Copysign(0, -1))))
	require.Equal(t, ptx.BF16(0x3f80), ptx.BF16Of(1+1.0/256))
	require.Equal(t, ptx.BF16(0x3f82), ptx.BF16Of(1+3.0/256))
	require.Equal(t, ptx.BF16(0xff80), ptx.BF16Of(float32(math.Inf(-1))))
}

// f16 is the value of a half.
func f16(h uint16) float64 {
	sign, e, m := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		return math.Inf(int(sign))
	case e == 0:
		return math.Copysign(math.Ldexp(m, -24), sign)
	}
	return sign * math.Ldexp(1024+m, e-25)
}
