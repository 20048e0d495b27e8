package rope

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

const ropeThreads = 256

// Arguments in the array sizes of the rope kernels.
const (
	ropeTotal     = iota // threads that have something to do
	ropeHeads            //
	ropeD                //
	ropeDims             //
	ropePairs            // units of a head that turn; the others are copied
	ropeChunk            // heads of a thread
	ropeFlags            //
	ropeUnits            // of a head, as divisors from here on
	ropeChunks    = ropeUnits + scalar.DivisorWords
	ropePositions = ropeChunks + scalar.DivisorWords
	ropeWords     = ropePositions + scalar.DivisorWords
)

// Flags of the rope kernels.
const (
	ropeNeoX    = 1 << iota // pairs are half of Dims apart
	ropeVector              // units are of four pairs, else of one
	ropeFactors             // there are some
)

const ropeDoc = " A thread has the same unit, pairs that turn or elements that do not, of some heads of a token. " +
	"Parameters: u32 sizes[] (threads, heads, d, dims, units that turn, heads of a thread, flags; units, threads that share a " +
	"token's heads and positions as divisors), steps[] (the frequency of pair 0, then what the bits of a pair's number make of it), " +
	"f32* x, i32* positions, f32* factors, f32* y."

var (
	ropeFast = kit.Register(kit.Kernel{Family: "rope", Name: "rope", Block: [3]int{ropeThreads, 1, 1},
		Doc: "Turns pairs of elements; steps are f32, frequencies in radians." + ropeDoc,
		Build: func(k *ptx.Kernel) {
			buildRope(k, ropeAngles[float32]{of: func(position, frequency, factor scalar.Float) scalar.Float {
				return ptx.Div(k, ptx.Mul(k, position, frequency), factor)
			}, position: ptx.Convert[float32, int32], factor: func(_ *ptx.Kernel, f scalar.Float, _ ...ptx.Mod) scalar.Float { return f }})
		}})
	ropePrecise = kit.Register(kit.Kernel{Family: "rope", Name: "rope_precise", Block: [3]int{ropeThreads, 1, 1},
		Doc: "Turns pairs of elements; steps are f64, frequencies in turns." + ropeDoc,
		Build: func(k *ptx.Kernel) {
			buildRope(k, ropeAngles[float64]{of: func(position, frequency, factor ptx.Reg[float64]) scalar.Float {
				turns := ptx.Div(k, ptx.Mul(k, position, frequency), factor)
				part := ptx.Sub(k, turns, ptx.Round(k, turns, ptx.RNI))
				return ptx.Mul(k, ptx.Convert[float32](k, part, ptx.RN), scalar.Num(2*math.Pi))
			}, position: ptx.Convert[float64, int32], factor: ptx.Convert[float64, float32]})
		}})
)

// ropeAngles is how angles are computed, in T.
type ropeAngles[T float32 | float64] struct {
	of       func(position, frequency, factor ptx.Reg[T]) scalar.Float
	position func(k *ptx.Kernel, x ptx.Reg[int32], mods ...ptx.Mod) ptx.Reg[T]
	factor   func(k *ptx.Kernel, x scalar.Float, mods ...ptx.Mod) ptx.Reg[T]
}

