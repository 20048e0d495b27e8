package quantised

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// Activations as bytes: rows of int8, and for each 32 of them two words, which are the scale and the sums of the first and of the
// last 16, as int16. They are in arrays of their own, so that a lane reads 16 bytes of either at a time.

// bytesSize and scalesSize are what so many values take, in bytes.
func bytesSize(values int) int  { return values }
func scalesSize(values int) int { return values / 4 }

// quantBytesParams are those of quant_bytes.
type quantBytesParams struct {
	Cols, Norm int           `array:"sizes"` // Norm is whether there is one: 0 or 1
	Parts      scalar.Divide // blocks of a row
	Eps        float32
	X, Gamma   kit.Buffer
	Y          kit.Buffer `of:"s8"`
	Scales     kit.Buffer `of:"u32"`
}

// bytesPart is how many values of a row a block of quant_bytes has.
const bytesPart = 4 * threadgroup.Threads

var quantBytes = kit.Define(kit.Kernel{Family: "quant", Name: "quant_bytes", Block: [3]int{threadgroup.Threads, 1, 1},
	Doc: "x, or x/√(mean(x²) + eps)·gamma, rounded to bytes in blocks of 32, whose scale is max|x|/127; it is NaN where x is not finite."}, buildQuantBytes)

func buildQuantBytes(k *ptx.Kernel, p *kit.Params, of *quantBytesParams) {
	c := scalar.Math{K: k}
	eps := kit.Read(p, &of.Eps)
	x, gamma := kit.Ptr[float32](p, &of.X, ptx.Align(16)), kit.Ptr[float32](p, &of.Gamma, ptx.Align(16))
	y, scales := kit.Ptr[uint8](p, &of.Y, ptx.Align(16)), kit.Ptr[uint32](p, &of.Scales, ptx.Align(16))
	cols, tid := p.U32(&of.Cols), k.Tid(ptx.X)
	row, part := p.Divisor(&of.Parts).Split(k, k.Ctaid(ptx.X))
	begin := row.MulWide(cols)
	x = x.At(begin)
	i := part.Mad(threadgroup.Threads, tid).Shl(2)
	there := i.Lt(cols) // of all eight lanes that share a block of 32
	v := scalar.Zeros(k, 4)
	k.When(there, func() {
		four := x.At(i).Load4(ptx.ReadOnly)
		v.Set(four[:])
	})
	k.If(p.U32(&of.Norm).Ne(0), func() {
		// Each block goes over the whole row, which is in the cache.
		sum := ptx.VarOf(k, ptx.F32(0))
		ptx.For(k, tid.Shl(2), cols, bytesPart, func(i ptx.Reg[uint32]) {
			for _, e := range x.At(i).Load4(ptx.ReadOnly) {
				sum.Set(e.Fma(e, sum.Get()))
			}
		}, ptx.NoUnroll())
		total := threadgroup.BlockReduce(k, "squares", []scalar.Float{sum.Get()}, threadgroup.Plus)[0]
		factor := total.Fma(c.Inverse(ptx.Convert[float32](cols)), eps).Rsqrt()
		k.When(there, func() {
			for j, g := range gamma.At(i).Load4(ptx.ReadOnly) {
				v[j].Set(v[j].Get().Mul(factor).Mul(g))
			}
		})
	})
	most := v[0].Get().Abs()
	for _, e := range v[1:] {
		most = c.NanMax(most, e.Get().Abs())
	}
	for d := 1; d < 8; d *= 2 {
		most = c.NanMax(most, most.Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp()))
	}
	// The least normal number as the least scale keeps its inverse finite.
	const least = 0x1p-126
	scale := most.Mul(1. / 127).Max(least)
	scale = c.Where(most.Lt(math.Inf(1)), scale, ptx.F32(math.NaN()))
	inverse := scale.Rcp()
	var q [4]ptx.Reg[uint32]
	sum := ptx.Imm(int32(0))
	for j, e := range v {
		n := ptx.Convert[int32](e.Get().Mul(inverse), ptx.RNI)
		sum = sum.Add(n)
		q[j] = ptx.Bitcast[uint32](n)
	}
	word := q[0].Prmt(q[1], 0x0040).Prmt(q[2].Prmt(q[3], 0x0040), 0x5410)
	for d := 1; d < 4; d *= 2 {
		sum = sum.Add(sum.Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp()))
	}
	other := sum.Shuffle(ptx.ShuffleXor, 4, 32, ptx.FullWarp())
	at := begin.Add(ptx.Convert[uint64](i))
	ptx.StoreIf(there, ptx.Cast[uint32](y.Bytes(at)), word)
	k.If(there.And(tid.And(7).Eq(0)), func() {
		sums := ptx.Bitcast[uint32](sum).Prmt(ptx.Bitcast[uint32](other), 0x5410)
		to := scales.Bytes(at.Shr(2))
		to.Store2([2]ptx.Reg[uint32]{ptx.Bitcast[uint32](scale), sums})
	})
}

// finiteParams are those of quant_finite.
type finiteParams struct {
	Cols int
	X, Y kit.Buffer
}

