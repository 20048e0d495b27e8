package lanes

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

// number is a float32 of any size, a special one now and then.
func number(r *rand.Rand) uint32 {
	switch r.IntN(8) {
	case 0:
		return []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00001, 0xffffffff, 1, 0x807fffff, 0x7f7fffff, 0x7f800001}[r.IntN(10)]
	case 1:
		return r.Uint32()
	}
	return math.Float32bits(float32(r.NormFloat64()))
}

// What vectors compute is what Go computes, in every bit.
func TestFloats(t *testing.T) {
	rng := testseed.Rand(t)
	for range 20000 {
		var x, y, z, got, want [Size]uint32
		for l := range Size {
			x[l], y[l], z[l] = number(rng), number(rng), number(rng)
			if rng.IntN(4) == 0 { // cancels
				z[l] = math.Float32bits(-float32(float64(fromBits(x[l])) * float64(fromBits(y[l]))))
			}
		}
		FMA(&got, &x, &y, &z)
		fmaGo(&want, &x, &y, &z)
		require.Equal(t, want, got, "fma of %x, %x, %x", x, y, z)
		for name, f := range map[string][2]func(r, x, y *[Size]uint32){"add": {Add, addGo}, "sub": {Sub, subGo}, "mul": {Mul, mulGo}} {
			f[0](&got, &x, &y)
			f[1](&want, &x, &y)
			require.Equal(t, want, got, "%s of %x, %x", name, x, y)
		}
		want = x
		fmaGo(&want, &want, &y, &want)
		FMA(&x, &x, &y, &x)
		require.Equal(t, want, x, "in place")
	}
}

func TestOffsets(t *testing.T) {
	rng := testseed.Rand(t)
	for range 2000 {
		const limit = 5000
		var x, got, want [Size]uint64
		var narrow [Size]uint32
		add, within, within32 := uint64(rng.IntN(100)), true, true
		for l := range x {
			x[l] = rng.Uint64N(limit - 100)
			if rng.IntN(40) == 0 {
				x[l] = []uint64{limit, rng.Uint64(), 1 << 63, ^uint64(0), ^uint64(0) - add, limit - add, limit - add + 1}[rng.IntN(7)]
			}
			narrow[l] = uint32(x[l])
			within = within && x[l]+add <= limit
			within32 = within32 && uint64(narrow[l])+add <= limit
		}
		a, b := Offsets(&got, &x, add, limit)
		c, d := offsetsGo(&want, &x, add, limit)
		require.Equal(t, want, got)
		require.Equal(t, [2]uint64{c, d}, [2]uint64{a, b})
		require.Equal(t, within, (a|b)>>63 == 0)
		a, b = Offsets32(&got, &narrow, add, limit)
		c, d = offsets32Go(&want, &narrow, add, limit)
		require.Equal(t, want, got)
		require.Equal(t, [2]uint64{c, d}, [2]uint64{a, b})
		require.Equal(t, within32, (a|b)>>63 == 0)
	}
}

func TestLoad4(t *testing.T) {
	rng := testseed.Rand(t)
	data := make([]byte, 4096)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	var off [Size]uint64
	for l := range off {
		off[l] = rng.Uint64N(4096/16) * 16
	}
	off[7] = 4096 - 16
	var r [4][Size]uint32
	Load4(&r[0], &r[1], &r[2], &r[3], data, &off)
	for l, a := range off {
		for e := range 4 {
			require.Equal(t, binary.LittleEndian.Uint32(data[int(a)+4*e:]), r[e][l])
		}
	}
}
