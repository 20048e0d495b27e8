package opt_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// threads is the number of threads that run a random program: a full warp, which diverges.
const threads = 32

// execute runs the kernel of a random module on the software GPU, with all checks, and returns what is in memory then and how
// many instructions its lanes went through.
func execute(m *ir.Module, data []byte) (out []byte, steps uint64, err error) {
	g := sim.New(sim.Config{Checks: sim.AllChecks, MaxSteps: 1 << 20})
	loaded, err := g.Load(m)
	if err != nil {
		return nil, 0, err
	}
	k, err := loaded.Kernel("k")
	if err != nil {
		return nil, 0, err
	}
	at, err := g.Alloc(len(data))
	if err != nil {
		return nil, 0, err
	}
	if err := g.Write(at, data); err != nil {
		return nil, 0, err
	}
	params, err := k.Pack(at, uint32(12345))
	if err != nil {
		return nil, 0, err
	}
	stats, err := g.Run(context.Background(), k, sim.Launch{Grid: sim.Dim3{X: 1, Y: 1, Z: 1},
		Block: sim.Dim3{X: threads, Y: 1, Z: 1}, Params: params})
	if err != nil {
		return nil, 0, err
	}
	out = make([]byte, len(data))
	return out, stats.Lanes, g.Read(out, at)
}

// randomData is the words of all threads, among them such as compilers are caught with.
func randomData(rng *rand.Rand) []byte {
	data := make([]byte, threads*stride)
	special := []uint64{0, 1, ^uint64(0), 0x7f800000, 0x80000000, 0xffc00000, 0x3f800000, 1 << 63, 0x7ff0000000000000, 0x00000001}
	for t := range threads {
		for i := range slots {
			v := rng.Uint64()
			switch rng.IntN(4) {
			case 0:
				v = special[rng.IntN(len(special))]
			case 1:
				v = rng.Uint64N(20)
			}
			binary.LittleEndian.PutUint64(data[t*stride+i*8:], v)
		}
	}
	return data
}
