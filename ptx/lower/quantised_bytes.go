package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// Activations as bytes: rows of int8, and for each 32 of them two words, which are the scale and the sums of the first and of the
// last 16, as int16. They are in arrays of their own, so that a lane reads 16 bytes of either at a time.

// bytesSize and scalesSize are what so many values take, in bytes.
func bytesSize(values int) int  { return values }
func scalesSize(values int) int { return values / 4 }

// Arguments in the array sizes of quant_bytes.
const (
	bytesCols   = iota
	bytesNorm   // 0 or 1
	bytesParts  // blocks of a row: a divisor
	bytesInSize = bytesParts + divisorWords
)

// bytesPart is how many values of a row a block of quant_bytes has.
const bytesPart = 4 * teamThreads

var quantBytes = register(Kernel{Family: "quant", Name: "quant_bytes", Block: [3]int{teamThreads, 1, 1},
	Doc: "x, or x/√(mean(x²) + eps)·gamma, rounded to bytes in blocks of 32, whose scale is max|x|/127; it is NaN where x is not finite. " +
		"Parameters: u32 sizes[] (values of a row, whether there is a norm; as a divisor, blocks that share a row), f32 eps, f32* x, " +
		"f32* gamma, s8* y, u32* scales.",
	build: buildQuantBytes})

func buildQuantBytes(k *ptx.Kernel) {
	c := calc{k}
	sizes := ptx.ParamArray[uint32](k, "sizes", bytesInSize)
	eps := ptx.Param[float32](k, "eps")
	x, gamma := ptx.PointerParam[float32](k, "x", ptx.Align(16)), ptx.PointerParam[float32](k, "gamma", ptx.Align(16))
	y, scales := ptx.PointerParam[uint8](k, "y", ptx.Align(16)), ptx.PointerParam[uint32](k, "scales", ptx.Align(16))
	cols, tid := sizes.At(k, bytesCols), k.Tid(ptx.X)
	row, part := divisorAt(k, sizes, bytesParts).split(k, k.Ctaid(ptx.X))
	begin := ptx.MulWideU32(k, row, cols)
	x = ptx.At(k, x, begin)
	i := ptx.Shl(k, ptx.Mad(k, part, u32(teamThreads), tid), u32(2))
	there := ptx.Lt(k, i, cols) // of all eight lanes that share a block of 32
	v := variablesOf(k, constants(make([]float32, 4)))
	k.When(there, func() {
		four := ptx.Load4(k, ptx.At(k, x, i), ptx.ReadOnly)
		v.set(four[:])
	})
	shared := ptx.SharedArray[float32](k, "squares", warps)
	k.If(ptx.Ne(k, sizes.At(k, bytesNorm), u32(0)), func() {
		// Each block goes over the whole row, which is in the cache.
		sum := ptx.VarOf(k, num(0))
		ptx.For(k, ptx.Shl(k, tid, u32(2)), cols, u32(bytesPart), func(i ptx.Reg[uint32]) {
			for _, e := range ptx.Load4(k, ptx.At(k, x, i), ptx.ReadOnly) {
				sum.Set(c.fma(e, e, sum.Get()))
			}
		}, ptx.NoUnroll())
		total := reduceBlock(k, []float{sum.Get()}, shared)[0]
		factor := ptx.Rsqrt(k, c.fma(total, c.inverse(ptx.Convert[float32](k, cols)), eps))
		k.When(there, func() {
			for j, g := range ptx.Load4(k, ptx.At(k, gamma, i), ptx.ReadOnly) {
				v[j].Set(c.mul(c.mul(v[j].Get(), factor), g))
			}
		})
	})
	most := c.abs(v[0].Get())
	for _, e := range v[1:] {
		most = c.nanMax(most, c.abs(e.Get()))
	}
	for d := 1; d < 8; d *= 2 {
		most = c.nanMax(most, ptx.Shuffle(k, ptx.ShuffleXor, most, u32(d), 32, ptx.FullWarp()))
	}
	// The least normal number as the least scale keeps its inverse finite.
	const least = 0x1p-126
	scale := c.max(c.mul(most, num(1./127)), num(least))
	scale = c.where(ptx.Lt(k, most, num(math.Inf(1))), scale, num(math.NaN()))
	inverse := ptx.Rcp(k, scale)
	var q [4]ptx.Reg[uint32]
	sum := ptx.Imm(int32(0))
	for j, e := range v {
		n := ptx.Convert[int32](k, c.mul(e.Get(), inverse), ptx.RNI)
		sum = ptx.Add(k, sum, n)
		q[j] = ptx.Bitcast[uint32](k, n)
	}
	word := ptx.Prmt(k, ptx.Prmt(k, q[0], q[1], u32(0x0040)), ptx.Prmt(k, q[2], q[3], u32(0x0040)), u32(0x5410))
	for d := 1; d < 4; d *= 2 {
		sum = ptx.Add(k, sum, ptx.Shuffle(k, ptx.ShuffleXor, sum, u32(d), 32, ptx.FullWarp()))
	}
	other := ptx.Shuffle(k, ptx.ShuffleXor, sum, u32(4), 32, ptx.FullWarp())
	at := ptx.Add(k, begin, ptx.Convert[uint64](k, i))
	ptx.StoreIf(k, there, ptx.Cast[uint32](ptx.AtByte(k, y, at)), word)
	k.If(ptx.And(k, there, ptx.Eq(k, ptx.And(k, tid, u32(7)), u32(0))), func() {
		sums := ptx.Prmt(k, ptx.Bitcast[uint32](k, sum), ptx.Bitcast[uint32](k, other), u32(0x5410))
		to := ptx.AtByte(k, scales, ptx.Shr(k, at, u32(2)))
		ptx.Store2(k, to, [2]ptx.Reg[uint32]{ptx.Bitcast[uint32](k, scale), sums})
	})
}

