package scalar

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/sim"
)

// A thread for each pair of a dividend and a divisor, which lie together with the divisor's other words; the quotient and the
// remainder go into their place.
func TestDivide(t *testing.T) {
	m := ptx.NewModule()
	k := m.Kernel("divide")
	n := ptx.Param[uint32](k, "n")
	p := ptx.PointerParam[uint32](k, "p", ptx.Align(16))
	i := k.GlobalID(ptx.X)
	k.ReturnIf(i.Ge(n))
	p = p.At(i.Mul(4))
	v := p.Load4()
	by := Divisor{D: v[1], multiplier: v[2], shift: v[3]}
	q, r := by.Split(k, v[0])
	p.Store4([4]ptx.Reg[uint32]{q, r, by.Divide(k, v[0]), v[1]})
	module, err := m.Build()
	require.NoError(t, err)

	rng := ptxtest.Random(t)
	// Numbers of every magnitude, close to powers of two and to each other's multiples.
	number := func() uint32 {
		x := rng.Uint32() >> (1 + rng.IntN(31))
		if rng.IntN(2) == 0 {
			x = uint32(1)<<rng.IntN(31) + uint32(rng.IntN(3)) - 1
		}
		return min(x, math.MaxInt32)
	}
	var pairs [][2]uint32
	for _, d := range []uint32{1, 2, 3, 4, 5, 6, 7, 9, 10, 255, 256, 257, 641, 65535, 65536, 65537, 1 << 30, 1<<30 + 1,
		math.MaxInt32 - 1, math.MaxInt32, 1 << 31} {
		for _, x := range []uint32{0, 1, 2, d - 1, d, d + 1, 1<<30 - 1, 1 << 30, math.MaxInt32 - 1, math.MaxInt32} {
			pairs = append(pairs, [2]uint32{min(x, math.MaxInt32), d})
		}
	}
	for range 30_000 {
		d := max(1, number())
		x := number()
		switch rng.IntN(3) {
		case 0: // just at a multiple, where a multiplier that is too small or too large shows
			x = x / d * d
		case 1:
			x = x/d*d + d - 1
		}
		pairs = append(pairs, [2]uint32{min(x, math.MaxInt32), d})
	}
	var data []byte
	for _, pair := range pairs {
		for _, w := range append([]uint32{pair[0]}, DivisorOf(int(pair[1]))...) {
			data = binary.LittleEndian.AppendUint32(data, w)
		}
	}
	gpu := sim.New(sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64()})
	loaded, err := gpu.Load(module)
	require.NoError(t, err)
	kernel, err := loaded.Kernel("divide")
	require.NoError(t, err)
	at, err := gpu.Alloc(len(data))
	require.NoError(t, err)
	require.NoError(t, gpu.Write(at, data))
	params, err := kernel.Pack(uint32(len(pairs)), at)
	require.NoError(t, err)
	_, err = gpu.Run(context.Background(), kernel, sim.Launch{Grid: sim.Dim3{X: (len(pairs) + 255) / 256}, Block: sim.Dim3{X: 256},
		Params: params})
	require.NoError(t, err)
	require.NoError(t, gpu.Read(data, at))
	for i, pair := range pairs {
		x, d := pair[0], pair[1]
		got := [3]uint32{}
		for j := range got {
			got[j] = binary.LittleEndian.Uint32(data[16*i+4*j:])
		}
		require.Equal(t, [3]uint32{x / d, x % d, x / d}, got, "%d / %d", x, d)
	}
}
