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
				return position.Mul(frequency).Div(factor)
			}, position: ptx.Convert[float32, int32], factor: func(f scalar.Float, _ ...ptx.Mod) scalar.Float { return f }})
		}})
	ropePrecise = kit.Register(kit.Kernel{Family: "rope", Name: "rope_precise", Block: [3]int{ropeThreads, 1, 1},
		Doc: "Turns pairs of elements; steps are f64, frequencies in turns." + ropeDoc,
		Build: func(k *ptx.Kernel) {
			buildRope(k, ropeAngles[float64]{of: func(position, frequency, factor ptx.Reg[float64]) scalar.Float {
				turns := position.Mul(frequency).Div(factor)
				part := turns.Sub(turns.Round(ptx.RNI))
				return ptx.Convert[float32](part, ptx.RN).Mul(2 * math.Pi)
			}, position: ptx.Convert[float64, int32], factor: ptx.Convert[float64, float32]})
		}})
)

// ropeAngles is how angles are computed, in T.
type ropeAngles[T float32 | float64] struct {
	of       func(position, frequency, factor ptx.Reg[T]) scalar.Float
	position func(x ptx.Reg[int32], mods ...ptx.Mod) ptx.Reg[T]
	factor   func(x scalar.Float, mods ...ptx.Mod) ptx.Reg[T]
}

func buildRope[T float32 | float64](k *ptx.Kernel, angles ropeAngles[T]) {
	sizes := ptx.ParamArray[uint32](k, "sizes", ropeWords)
	steps := ptx.ParamArray[T](k, "steps", catalogue.RopeBits+1)
	x, positions := ptx.PointerParam[float32](k, "x", ptx.Align(16)), ptx.PointerParam[int32](k, "positions")
	factors, y := ptx.PointerParam[float32](k, "factors", ptx.Align(16)), ptx.PointerParam[float32](k, "y", ptx.Align(16))
	size := func(i int) ptx.Reg[uint32] { return sizes.At(i) }
	i := k.GlobalID(ptx.X)
	k.ReturnIf(i.Ge(size(ropeTotal)))
	rest, unit := scalar.DivisorAt(k, sizes, ropeUnits).Split(k, i)
	token, chunk := scalar.DivisorAt(k, sizes, ropeChunks).Split(k, rest)
	first := chunk.Mul(size(ropeChunk))
	last := first.Add(size(ropeChunk)).Min(size(ropeHeads))
	flags, d, dims := size(ropeFlags), size(ropeD), size(ropeDims)
	head := token.Mad(size(ropeHeads), first).MulWide(d)
	x, y = x.At(head), y.At(head)

	// heads applies f to the places of an element in each head of x and y.
	heads := func(element ptx.Reg[uint32], f func(x, y ptx.Ptr[ptx.Global, float32])) {
		from, to := ptx.PtrVarOf(x.At(element)), ptx.PtrVarOf(y.At(element))
		ptx.For(k, first, last, 1, func(ptx.Reg[uint32]) {
			f(from.Get(), to.Get())
			from.Set(from.Get().At(d))
			to.Set(to.Get().At(d))
		}, ptx.NoUnroll())
	}
	vector := scalar.HasFlag(k, flags, ropeVector)
	k.If(unit.Ge(size(ropePairs)), func() {
		over := unit.Sub(size(ropePairs))
		k.If(vector, func() {
			at := dims.Add(over.Shl(2))
			heads(at, func(x, y ptx.Ptr[ptx.Global, float32]) { y.Store4(x.Load4()) })
		}, func() {
			at := dims.Add(over)
			heads(at, func(x, y ptx.Ptr[ptx.Global, float32]) { y.Store(x.Load()) })
		})
	}, func() {
		_, p := scalar.DivisorAt(k, sizes, ropePositions).Split(k, token)
		position := angles.position(positions.At(p).Load())
		neox, scaled := scalar.HasFlag(k, flags, ropeNeoX), scalar.HasFlag(k, flags, ropeFactors)
		half := dims.Shr(1)
		turn := turning{k}
		k.If(vector, func() {
			pair := unit.Shl(2)
			f := [4]ptx.Reg[T]{frequencyOf(k, steps, pair, 2)}
			f[1], f[2] = f[0].Mul(steps.At(1)), f[0].Mul(steps.At(2))
			f[3] = f[1].Mul(steps.At(2))
			var factor [4]*ptx.Var[float32]
			for j := range factor {
				factor[j] = ptx.VarOf(k, ptx.F32(1))
			}
			k.If(scaled, func() {
				for j, v := range factors.At(pair).Load4() {
					factor[j].Set(v)
				}
			})
			var sin, cos [4]scalar.Float
			for j := range f {
				sin[j], cos[j] = turn.angle(angles.of(position, f[j], angles.factor(factor[j].Get())))
			}
			k.If(neox, func() {
				apart := half.MulWide(4)
				heads(pair, func(x, y ptx.Ptr[ptx.Global, float32]) {
					a, b := x.Load4(), x.Bytes(apart).Load4()
					for j := range a {
						a[j], b[j] = turn.pair(a[j], b[j], sin[j], cos[j])
					}
					y.Store4(a)
					y.Bytes(apart).Store4(b)
				})
			}, func() {
				heads(pair.Shl(1), func(x, y ptx.Ptr[ptx.Global, float32]) {
					a, b := x.Load4(), x.At(4).Load4()
					for j := range 2 {
						a[2*j], a[2*j+1] = turn.pair(a[2*j], a[2*j+1], sin[j], cos[j])
						b[2*j], b[2*j+1] = turn.pair(b[2*j], b[2*j+1], sin[j+2], cos[j+2])
					}
					y.Store4(a)
					y.At(4).Store4(b)
				})
			})
		}, func() {
			factor := ptx.LoadIf(scaled, factors.At(unit), 1)
			sin, cos := turn.angle(angles.of(position, frequencyOf(k, steps, unit, 0), angles.factor(factor)))
			a := ptx.Select(neox, unit, unit.Shl(1))
			apart := ptx.Select(neox, half, 1).MulWide(4)
			heads(a, func(x, y ptx.Ptr[ptx.Global, float32]) {
				v, w := turn.pair(x.Load(), x.Bytes(apart).Load(), sin, cos)
				y.Store(v)
				y.Bytes(apart).Store(w)
			})
		})
	})
}

// frequencyOf is that of a pair whose number has no bits below bit low.
func frequencyOf[T float32 | float64](k *ptx.Kernel, steps ptx.Array[T], pair ptx.Reg[uint32], low int) ptx.Reg[T] {
	f := steps.At(0)
	for j := low; j < catalogue.RopeBits; j++ {
		bit := pair.And(uint32(1) << j).Ne(0)
		f = ptx.Select(bit, f.Mul(steps.At(j+1)), f)
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
	return a.Fma(cos, b.Mul(sin).Neg()), a.Fma(sin, b.Mul(cos))
}
