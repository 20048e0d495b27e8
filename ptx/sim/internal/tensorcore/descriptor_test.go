package tensorcore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/tensormap"
)

func TestDescriptorFields(t *testing.T) {
	d, err := DecodeDescriptor(0x12340>>4 | 0x4560>>4<<16 | 0x7890>>4<<32 | 5<<49 | 1<<62)
	require.NoError(t, err)
	require.Equal(t, Descriptor{start: 0x12340, leading: 0x4560, stride: 0x7890, base: 5, swizzle: tensormap.Swizzle128}, d)
	for code, s := range []tensormap.Swizzle{tensormap.NoSwizzle, tensormap.Swizzle128, tensormap.Swizzle64, tensormap.Swizzle32} {
		d, err := DecodeDescriptor(uint64(code) << 62)
		require.NoError(t, err)
		require.Equal(t, s, d.swizzle)
	}
	_, err = DecodeDescriptor(1 << 46)
	require.ErrorContains(t, err, "outside its fields")
}

// The canonical layouts, stated as sums of digits times strides as CuTe writes them: in units of 16 bytes for the strides T, of
// elements inside, and the swizzle on top.
func TestDescriptorCanonical(t *testing.T) {
	const start, lbo, sbo = 0x8000, 0x2000, 0x1400
	for _, size := range []int{1, 2, 4} {
		T := 16 / size
		for _, s := range []tensormap.Swizzle{tensormap.NoSwizzle, tensormap.Swizzle32, tensormap.Swizzle64, tensormap.Swizzle128} {
			d := Descriptor{start: start, leading: lbo, stride: sbo, swizzle: s}
			w := s.Span() / 16
			for mn := range 256 {
				for k := range 32 / size {
					var plain int
					if s == tensormap.NoSwizzle { // ((8,m),(T,2)):((1T,SBO),(1,LBO))
						plain = mn%8*16 + mn/8*sbo + k%T*size + k/T*lbo
					} else { // ((8,m),(T,2)):((wT,SBO),(1,T))
						plain = mn%8*w*16 + mn/8*sbo + k%T*size + k/T*16
					}
					require.EqualValues(t, s.Apply(uint64(start+plain)), d.Address(mn, k, size, false), "%v mn %d k %d", s, mn, k)
					if size != 2 {
						continue
					}
					if s == tensormap.NoSwizzle { // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
						plain = mn%T*2 + mn/T*sbo + k%8*16 + k/8*lbo
					} else { // ((T,w,m),(8,k)):((1,T,LBO),(wT,SBO))
						plain = mn%T*2 + mn/T%w*16 + mn/T/w*lbo + k%8*w*16 + k/8*sbo
					}
					require.EqualValues(t, s.Apply(uint64(start+plain)), d.Address(mn, k, size, true), "%v mn %d k %d", s, mn, k)
				}
			}
		}
	}
	// A pattern that starts off its boundary, with the base offset that says so, is the same pattern moved.
	d0 := Descriptor{start: 0x8000, stride: 1024, swizzle: tensormap.Swizzle128}
	d1 := Descriptor{start: 0x8000 + 3*128, stride: 1024, swizzle: tensormap.Swizzle128, base: 3}
	for mn := range 64 {
		require.Equal(t, d0.Address(mn, 5, 2, false)+3*128, d1.Address(mn, 5, 2, false))
	}
}
