package quantised

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// Activations as halves lie in memory as kernels want them in stages of shared memory: 64 rows by 64 values of each, then the sums of
// every 16 of these and those of every 32, each of all rows. In a row, of every 32 values there are the first halves, then the second
// ones if values are sums of two: what the first ones are off by. Of each 16 values, the first pairs of all fours come before the second
// pairs, since a word of weights has a four and is two pairs of an operand. Chunks of 16 bytes are permuted in their rows, lest those
// of neighbouring rows share banks. Rows are made up to 16.
//
// A row is multiplied by a power of two that brings its largest value to 2¹³ up to 2¹⁴, so that no half and no product of 32 is
// infinite. A value is then off by 2⁻¹¹ of itself at most, or with two halves by 2⁻²²; and by 2⁻³⁸ of the row's largest value, since
// halves are multiples of 2⁻²⁴.
const (
	halvesTile     = 64
	halvesDepth    = 64
	halvesRows     = 16
	halvesExponent = 13
	halvesLeast    = halvesExponent + 1 // biased exponent of a largest value from which the inverse of the factor is finite
)

// halvesStage is the bytes of a stage, with so many halves for a value.
func halvesStage(parts int) int {
	return halvesTile * (2*parts*halvesDepth + 4*halvesDepth/16 + 4*halvesDepth/32)
}

// Arguments in the array sizes of quant_halves.
const (
	halvesCols   = iota
	halvesParts  // 1 or 2
	halvesOf     // rows of x
	halvesInSize //
)

var quantHalves = kit.Register(kit.Kernel{Family: "quant", Name: "quant_halves", Block: [3]int{threadgroup.Threads, 1, 1},
	Doc: "y is rows of x, multiplied by powers of two whose inverses are factors, as halves or as sums of two; a block for each row, or " +
		"for the last row again. Factors of rows with Inf or NaN are NaN. Parameters: u32 sizes[] (values of a row, halves of a " +
		"value, rows of x), f32* x, f16* y, f32* factors.",
	Build: buildQuantHalves})

