package tensormap_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// image is a map of 2 images of 9×7 pixels with 64 channels, for filters of 3×3 and a border of a pixel.
func image() tensormap.Map {
	return tensormap.Map{
		Type: tensormap.F16, Rank: 4, Address: 0x1000, Dims: [5]uint64{64, 9, 7, 2}, Strides: [4]uint64{128, 1152, 8064},
		Pixels: 40, Channels: 32, Lower: [3]int32{-1, -1}, Upper: [3]int32{-1, -1},
	}
}

func TestColumn(t *testing.T) {
	m := image()
	b, err := m.Encode()
	require.NoError(t, err)
	got, err := tensormap.Decode(b[:])
	require.NoError(t, err)
	m.ElementStrides = [5]uint32{1, 1, 1, 1}
	require.Equal(t, m, got)
	require.Equal(t, 40*32*2, m.BoxBytes())
	require.Equal(t, 32, m.RowLength())

	// All pixels of the output, from the sixth of the second row on: as many as rows and columns of the image.
	var want [][5]int64
	for n := range int64(2) {
		for y := range int64(7) {
			for x := range int64(9) {
				want = append(want, [5]int64{32, x - 1 + 2, y - 1 + 1, n})
			}
		}
	}
	var rows [][5]int64
	for e := range m.Rows([5]int64{32, 4, 0, 0}, [3]int64{2, 1}) {
		rows = append(rows, e)
	}
	require.Equal(t, want[9+5:9+5+40], rows)

	// Every second pixel of every third row.
	m.ElementStrides = [5]uint32{1, 2, 3, 1}
	want = nil
	for n := range int64(3) { // the third image is not there
		for y := int64(-1); y < 6; y += 3 {
			for x := int64(-1); x < 8; x += 2 {
				want = append(want, [5]int64{0, x, y, n})
			}
		}
	}
	rows = nil
	for e := range m.Rows([5]int64{0, -1, -1, 0}, [3]int64{}) {
		rows = append(rows, e)
	}
	require.Equal(t, want[:40], rows)

	require.NoError(t, m.Begins([5]int64{-3, -1, 5, 9}))
	require.ErrorIs(t, m.Begins([5]int64{0, -2, 0, 0}), compute.ErrArgument)
	require.ErrorIs(t, m.Begins([5]int64{0, 0, 6, 0}), compute.ErrArgument)
}

func TestValidateColumn(t *testing.T) {
	m := image()
	require.NoError(t, m.Validate())
	for want, change := range map[string]func(*tensormap.Map){
		"rank 2":                    func(m *tensormap.Map) { m.Rank = 2 },
		"both a box and pixels":     func(m *tensormap.Map) { m.Box[0] = 8 },
		"1025 pixels":               func(m *tensormap.Map) { m.Pixels = 1025 },
		"0 channels":                func(m *tensormap.Map) { m.Channels = 0 },
		"257 channels":              func(m *tensormap.Map) { m.Channels = 257 },
		"want -128 to 127":          func(m *tensormap.Map) { m.Lower[1] = -129 },
		"dimension 3 of a tensor":   func(m *tensormap.Map) { m.Upper[2] = 1 },
		"no pixel lies between":     func(m *tensormap.Map) { m.Lower[0], m.Upper[0] = 8, -1 },
		"without pixels":            func(m *tensormap.Map) { m.Pixels, m.Box = 0, [5]uint32{8, 1, 1, 1} },
		"68 bytes, want a multiple": func(m *tensormap.Map) { m.Channels = 34 },
	} {
		m := image()
		change(&m)
		require.ErrorContains(t, m.Validate(), want)
		require.ErrorIs(t, m.Validate(), compute.ErrArgument)
	}
	m.Swizzle = tensormap.Swizzle32
	require.ErrorContains(t, m.Validate(), "more than the span of the swizzle of 32 bytes")
}
