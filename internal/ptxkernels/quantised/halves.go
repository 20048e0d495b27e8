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

// halvesParams are those of quant_halves.
type halvesParams struct {
	Cols    int `array:"sizes"`
	Parts   int // halves of a value: 1 or 2
	Rows    int // of x
	X       kit.Buffer
	Y       kit.Buffer `of:"f16"`
	Factors kit.Buffer
}

var quantHalves = kit.Define(kit.Kernel{Family: "quant", Name: "quant_halves", Block: [3]int{threadgroup.Threads, 1, 1},
	Doc: "y is rows of x, multiplied by powers of two whose inverses are factors, as halves or as sums of two; a block for each row, or " +
		"for the last row again. Factors of rows with Inf or NaN are NaN."}, buildQuantHalves)

func buildQuantHalves(k *ptx.Kernel, p *kit.Params, of *halvesParams) {
	c := scalar.Math{K: k}
	x := kit.Ptr[float32](p, &of.X, ptx.Align(16))
	y, factors := kit.Ptr[uint8](p, &of.Y, ptx.Align(16)), kit.Ptr[float32](p, &of.Factors)
	cols, parts, row, tid := p.U32(&of.Cols), p.U32(&of.Parts), k.Ctaid(ptx.X), k.Tid(ptx.X)
	two := parts.Eq(2)
	x = x.At(row.Min(p.U32(&of.Rows).Sub(1)).MulWide(cols))
	most := ptx.VarOf(k, ptx.F32(0))
	ptx.For(k, tid.Shl(2), cols, bytesPart, func(i ptx.Reg[uint32]) {
		for _, e := range x.At(i).Load4(ptx.ReadOnly) {
			most.Set(c.NanMax(most.Get(), e.Abs()))
		}
	}, ptx.NoUnroll())
	largest := threadgroup.BlockReduce(k, "most", []scalar.Float{most.Get()}, c.NanMax)[0]
	exponent := ptx.Bitcast[uint32](largest).Shr(23).Max(halvesLeast)
	power := func(biased ptx.Reg[uint32]) scalar.Float {
		return ptx.Bitcast[float32](biased.Shl(23))
	}
	inverse := power(ptx.U32(2*127 + halvesExponent).Sub(exponent))
	factor := power(exponent.Sub(halvesExponent))
	factor = c.Where(largest.Lt(math.Inf(1)), factor, ptx.F32(math.NaN()))
	ptx.StoreIf(tid.Eq(0), factors.At(row), factor)
	rounded := cols.Add(halvesDepth - 1).And(^uint32(halvesDepth - 1)) // up
	stages := row.Shr(scalar.Log2(halvesTile)).Mul(rounded.Shr(scalar.Log2(halvesDepth)))
	row = row.And(halvesTile - 1)
	ptx.For(k, 0, rounded, bytesPart, func(base ptx.Reg[uint32]) {
		i := base.Add(tid.Shl(2))
		v, sum := scalar.Zeros(k, 4), ptx.VarOf(k, ptx.F32(0))
		k.When(i.Lt(cols), func() {
			for j, e := range x.At(i).Load4(ptx.ReadOnly) {
				v[j].Set(e.Mul(inverse))
			}
		})
		there := i.Lt(rounded)
		stage := stages.Add(i.Shr(scalar.Log2(halvesDepth)))
		at := y.Bytes(stage.MulWide(ptx.Select(two, ptx.U32(halvesStage(2)), halvesStage(1))))
		long := parts.Mul(2 * halvesDepth) // of a row
		// Half of the row, half of 32 values, and word of the first 16 bytes.
		place := i.Shr(5).And(1).Mul(parts.Mul(64)).Add(i.And(16).Shl(1).Add(i.And(12)))
		part := func(there ptx.Reg[bool], first int) {
			for j := 0; j < 4; j += 2 {
				pair := ptx.ConvertPair[ptx.F16x2](v[j].Get(), v[j+1].Get())
				lo, hi := ptx.UnpackF16(pair)
				for n, h := range []ptx.Reg[ptx.F16]{lo, hi} {
					half := scalar.ToFloat32(k, h)
					sum.Set(sum.Get().Add(half))
					if first == 0 {
						v[j+n].Set(v[j+n].Get().Sub(half)) // for the second halves
					}
				}
				in := place.Add(first + 8*j).Xor(row.And(7).Shl(4))
				to := at.Bytes(row.Mad(long, in))
				ptx.StoreIf(there, ptx.Cast[uint32](to), ptx.Bitcast[uint32](pair))
			}
		}
		part(there, 0)
		k.If(two, func() { part(there, 64) })
		// Of a unit of 32 values eight lanes have fours.
		to := ptx.Cast[float32](at.Bytes(long.Mad(halvesTile, row.Shl(2))))
		write := func(values, first int) {
			run := i.Shr(scalar.Log2(values)).And(halvesDepth/values - 1)
			leader := i.And(values - 1).Eq(0)
			ptx.StoreIf(there.And(leader), to.At(run.Mul(halvesTile)).At(first*halvesTile), sum.Get())
		}
		for d := 1; d < 8; d *= 2 {
			sum.Set(sum.Get().Add(sum.Get().Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp())))
			if d == 2 {
				write(16, 0)
			}
		}
		write(32, halvesDepth/16)
	}, ptx.NoUnroll())
}