func buildQuantHalves(k *ptx.Kernel) {
	c := scalar.Math{K: k}
	sizes := ptx.ParamArray[uint32](k, "sizes", halvesInSize)
	x := ptx.PointerParam[float32](k, "x", ptx.Align(16))
	y, factors := ptx.PointerParam[uint8](k, "y", ptx.Align(16)), ptx.PointerParam[float32](k, "factors")
	cols, parts, row, tid := sizes.At(k, halvesCols), sizes.At(k, halvesParts), k.Ctaid(ptx.X), k.Tid(ptx.X)
	two := ptx.Eq(k, parts, scalar.U32(2))
	x = ptx.At(k, x, ptx.MulWideU32(k, ptx.Min(k, row, ptx.Sub(k, sizes.At(k, halvesOf), scalar.U32(1))), cols))
	most := ptx.VarOf(k, scalar.Num(0))
	ptx.For(k, ptx.Shl(k, tid, scalar.U32(2)), cols, scalar.U32(bytesPart), func(i ptx.Reg[uint32]) {
		for _, e := range ptx.Load4(k, ptx.At(k, x, i), ptx.ReadOnly) {
			most.Set(c.NanMax(most.Get(), c.Abs(e)))
		}
	}, ptx.NoUnroll())
	for d := 1; d < 32; d *= 2 {
		most.Set(c.NanMax(most.Get(), ptx.Shuffle(k, ptx.ShuffleXor, most.Get(), scalar.U32(d), 32, ptx.FullWarp())))
	}
	shared := ptx.SharedArray[float32](k, "most", threadgroup.Warps)
	k.If(ptx.Eq(k, ptx.And(k, tid, scalar.U32(31)), scalar.U32(0)), func() { ptx.Store(k, ptx.At(k, shared, ptx.Shr(k, tid, scalar.U32(5))), most.Get()) })
	k.Barrier()
	for w := range threadgroup.Warps {
		most.Set(c.NanMax(most.Get(), ptx.Load(k, shared.At(w))))
	}
	exponent := ptx.Max(k, ptx.Shr(k, ptx.Bitcast[uint32](k, most.Get()), scalar.U32(23)), scalar.U32(halvesLeast))
	power := func(biased ptx.Reg[uint32]) scalar.Float {
		return ptx.Bitcast[float32](k, ptx.Shl(k, biased, scalar.U32(23)))
	}
	inverse := power(ptx.Sub(k, scalar.U32(2*127+halvesExponent), exponent))
	factor := power(ptx.Sub(k, exponent, scalar.U32(halvesExponent)))
	factor = c.Where(ptx.Lt(k, most.Get(), scalar.Num(math.Inf(1))), factor, scalar.Num(math.NaN()))
	ptx.StoreIf(k, ptx.Eq(k, tid, scalar.U32(0)), ptx.At(k, factors, row), factor)
	rounded := ptx.And(k, ptx.Add(k, cols, scalar.U32(halvesDepth-1)), ptx.Imm(^uint32(halvesDepth-1))) // up
	stages := ptx.Mul(k, ptx.Shr(k, row, scalar.U32(scalar.Log2(halvesTile))), ptx.Shr(k, rounded, scalar.U32(scalar.Log2(halvesDepth))))
	row = ptx.And(k, row, scalar.U32(halvesTile-1))
	ptx.For(k, scalar.U32(0), rounded, scalar.U32(bytesPart), func(base ptx.Reg[uint32]) {
		i := ptx.Add(k, base, ptx.Shl(k, tid, scalar.U32(2)))
		v, sum := scalar.VariablesOf(k, scalar.Constants(make([]float32, 4))), ptx.VarOf(k, scalar.Num(0))
		k.When(ptx.Lt(k, i, cols), func() {
			for j, e := range ptx.Load4(k, ptx.At(k, x, i), ptx.ReadOnly) {
				v[j].Set(c.Mul(e, inverse))
			}
		})
		there := ptx.Lt(k, i, rounded)
		stage := ptx.Add(k, stages, ptx.Shr(k, i, scalar.U32(scalar.Log2(halvesDepth))))
		at := ptx.AtByte(k, y, ptx.MulWideU32(k, stage, ptx.Select(k, two, scalar.U32(halvesStage(2)), scalar.U32(halvesStage(1)))))
		long := ptx.Mul(k, parts, scalar.U32(2*halvesDepth)) // of a row
		// Half of the row, half of 32 values, and word of the first 16 bytes.
		place := ptx.Add(k, ptx.Mul(k, ptx.And(k, ptx.Shr(k, i, scalar.U32(5)), scalar.U32(1)), ptx.Mul(k, parts, scalar.U32(64))),
			ptx.Add(k, ptx.Shl(k, ptx.And(k, i, scalar.U32(16)), scalar.U32(1)), ptx.And(k, i, scalar.U32(12))))
		part := func(there ptx.Reg[bool], behind int) {
			for j := 0; j < 4; j += 2 {
				pair := ptx.ConvertPair[ptx.F16x2](k, v[j].Get(), v[j+1].Get())
				lo, hi := ptx.UnpackF16(k, pair)
				for n, h := range []ptx.Reg[ptx.F16]{lo, hi} {
					half := scalar.ToFloat32(k, h)
					sum.Set(c.Add(sum.Get(), half))
					if behind == 0 {
						v[j+n].Set(c.Sub(v[j+n].Get(), half)) // for the second halves
					}
				}
				in := ptx.Xor(k, ptx.Add(k, place, scalar.U32(behind+8*j)), ptx.Shl(k, ptx.And(k, row, scalar.U32(7)), scalar.U32(4)))
				to := ptx.AtByte(k, at, ptx.Mad(k, row, long, in))
				ptx.StoreIf(k, there, ptx.Cast[uint32](to), ptx.Bitcast[uint32](k, pair))
			}
		}
		part(there, 0)
		k.If(two, func() { part(there, 64) })
		// Of a unit of 32 values eight lanes have fours.
		to := ptx.Cast[float32](ptx.AtByte(k, at, ptx.Mad(k, long, scalar.U32(halvesTile), ptx.Shl(k, row, scalar.U32(2)))))
		write := func(values, first int) {
			run := ptx.And(k, ptx.Shr(k, i, scalar.U32(scalar.Log2(values))), scalar.U32(halvesDepth/values-1))
			leader := ptx.Eq(k, ptx.And(k, i, scalar.U32(values-1)), scalar.U32(0))
			ptx.StoreIf(k, ptx.And(k, there, leader), ptx.At(k, to, ptx.Mul(k, run, scalar.U32(halvesTile))).At(first*halvesTile), sum.Get())
		}
		for d := 1; d < 8; d *= 2 {
			sum.Set(c.Add(sum.Get(), ptx.Shuffle(k, ptx.ShuffleXor, sum.Get(), scalar.U32(d), 32, ptx.FullWarp())))
			if d == 2 {
				write(16, 0)
			}
		}
		write(32, halvesDepth/16)
	}, ptx.NoUnroll())
}
