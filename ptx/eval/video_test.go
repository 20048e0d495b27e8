package eval

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

func TestVideoBytes(t *testing.T) {
	rng := ptxtest.Random(t)
	for range 500 {
		a, b, c := rng.Uint32(), rng.Uint32(), rng.Uint32()
		var sum, sad, added, less uint32
		var average uint32
		for i := range 4 {
			x, y := uint8(a>>(8*i)), uint8(b>>(8*i))
			d := x - y
			if y > x {
				d = y - x
			}
			sum |= uint32(d) << (8 * i)
			sad += uint32(d)
			s := int(int8(x)) + int(int8(y))
			if s > 127 {
				s = 127
			} else if s < -128 {
				s = -128
			}
			added |= uint32(uint8(s)) << (8 * i)
			average |= (uint32(x) + uint32(y) + 1) / 2 << (8 * i)
			if int8(x) < int8(y) {
				less++
			}
		}
		run := func(op string) uint32 { return uint32(of(t, op, 3)(uint64(a), uint64(b), uint64(c), 0)) }
		require.Equal(t, sum, run("vabsdiff4.u32.u32.u32"))
		require.Equal(t, sad+c, run("vabsdiff4.u32.u32.u32.add"))
		require.Equal(t, added, run("vadd4.s32.s32.s32.sat"))
		require.Equal(t, average, run("vavrg4.u32.u32.u32"))
		require.Equal(t, less+c, run("vset4.s32.s32.lt.add"))
	}
}

func TestVideoHalvesAndWords(t *testing.T) {
	rng := ptxtest.Random(t)
	for range 500 {
		a, b, c := rng.Uint32(), rng.Uint32(), rng.Uint32()
		run := func(op string) uint32 { return uint32(of(t, op, 3)(uint64(a), uint64(b), uint64(c), 0)) }
		lo, hi := max(int16(a), int16(b)), max(int16(a>>16), int16(b>>16))
		require.Equal(t, uint32(uint16(lo))|uint32(uint16(hi))<<16, run("vmax2.s32.s32.s32"))
		require.Equal(t, uint32(uint16(a)-uint16(b))|uint32(uint16(a>>16)-uint16(b>>16))<<16, run("vsub2.u32.u32.u32"))
		two := uint32(of(t, "vadd.u32.u32.u32.sat", 2)(uint64(a), uint64(b), 0, 0))
		want := a + b
		if want < a {
			want = 0xffffffff
		}
		require.Equal(t, want, two)
		require.Equal(t, uint32(min(int32(a-b), int32(c))), run("vsub.s32.s32.s32.min"))
		require.Equal(t, a+b+c, run("vadd.u32.u32.u32.add"))
	}
}