// quantFinite is for GPUs that cannot multiply bytes: there activations stay float32, but what is not finite spreads as if they did not.
var quantFinite = register(Kernel{Family: "quant", Name: "quant_finite", Block: [3]int{teamThreads, 1, 1},
	Doc: "y is rows of x, or NaN where something in the row is not finite; a block for each row. Parameters: u32 values of a row, f32* x, " +
		"f32* y.",
	build: func(k *ptx.Kernel) {
		c := calc{k}
		cols := ptx.Param[uint32](k, "cols")
		x, y := ptx.PointerParam[float32](k, "x", ptx.Align(16)), ptx.PointerParam[float32](k, "y", ptx.Align(16))
		begin := ptx.MulWideU32(k, k.Ctaid(ptx.X), cols)
		x, y = ptx.At(k, x, begin), ptx.At(k, y, begin)
		each := func(f func(at ptx.Reg[uint32], v [4]float)) {
			ptx.For(k, ptx.Shl(k, k.Tid(ptx.X), u32(2)), cols, u32(bytesPart), func(at ptx.Reg[uint32]) {
				f(at, ptx.Load4(k, ptx.At(k, x, at), ptx.ReadOnly))
			}, ptx.NoUnroll())
		}
		sum := ptx.VarOf(k, num(0)) // or NaN
		each(func(_ ptx.Reg[uint32], v [4]float) {
			for _, e := range v {
				sum.Set(c.fma(e, num(0), sum.Get()))
			}
		})
		spread := reduceBlock(k, []float{sum.Get()}, ptx.SharedArray[float32](k, "sums", warps))[0]
		each(func(at ptx.Reg[uint32], v [4]float) {
			for i := range v {
				v[i] = c.add(v[i], spread)
			}
			ptx.Store4(k, ptx.At(k, y, at), v)
		})
	}})

// buildBytes is for activations as bytes.
func (g *quantGemv) buildBytes() {
	k := g.k
	x, scales := ptx.PointerParam[uint8](k, "x", ptx.Align(16)), ptx.PointerParam[uint32](k, "scales", ptx.Align(16))
	g.matrices()
	g.bindRows()
	reader := g.readPieces(k, g.blocksAt(k, g.sizes, quantBlocks), g.lane)
	first := ptx.Mad(k, shiftRight(k, g.lane, known(log2(g.pieces()))), u32(g.len()), reader.first)
	cols := g.size(quantK)
	// The lane's first piece of the first row of x.
	bytes := ptx.PtrVarOf(k, ptx.AtByte(k, x, first))
	words := ptx.PtrVarOf(k, ptx.AtByte(k, scales, ptx.Shl(k, ptx.Shr(k, first, u32(5)), u32(3))))
	values := 32 * g.pieceUnits()
	g.walk(ptx.Shr(k, cols, u32(log2(values))), g.pieces(), func(block ptx.Reg[uint32]) {
		g.stepBytes(reader, block, bytes.Get(), words.Get(), cols)
		bytes.Set(ptx.AtByte(k, bytes.Get(), ptx.Shl(k, g.team.lanes, u32(log2(values)))))
		words.Set(ptx.AtByte(k, words.Get(), ptx.Shl(k, g.team.lanes, u32(log2(values/4)))))
	})
	g.finish(nil)
}

