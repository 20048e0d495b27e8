package tensormap_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

func valid() tensormap.Map {
	return tensormap.Map{
		Type: tensormap.F16, Rank: 2, Address: 0x1000, Dims: [5]uint64{100, 7}, Strides: [4]uint64{208}, Box: [5]uint32{64, 8},
		Swizzle: tensormap.Swizzle128,
	}
}

func TestRoundTrip(t *testing.T) {
	rng := ptxtest.Random(t)
	for range 500 {
		m := tensormap.Map{
			Type: tensormap.DataType(rng.IntN(13)), Rank: 1 + rng.IntN(5), Address: 16 * (1 + rng.Uint64N(1<<40)),
			Promotion: tensormap.L2Promotion(rng.IntN(4)),
		}
		for i := range m.Rank {
			m.Dims[i] = 1 + rng.Uint64N(1<<32)
			m.Box[i] = 1 + rng.Uint32N(256)
			m.ElementStrides[i] = 1 + rng.Uint32N(8)
			if i > 0 {
				m.Strides[i-1] = 16 * (1 + rng.Uint64N(1<<36-1))
			}
		}
		m.Box[0] = 16 * (1 + rng.Uint32N(16))
		b, err := m.Encode()
		require.NoError(t, err)
		got, err := tensormap.Decode(b[:])
		require.NoError(t, err)
		require.Equal(t, m, got)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		_, err = tensormap.Decode(b[:])
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err := tensormap.Decode(make([]byte, tensormap.Size))
	require.ErrorContains(t, err, "no tensor map")
	_, err = tensormap.Decode(nil)
	require.ErrorContains(t, err, "0 bytes")
}

func TestValidate(t *testing.T) {
	m := valid()
	require.NoError(t, m.Validate())
	for name, c := range map[string]struct {
		bad, good func(*tensormap.Map)
	}{
		"data type":   {func(m *tensormap.Map) { m.Type = 13 }, func(m *tensormap.Map) { m.Type = 9 }},
		"rank 0":      {func(m *tensormap.Map) { m.Rank = 0 }, func(m *tensormap.Map) { m.Rank = 1 }},
		"rank 6":      {func(m *tensormap.Map) { m.Rank = 6 }, nil},
		"address":     {func(m *tensormap.Map) { m.Address += 8 }, func(m *tensormap.Map) { m.Address += 16 }},
		"address 0x0": {func(m *tensormap.Map) { m.Address = 0 }, nil},
		"dimension 1": {func(m *tensormap.Map) { m.Dims[1] = 1<<32 + 1 }, func(m *tensormap.Map) { m.Dims[1] = 1 << 32 }},
		"dimension 0": {func(m *tensormap.Map) { m.Dims[0] = 0 }, func(m *tensormap.Map) { m.Dims[0] = 1 }},
		"stride of":   {func(m *tensormap.Map) { m.Strides[0] = 200 }, func(m *tensormap.Map) { m.Strides[0] = 224 }},
		"below 2^40":  {func(m *tensormap.Map) { m.Strides[0] = 1 << 40 }, func(m *tensormap.Map) { m.Strides[0] = 1<<40 - 16 }},
		"box has 257": {func(m *tensormap.Map) { m.Box[1] = 257 }, func(m *tensormap.Map) { m.Box[1] = 256 }},
		"box has 0":   {func(m *tensormap.Map) { m.Box[1] = 0 }, nil},
		"136 bytes":   {func(m *tensormap.Map) { m.Box[0] = 68 }, func(m *tensormap.Map) { m.Box[0] = 56 }},
		"144 bytes, more than the span": {func(m *tensormap.Map) { m.Box[0] = 72 },
			func(m *tensormap.Map) { m.Box[0], m.Swizzle = 72, tensormap.NoSwizzle }},
		"more than the span of the swizzle of 64 bytes": {func(m *tensormap.Map) { m.Swizzle = tensormap.Swizzle64 },
			func(m *tensormap.Map) { m.Swizzle, m.Box[0] = tensormap.Swizzle64, 32 }},
		"element stride 9": {func(m *tensormap.Map) { m.ElementStrides[1] = 9 }, func(m *tensormap.Map) { m.ElementStrides[1] = 8 }},
		"swizzle 4":        {func(m *tensormap.Map) { m.Swizzle = 4 }, nil},
		"at least 3":       {func(m *tensormap.Map) { m.Interleave = tensormap.Interleave16 }, nil},
		"interleave 3":     {func(m *tensormap.Map) { m.Interleave = 3 }, nil},
		"needs the swizzle of 32": {func(m *tensormap.Map) { m.Rank, m.Interleave = 3, tensormap.Interleave32 },
			func(m *tensormap.Map) {
				m.Rank, m.Interleave, m.Swizzle = 3, tensormap.Interleave32, tensormap.Swizzle32
				m.Dims[2], m.Box[2], m.Strides = 1, 1, [4]uint64{224, 4096}
			}},
		"NaN": {func(m *tensormap.Map) { m.Fill, m.Type = tensormap.FillNaN, tensormap.S32 },
			func(m *tensormap.Map) { m.Fill = tensormap.FillNaN }},
		"fill 2":      {func(m *tensormap.Map) { m.Fill = 2 }, nil},
		"promotion 4": {func(m *tensormap.Map) { m.Promotion = 4 }, func(m *tensormap.Map) { m.Promotion = 3 }},
	} {
		m := valid()
		c.bad(&m)
		_, err := m.Encode()
		require.ErrorIs(t, err, compute.ErrArgument, name)
		require.ErrorContains(t, err, name)
		if c.good != nil {
			m = valid()
			c.good(&m)
			require.NoError(t, m.Validate(), name)
		}
	}
}

func TestElements(t *testing.T) {
	m := valid()
	require.Equal(t, 64*8*2, m.BoxBytes())
	m.ElementStrides = [5]uint32{5, 3} // that of dimension 0 is ignored
	require.Equal(t, [5]int{64, 3, 1, 1, 1}, m.Counts())
	addr, ok := m.Element([5]int64{3, 2})
	require.True(t, ok)
	require.Equal(t, uint64(0x1000+2*208+3*2), addr)
	for _, at := range [][5]int64{{-1, 0}, {100, 0}, {0, 7}, {0, -1}} {
		_, ok = m.Element(at)
		require.False(t, ok)
	}
	require.Zero(t, m.FillBits())
	m.Fill = tensormap.FillNaN
	require.Equal(t, uint64(0xffff), m.FillBits())
}

// The patterns as the manual draws them: in row r of a tile as wide as the span, chunk c lies at c ^ f(r).
func TestSwizzle(t *testing.T) {
	for s, f := range map[tensormap.Swizzle]func(r int) int{
		tensormap.NoSwizzle:  func(int) int { return 0 },
		tensormap.Swizzle32:  func(r int) int { return r / 4 % 2 },
		tensormap.Swizzle64:  func(r int) int { return r / 2 % 4 },
		tensormap.Swizzle128: func(r int) int { return r % 8 },
	} {
		for r := range 64 {
			for c := range s.Span() / 16 {
				plain := uint64(r*s.Span() + 16*c + 5)
				require.Equal(t, uint64(r*s.Span()+16*(c^f(r))+5), s.Apply(plain), "%v row %d chunk %d", s, r, c)
				require.Equal(t, plain, s.Apply(s.Apply(plain)))
				require.Equal(t, s.Apply(plain)+uint64(s.Repeat()), s.Apply(plain+uint64(s.Repeat())))
			}
		}
	}
}