// quantFinite is for GPUs that cannot multiply bytes: there activations stay float32, but what is not finite spreads as if they did not.
var quantFinite = kit.Define(kit.Kernel{Family: "quant", Name: "quant_finite", Block: [3]int{threadgroup.Threads, 1, 1},
	Doc: "y is rows of x, or NaN where something in the row is not finite; a block for each row."},
	func(k *ptx.Kernel, p *kit.Params, of *finiteParams) {
		cols := p.U32(&of.Cols)
		x, y := kit.Ptr[float32](p, &of.X, ptx.Align(16)), kit.Ptr[float32](p, &of.Y, ptx.Align(16))
		begin := k.Ctaid(ptx.X).MulWide(cols)
		x, y = x.At(begin), y.At(begin)
		each := func(f func(at ptx.Reg[uint32], v [4]scalar.Float)) {
			ptx.For(k, k.Tid(ptx.X).Shl(2), cols, bytesPart, func(at ptx.Reg[uint32]) {
				f(at, x.At(at).Load4(ptx.ReadOnly))
			}, ptx.NoUnroll())
		}
		sum := ptx.VarOf(k, ptx.F32(0)) // or NaN
		each(func(_ ptx.Reg[uint32], v [4]scalar.Float) {
			for _, e := range v {
				sum.Set(e.Fma(0, sum.Get()))
			}
		})
		spread := threadgroup.BlockReduce(k, "sums", []scalar.Float{sum.Get()}, threadgroup.Plus)[0]
		each(func(at ptx.Reg[uint32], v [4]scalar.Float) {
			for i := range v {
				v[i] = v[i].Add(spread)
			}
			y.At(at).Store4(v)
		})
	})

// buildBytes is for activations as bytes.
func (g *quantGemv) buildBytes() {
	k := g.k
	x, scales := g.rounded()
	g.matrices()
	g.bindRows()
	reader := g.readPieces(k, g.blocksOf(g.Params, &g.of.Blocks), g.lane)
	first := shiftRight(k, g.lane, known(scalar.Log2(g.pieces()))).Mad(g.len(), reader.first)
	cols := g.U32(&g.of.K)
	// The lane's first piece of the first row of x.
	bytes := ptx.PtrVarOf(x.Bytes(first))
	words := ptx.PtrVarOf(scales.Bytes(first.Shr(5).Shl(3)))
	values := 32 * g.pieceUnits()
	g.walk(cols.Shr(scalar.Log2(values)), g.pieces(), func(block ptx.Reg[uint32]) {
		g.stepBytes(reader, block, bytes.Get(), words.Get(), cols)
		bytes.Set(bytes.Get().Bytes(g.group.Lanes.Shl(scalar.Log2(values))))
		words.Set(words.Get().Bytes(g.group.Lanes.Shl(scalar.Log2(values / 4))))
	})
	g.Finish(threadgroup.Threads, nil)
}

// stepBytes adds up the products of a piece of both rows.
func (g *quantGemv) stepBytes(r *pieceReader, block ptx.Reg[uint32], bytes ptx.Ptr[ptx.Global, uint8],
	words ptx.Ptr[ptx.Global, uint32], cols ptx.Reg[uint32]) {
	var packed [2][]packedUnit
	var rows [2]pieceWeights
	for i, row := range g.rows {
		packed[i] = r.Load(row, block)
	}
	for i := range rows {
		rows[i] = r.weights(packed[i])
	}
	for v := range g.room {
		if v > 0 { // rows that there are not have memory, too
			bytes, words = bytes.Bytes(cols), words.Bytes(cols.Shr(2))
		}
		heads := r.heads(words)
		for n, part := range r.parts {
			scale, sum := heads[2*n], ptx.Imm(int32(0))
			if g.affine || g.zero > 0 {
				sum = r.sum(heads[2*n+1])
			}
			var x []ptx.Reg[uint32]
			for _, run := range part.runs {
				four := ptx.Cast[uint32](bytes.Bytes(run.at)).Load4(ptx.ReadOnly)
				x = append(x, four[:]...)
			}
			var floatSum scalar.Float
			if g.affine {
				floatSum = ptx.Convert[float32](sum)
			}
			xScale := ptx.Bitcast[float32](scale)
			for i, w := range rows {
				s, y := g.sums[i*g.room+v], ptx.Convert[float32](r.dot(w, n, x, sum))
				if g.affine {
					y = w.scale[n].Fma(y, w.minimum[n].Mul(floatSum).Neg())
					s.Set(y.Fma(xScale, s.Get()))
				} else {
					s.Set(y.Fma(w.scale[n].Mul(xScale), s.Get()))
				}
			}
		}
	}
}

// heads are the words of scales and sums of the blocks of x of all parts, which are neighbours.
func (p *pieceReader) heads(words ptx.Ptr[ptx.Global, uint32]) (all []ptx.Reg[uint32]) {
	if len(p.parts) == 1 {
		if !p.affine && p.zero == 0 {
			return []ptx.Reg[uint32]{words.Load(ptx.ReadOnly), ptx.U32(0)}
		}
		two := words.Load2(ptx.ReadOnly)
		return two[:]
	}
	for i := 0; i < len(p.parts); i += 2 {
		four := words.At(2 * i).Load4(ptx.ReadOnly)
		all = append(all, four[:]...)
	}
	return all
}

// sum is that of the bytes of x that belong to a part, of those of both halves of a block of 32.
func (p *pieceReader) sum(halves ptx.Reg[uint32]) ptx.Reg[int32] {
	k := p.k
	if len(p.parts[0].runs) == 1 {
		selector := ptx.Select(p.half.value(k).Eq(0), ptx.U32(0x9910), 0xbb32)
		return ptx.Bitcast[int32](halves.Prmt(0, selector))
	}
	return sumOfHalves(k, halves)
}

// sumOfHalves is the sum of two int16, both of which are in the upper half of a product, without a carry from the lower one.
func sumOfHalves(k *ptx.Kernel, halves ptx.Reg[uint32]) ptx.Reg[int32] {
	return ptx.Bitcast[int32](halves.Mul(0x10001)).Shr(16)
}
