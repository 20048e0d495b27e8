package elementwise

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// RandomUniform lowers uniform random numbers in [0, 1).
func RandomUniform(s *kit.Step) error { return randomStep(s, uniformKernel) }

// RandomNormal lowers normal random numbers.
func RandomNormal(s *kit.Step) error { return randomStep(s, normalKernel) }

func randomStep(s *kit.Step, k *kit.Kernel) error {
	quads := kit.CeilDiv(s.Result.Len(), 4)
	s.Launch(k, s.GridStride(quads, elementwiseBlock), randomParams{quads, s.Attr.Options.(compute.RandomOptions).Stream, kit.In(0), kit.Out})
	return nil
}

var (
	uniformKernel = randomKernel("random_uniform", func(c scalar.Math, w [4]ptx.Reg[uint32]) (y [4]scalar.Float) {
		for i, v := range w {
			y[i] = ptx.Convert[float32](v.Shr(8)).Mul(0x1p-24)
		}
		return y
	})
	normalKernel = randomKernel("random_normal", func(c scalar.Math, w [4]ptx.Reg[uint32]) (y [4]scalar.Float) {
		for i := 0; i < 4; i += 2 {
			y[i], y[i+1] = boxMuller(c, w[i], w[i+1])
		}
		return y
	})
)

// randomParams are those of random numbers.
type randomParams struct {
	Quads  int
	Stream int
	Seed   kit.Buffer `of:"u32"`
	Y      kit.Buffer
}

func randomKernel(name string, f func(c scalar.Math, w [4]ptx.Reg[uint32]) [4]scalar.Float) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "random", Name: name, Block: [3]int{elementwiseBlock, 1, 1},
		Doc: "y is random numbers, four at a time, those after the end too."},
		func(k *ptx.Kernel, p *kit.Params, of *randomParams) {
			quads, stream := p.U32(&of.Quads), p.U32(&of.Stream)
			seed, y := kit.Ptr[uint32](p, &of.Seed, ptx.Align(4*catalogue.RandomSeed)), kit.Ptr[float32](p, &of.Y, ptx.Align(16))
			key := [catalogue.RandomSeed]ptx.Reg[uint32]{seed.Load(), seed.At(1).Load()}
			ptx.For(k, k.GlobalID(ptx.X), quads, k.Nctaid(ptx.X).Mul(elementwiseBlock), func(i ptx.Reg[uint32]) {
				words := philox(k, [4]ptx.Reg[uint32]{i, ptx.U32(0), stream, ptx.U32(0)}, key)
				y.Bytes(i.MulWide(16)).Store4(f(scalar.Math{K: k}, words))
			}, ptx.NoUnroll())
		})
}

// philox is reference.Philox.
func philox(k *ptx.Kernel, c [4]ptx.Reg[uint32], key [2]ptx.Reg[uint32]) [4]ptx.Reg[uint32] {
	factor0, factor1 := ptx.Imm[uint32](catalogue.PhiloxFactor0), ptx.Imm[uint32](catalogue.PhiloxFactor1)
	for round := range catalogue.PhiloxRounds {
		if round > 0 {
			key[0], key[1] = key[0].Add(catalogue.PhiloxWeyl0), key[1].Add(catalogue.PhiloxWeyl1)
		}
		c = [4]ptx.Reg[uint32]{
			c[2].MulHi(factor1).Xor(c[1]).Xor(key[0]), c[2].Mul(factor1),
			c[0].MulHi(factor0).Xor(c[3]).Xor(key[1]), c[0].Mul(factor0)}
	}
	return c
}

// boxMuller makes two normal numbers of two words, by Box and Muller. The angle is taken apart as an integer: quarters of a turn and what
// is left.
func boxMuller(c scalar.Math, u, v ptx.Reg[uint32]) (x, y scalar.Float) {
	first := ptx.Convert[float32](u.Shr(8).Add(1)).Mul(0x1p-24)
	r := c.FiniteLog(first).Mul(-2).Sqrt(ptx.Approx)
	turn := v.Shr(8)
	quarter := turn.Add(1 << 21).Shr(22)
	rest := ptx.Bitcast[int32](turn.Sub(quarter.Shl(22)))
	sin, cos := c.NearSine(ptx.Convert[float32](rest).Mul(2 * math.Pi * 0x1p-24))
	odd := quarter.And(1).Ne(0)
	signed := func(x scalar.Float, quarters ptx.Reg[uint32]) scalar.Float { // −x in the two quarters from the second on
		sign := quarters.And(2).Shl(30)
		return ptx.Bitcast[float32](ptx.Bitcast[uint32](x).Xor(sign))
	}
	x = signed(c.Where(odd, sin, cos), quarter.Add(1))
	y = signed(c.Where(odd, cos, sin), quarter)
	return r.Mul(x), r.Mul(y)
}
