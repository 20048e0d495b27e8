package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

func RandomUniform(s *step) error { return randomStep(s, uniformKernel) }

func RandomNormal(s *step) error { return randomStep(s, normalKernel) }

func randomStep(s *step, k *Kernel) error {
	quads := ceilDiv(s.out.Len(), 4)
	s.launch(k, s.strides(quads, elementwiseBlock), quads, s.Attr.Options.(compute.RandomOptions).Stream, operand(0), result)
	return nil
}

var (
	uniformKernel = randomKernel("random_uniform", func(c calc, w [4]ptx.Reg[uint32]) (y [4]float) {
		for i, v := range w {
			y[i] = c.mul(ptx.Convert[float32](c.k, ptx.Shr(c.k, v, u32(8))), num(0x1p-24))
		}
		return y
	})
	normalKernel = randomKernel("random_normal", func(c calc, w [4]ptx.Reg[uint32]) (y [4]float) {
		for i := 0; i < 4; i += 2 {
			y[i], y[i+1] = boxMuller(c, w[i], w[i+1])
		}
		return y
	})
)

func randomKernel(name string, f func(c calc, w [4]ptx.Reg[uint32]) [4]float) *Kernel {
	return register(Kernel{Family: "random", Name: name, Block: [3]int{elementwiseBlock, 1, 1},
		Doc: "y is random numbers, four at a time, those behind the end too. Parameters: u32 quads, u32 stream, u32* seed, f32* y.",
		build: func(k *ptx.Kernel) {
			quads, stream := ptx.Param[uint32](k, "quads"), ptx.Param[uint32](k, "stream")
			seed := ptx.PointerParam[uint32](k, "seed", ptx.Align(4*catalogue.RandomSeed))
			y := ptx.PointerParam[float32](k, "y", ptx.Align(16))
			key := [catalogue.RandomSeed]ptx.Reg[uint32]{ptx.Load(k, seed), ptx.Load(k, seed.At(1))}
			ptx.For(k, k.GlobalID(ptx.X), quads, ptx.Mul(k, k.Nctaid(ptx.X), u32(elementwiseBlock)), func(i ptx.Reg[uint32]) {
				words := philox(k, [4]ptx.Reg[uint32]{i, u32(0), stream, u32(0)}, key)
				ptx.Store4(k, ptx.AtByte(k, y, ptx.MulWideU32(k, i, u32(16))), f(calc{k}, words))
			}, ptx.NoUnroll())
		}})
}

// philox is reference.Philox.
func philox(k *ptx.Kernel, c [4]ptx.Reg[uint32], key [2]ptx.Reg[uint32]) [4]ptx.Reg[uint32] {
	factor0, factor1 := ptx.Imm[uint32](catalogue.PhiloxFactor0), ptx.Imm[uint32](catalogue.PhiloxFactor1)
	for round := range catalogue.PhiloxRounds {
		if round > 0 {
			key[0], key[1] = ptx.Add(k, key[0], ptx.Imm[uint32](catalogue.PhiloxWeyl0)), ptx.Add(k, key[1], ptx.Imm[uint32](catalogue.PhiloxWeyl1))
		}
		c = [4]ptx.Reg[uint32]{
			ptx.Xor(k, ptx.Xor(k, ptx.MulHi(k, c[2], factor1), c[1]), key[0]), ptx.Mul(k, c[2], factor1),
			ptx.Xor(k, ptx.Xor(k, ptx.MulHi(k, c[0], factor0), c[3]), key[1]), ptx.Mul(k, c[0], factor0)}
	}
	return c
}

// boxMuller makes two normal numbers of two words, by Box and Muller. The angle is taken apart as an integer: quarters of a turn and what
// is left.
func boxMuller(c calc, u, v ptx.Reg[uint32]) (x, y float) {
	k := c.k
	first := c.mul(ptx.Convert[float32](k, ptx.Add(k, ptx.Shr(k, u, u32(8)), u32(1))), num(0x1p-24))
	r := ptx.Sqrt(k, c.mul(c.finiteLog(first), num(-2)), ptx.Approx)
	turn := ptx.Shr(k, v, u32(8))
	quarter := ptx.Shr(k, ptx.Add(k, turn, u32(1<<21)), u32(22))
	rest := ptx.Bitcast[int32](k, ptx.Sub(k, turn, ptx.Shl(k, quarter, u32(22))))
	sin, cos := c.nearSine(c.mul(ptx.Convert[float32](k, rest), num(2*math.Pi*0x1p-24)))
	odd := ptx.Ne(k, ptx.And(k, quarter, u32(1)), u32(0))
	signed := func(x float, quarters ptx.Reg[uint32]) float { // −x in the two quarters from the second on
		sign := ptx.Shl(k, ptx.And(k, quarters, u32(2)), u32(30))
		return ptx.Bitcast[float32](k, ptx.Xor(k, ptx.Bitcast[uint32](k, x), sign))
	}
	x = signed(c.where(odd, sin, cos), ptx.Add(k, quarter, u32(1)))
	y = signed(c.where(odd, cos, sin), quarter)
	return c.mul(r, x), c.mul(r, y)
}