func buildRope[T float32 | float64](k *ptx.Kernel, angles ropeAngles[T]) {
	sizes := ptx.ParamArray[uint32](k, "sizes", ropeWords)
	steps := ptx.ParamArray[T](k, "steps", catalogue.RopeBits+1)
	x, positions := ptx.PointerParam[float32](k, "x", ptx.Align(16)), ptx.PointerParam[int32](k, "positions")
	factors, y := ptx.PointerParam[float32](k, "factors", ptx.Align(16)), ptx.PointerParam[float32](k, "y", ptx.Align(16))
	size := func(i int) ptx.Reg[uint32] { return sizes.At(k, i) }
	i := k.GlobalID(ptx.X)
	k.ReturnIf(ptx.Ge(k, i, size(ropeTotal)))
	rest, unit := scalar.DivisorAt(k, sizes, ropeUnits).Split(k, i)
	token, chunk := scalar.DivisorAt(k, sizes, ropeChunks).Split(k, rest)
	first := ptx.Mul(k, chunk, size(ropeChunk))
	last := ptx.Min(k, ptx.Add(k, first, size(ropeChunk)), size(ropeHeads))
	flags, d, dims := size(ropeFlags), size(ropeD), size(ropeDims)
	head := ptx.MulWideU32(k, ptx.Mad(k, token, size(ropeHeads), first), d)
	x, y = ptx.At(k, x, head), ptx.At(k, y, head)

	// heads applies f to the places of an element in each head of x and y.
	heads := func(element ptx.Reg[uint32], f func(x, y ptx.Ptr[ptx.Global, float32])) {
		from, to := ptx.PtrVarOf(k, ptx.At(k, x, element)), ptx.PtrVarOf(k, ptx.At(k, y, element))
		ptx.For(k, first, last, scalar.U32(1), func(ptx.Reg[uint32]) {
			f(from.Get(), to.Get())
			from.Set(ptx.At(k, from.Get(), d))
			to.Set(ptx.At(k, to.Get(), d))
		}, ptx.NoUnroll())
	}
	vector := scalar.HasFlag(k, flags, ropeVector)
	k.If(ptx.Ge(k, unit, size(ropePairs)), func() {
		over := ptx.Sub(k, unit, size(ropePairs))
		k.If(vector, func() {
			at := ptx.Add(k, dims, ptx.Shl(k, over, scalar.U32(2)))
			heads(at, func(x, y ptx.Ptr[ptx.Global, float32]) { ptx.Store4(k, y, ptx.Load4(k, x)) })
		}, func() {
			at := ptx.Add(k, dims, over)
			heads(at, func(x, y ptx.Ptr[ptx.Global, float32]) { ptx.Store(k, y, ptx.Load(k, x)) })
		})
	}, func() {
		_, p := scalar.DivisorAt(k, sizes, ropePositions).Split(k, token)
		position := angles.position(k, ptx.Load(k, ptx.At(k, positions, p)))
		neox, scaled := scalar.HasFlag(k, flags, ropeNeoX), scalar.HasFlag(k, flags, ropeFactors)
		half := ptx.Shr(k, dims, scalar.U32(1))
		turn := turning{k}
		k.If(vector, func() {
			pair := ptx.Shl(k, unit, scalar.U32(2))
			f := [4]ptx.Reg[T]{frequencyOf(k, steps, pair, 2)}
			f[1], f[2] = ptx.Mul(k, f[0], steps.At(k, 1)), ptx.Mul(k, f[0], steps.At(k, 2))
			f[3] = ptx.Mul(k, f[1], steps.At(k, 2))
			var factor [4]*ptx.Var[float32]
			for j := range factor {
				factor[j] = ptx.VarOf(k, scalar.Num(1))
			}
			k.If(scaled, func() {
				for j, v := range ptx.Load4(k, ptx.At(k, factors, pair)) {
					factor[j].Set(v)
				}
			})
			var sin, cos [4]scalar.Float
			for j := range f {
				sin[j], cos[j] = turn.angle(angles.of(position, f[j], angles.factor(k, factor[j].Get())))
			}
			k.If(neox, func() {
				apart := ptx.MulWideU32(k, half, scalar.U32(4))
				heads(pair, func(x, y ptx.Ptr[ptx.Global, float32]) {
					a, b := ptx.Load4(k, x), ptx.Load4(k, ptx.AtByte(k, x, apart))
					for j := range a {
						a[j], b[j] = turn.pair(a[j], b[j], sin[j], cos[j])
					}
					ptx.Store4(k, y, a)
					ptx.Store4(k, ptx.AtByte(k, y, apart), b)
				})
			}, func() {
				heads(ptx.Shl(k, pair, scalar.U32(1)), func(x, y ptx.Ptr[ptx.Global, float32]) {
					a, b := ptx.Load4(k, x), ptx.Load4(k, x.At(4))
					for j := range 2 {
						a[2*j], a[2*j+1] = turn.pair(a[2*j], a[2*j+1], sin[j], cos[j])
						b[2*j], b[2*j+1] = turn.pair(b[2*j], b[2*j+1], sin[j+2], cos[j+2])
					}
					ptx.Store4(k, y, a)
					ptx.Store4(k, y.At(4), b)
				})
			})
		}, func() {
			factor := ptx.LoadIf(k, scaled, ptx.At(k, factors, unit), scalar.Num(1))
			sin, cos := turn.angle(angles.of(position, frequencyOf(k, steps, unit, 0), angles.factor(k, factor)))
			a := ptx.Select(k, neox, unit, ptx.Shl(k, unit, scalar.U32(1)))
			apart := ptx.MulWideU32(k, ptx.Select(k, neox, half, scalar.U32(1)), scalar.U32(4))
			heads(a, func(x, y ptx.Ptr[ptx.Global, float32]) {
				v, w := turn.pair(ptx.Load(k, x), ptx.Load(k, ptx.AtByte(k, x, apart)), sin, cos)
				ptx.Store(k, y, v)
				ptx.Store(k, ptx.AtByte(k, y, apart), w)
			})
		})
	})
}

// frequencyOf is that of a pair whose number has no bits below bit low.
func frequencyOf[T float32 | float64](k *ptx.Kernel, steps ptx.Array[T], pair ptx.Reg[uint32], low int) ptx.Reg[T] {
	f := steps.At(k, 0)
	for j := low; j < catalogue.RopeBits; j++ {
		bit := ptx.Ne(k, ptx.And(k, pair, ptx.Imm(uint32(1)<<j)), scalar.U32(0))
		f = ptx.Select(k, bit, ptx.Mul(k, f, steps.At(k, j+1)), f)
	}
	return f
}

// turning turns pairs by angles.
type turning struct{ k *ptx.Kernel }

func (t turning) angle(a scalar.Float) (sin, cos scalar.Float) {
	c := scalar.Math{K: t.k}
	return c.Sine(a, 0), c.Sine(a, 1)
}

func (t turning) pair(a, b, sin, cos scalar.Float) (scalar.Float, scalar.Float) {
	c := scalar.Math{K: t.k}
	return c.Fma(a, cos, c.Neg(c.Mul(b, sin))), c.Fma(a, sin, c.Mul(b, cos))
}
