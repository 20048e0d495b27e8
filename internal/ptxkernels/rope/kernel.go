package rope

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

const ropeThreads = 256

// ropeParams are those of the rope kernels. Steps are the frequency of pair 0, then what the bits of a pair's number make of it.
type ropeParams struct {
	Threads                  int `array:"sizes"` // that have something to do
	Heads, D, Dims           int
	Rotated                  int // units of a head that turn; the others are copied
	HeadsPerThread           int
	Flags                    int
	Units, Chunks, Positions scalar.Divide // units of a head, threads that share a token's heads
	Steps                    []uint32      // as they lie in memory
	X                        kit.Buffer
	At                       kit.Buffer `name:"positions" of:"s32"`
	Factors, Y               kit.Buffer
}

// Flags of the rope kernels.
const (
	ropeNeoX    = 1 << iota // pairs are half of Dims apart
	ropeVector              // units are of four pairs, else of one
	ropeFactors             // there are some
)

const ropeDoc = " A thread has the same unit, pairs that turn or elements that do not, of some heads of a token."

var (
	ropeFast = kit.Register(kit.Kernel{Family: "rope", Name: "rope", Block: [3]int{ropeThreads, 1, 1},
		Doc: "Turns pairs of elements; steps are f32, frequencies in radians." + ropeDoc, Params: ropeParams{},
		Build: func(k *ptx.Kernel) {
			buildRope(k, ropeAngles[float32]{of: func(position, frequency, factor scalar.Float) scalar.Float {
				return position.Mul(frequency).Div(factor)
			}, position: ptx.Convert[float32, int32], factor: func(f scalar.Float, _ ...ptx.Mod) scalar.Float { return f }})
		}})
	ropePrecise = kit.Register(kit.Kernel{Family: "rope", Name: "rope_precise", Block: [3]int{ropeThreads, 1, 1},
		Doc: "Turns pairs of elements; steps are f64, frequencies in turns." + ropeDoc, Params: ropeParams{},
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
	var at ropeParams
	p := kit.NewParams(k, &at)
	steps := kit.Array[T](p, &at.Steps, catalogue.RopeBits+1)
	x, positions := kit.Ptr[float32](p, &at.X, ptx.Align(16)), kit.Ptr[int32](p, &at.At)
	factors, y := kit.Ptr[float32](p, &at.Factors, ptx.Align(16)), kit.Ptr[float32](p, &at.Y, ptx.Align(16))
	i := k.GlobalID(ptx.X)
	k.ReturnIf(i.Ge(p.U32(&at.Threads)))
	rest, unit := p.Divisor(&at.Units).Split(k, i)
	token, chunk := p.Divisor(&at.Chunks).Split(k, rest)
	first := chunk.Mul(p.U32(&at.HeadsPerThread))
	last := first.Add(p.U32(&at.HeadsPerThread)).Min(p.U32(&at.Heads))
	flags, d, dims := p.U32(&at.Flags), p.U32(&at.D), p.U32(&at.Dims)
	head := token.Mad(p.U32(&at.Heads), first).MulWide(d)
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
	byWidth := func(f func(width int)) {
		k.If(scalar.HasFlag(k, flags, ropeVector), func() { f(4) }, func() { f(1) })
	}
	start := func(i ptx.Reg[uint32], width int) ptx.Reg[uint32] { // of unit i
		if width == 1 {
			return i
		}
		return i.Shl(2)
	}
	k.If(unit.Ge(p.U32(&at.Rotated)), func() {
		over := unit.Sub(p.U32(&at.Rotated))
		byWidth(func(width int) {
			heads(dims.Add(start(over, width)), func(x, y ptx.Ptr[ptx.Global, float32]) { scalar.StoreAll(y, scalar.LoadAll(x, width)) })
		})
	}, func() {
		_, of := p.Divisor(&at.Positions).Split(k, token)
		position := angles.position(positions.At(of).Load())
		neox, scaled := scalar.HasFlag(k, flags, ropeNeoX), scalar.HasFlag(k, flags, ropeFactors)
		half, c := dims.Shr(1), scalar.Math{K: k}
		byWidth(func(width int) {
			pair := start(unit, width)
			f := []ptx.Reg[T]{frequencyOf(k, steps, pair, scalar.Log2(width))}
			if width == 4 {
				f = append(f, f[0].Mul(steps.At(1)), f[0].Mul(steps.At(2)))
				f = append(f, f[1].Mul(steps.At(2)))
			}
			factor := scalar.VariablesOf(k, scalar.Constants([]float32{1, 1, 1, 1}[:width]))
			k.When(scaled, func() { factor.Set(scalar.LoadAll(factors.At(pair), width)) })
			var sin, cos []scalar.Float
			for j := range f {
				angle := angles.of(position, f[j], angles.factor(factor[j].Get()))
				sin, cos = append(sin, c.Sine(angle, 0)), append(cos, c.Sine(angle, 1))
			}
			rotate := func(j int, a, b *scalar.Float) {
				*a, *b = a.Fma(cos[j], b.Mul(sin[j]).Neg()), a.Fma(sin[j], b.Mul(cos[j]))
			}
			// The elements of pairs lie so many bytes apart.
			apart := func(at ptx.Reg[uint32], bytes ptx.Reg[uint64]) {
				heads(at, func(x, y ptx.Ptr[ptx.Global, float32]) {
					a, b := scalar.LoadAll(x, width), scalar.LoadAll(x.Bytes(bytes), width)
					for j := range a {
						rotate(j, &a[j], &b[j])
					}
					scalar.StoreAll(y, a)
					scalar.StoreAll(y.Bytes(bytes), b)
				})
			}
			if width == 1 {
				at := ptx.Select(neox, unit, unit.Shl(1))
				apart(at, ptx.Select(neox, half, 1).MulWide(4))
				return
			}
			k.If(neox, func() { apart(pair, half.MulWide(4)) }, func() {
				heads(pair.Shl(1), func(x, y ptx.Ptr[ptx.Global, float32]) {
					v := append(scalar.LoadAll(x, 4), scalar.LoadAll(x.At(4), 4)...)
					for j := range 4 {
						rotate(j, &v[2*j], &v[2*j+1])
					}
					scalar.StoreAll(y, v[:4])
					scalar.StoreAll(y.At(4), v[4:])
				})
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