// stepBytes adds up the products of a piece of both rows.
func (g *quantGemv) stepBytes(r *pieceReader, block ptx.Reg[uint32], bytes ptx.Ptr[ptx.Global, uint8],
	words ptx.Ptr[ptx.Global, uint32], cols ptx.Reg[uint32]) {
	k, c := g.k, g.calc
	var packed [2][]packedUnit
	var rows [2]pieceWeights
	for i, row := range g.rows {
		packed[i] = r.load(row, block)
	}
	for i := range rows {
		rows[i] = r.weights(packed[i])
	}
	for v := range g.room {
		if v > 0 { // rows that there are not have memory, too
			bytes, words = ptx.AtByte(k, bytes, cols), ptx.AtByte(k, words, ptx.Shr(k, cols, u32(2)))
		}
		heads := r.heads(words)
		for n, part := range r.parts {
			scale, sum := heads[2*n], ptx.Imm(int32(0))
			if g.affine || g.zero > 0 {
				sum = r.sum(heads[2*n+1])
			}
			var x []ptx.Reg[uint32]
			for _, run := range part.runs {
				four := ptx.Load4(k, ptx.Cast[uint32](bytes.Bytes(run.at)), ptx.ReadOnly)
				x = append(x, four[:]...)
			}
			var floatSum float
			if g.affine {
				floatSum = ptx.Convert[float32](k, sum)
			}
			xScale := ptx.Bitcast[float32](k, scale)
			for i, w := range rows {
				s, y := g.sums[i*g.room+v], ptx.Convert[float32](k, r.dot(w, n, x, sum))
				if g.affine {
					y = c.fma(w.scale[n], y, c.neg(c.mul(w.minimum[n], floatSum)))
					s.Set(c.fma(y, xScale, s.Get()))
				} else {
					s.Set(c.fma(y, c.mul(w.scale[n], xScale), s.Get()))
				}
			}
		}
	}
}

// heads are the words of scales and sums of the blocks of x of all parts, which are neighbours.
func (p *pieceReader) heads(words ptx.Ptr[ptx.Global, uint32]) (all []ptx.Reg[uint32]) {
	k := p.k
	if len(p.parts) == 1 {
		if !p.affine && p.zero == 0 {
			return []ptx.Reg[uint32]{ptx.Load(k, words, ptx.ReadOnly), u32(0)}
		}
		two := ptx.Load2(k, words, ptx.ReadOnly)
		return two[:]
	}
	for i := 0; i < len(p.parts); i += 2 {
		four := ptx.Load4(k, words.At(2*i), ptx.ReadOnly)
		all = append(all, four[:]...)
	}
	return all
}

// sum is that of the bytes of x that belong to a part, of those of both halves of a block of 32.
func (p *pieceReader) sum(halves ptx.Reg[uint32]) ptx.Reg[int32] {
	k := p.k
	if len(p.parts[0].runs) == 1 {
		selector := ptx.Select(k, ptx.Eq(k, p.half.value(k), u32(0)), u32(0x9910), u32(0xbb32))
		return ptx.Bitcast[int32](k, ptx.Prmt(k, halves, u32(0), selector))
	}
	return sumOfHalves(k, halves)
}

// sumOfHalves is the sum of two int16, both of which are in the upper half of a product, without a carry from the lower one.
func sumOfHalves(k *ptx.Kernel, halves ptx.Reg[uint32]) ptx.Reg[int32] {
	return ptx.Shr(k, ptx.Bitcast[int32](k, ptx.Mul(k, halves, u32(0x10001))), u32(16))
}
