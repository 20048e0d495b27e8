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
	unit := g.unit()
	reader := g.readUnits(k, g.blocksAt(k, g.sizes, quantBlocks), unit)
	inBlock := g.firstOf(k, unit)
	first := ptx.Add(k, ptx.Mul(k, shiftRight(k, g.lane, known(log2(g.units()))), u32(g.len())), inBlock.reg)
	cols := g.size(quantK)
	// The lane's first unit of the first row of x.
	bytes := ptx.PtrVarOf(k, ptx.AtByte(k, x, first))
	words := ptx.PtrVarOf(k, ptx.AtByte(k, scales, ptx.Shl(k, ptx.Shr(k, first, u32(5)), u32(3))))
	half := inBlock.field(k, 4, 1).times(k, 16) // which half of a block of 32 the runs are
	g.walk(ptx.Shr(k, cols, u32(5)), func(block ptx.Reg[uint32]) {
		g.stepBytes(reader, block, bytes.Get(), words.Get(), cols, half)
		bytes.Set(ptx.AtByte(k, bytes.Get(), ptx.Shl(k, g.team.lanes, u32(5))))
		words.Set(ptx.AtByte(k, words.Get(), ptx.Shl(k, g.team.lanes, u32(3))))
	})
	g.finish(nil)
}

// stepBytes adds up the products of a unit of both rows.
func (g *quantGemv) stepBytes(r *unitReader, block ptx.Reg[uint32], bytes ptx.Ptr[ptx.Global, uint8],
	words ptx.Ptr[ptx.Global, uint32], cols ptx.Reg[uint32], half number) {
	k, c := g.k, g.calc
	var units [2]packedUnit
	var scales, minima [2][]float
	for i, row := range g.rows {
		units[i] = r.load(row, block)
	}
	var quants [2][2][]ptx.Reg[uint32] // of each row and run
	for i := range units {
		scales[i], minima[i] = r.scale(units[i])
		quants[i] = [2][]ptx.Reg[uint32]{r.quants(units[i], 0), r.quants(units[i], 1)}
	}
	needsSum := g.affine || g.zero > 0
	for v := range g.room {
		if v > 0 { // rows that there are not have memory, too
			bytes, words = ptx.AtByte(k, bytes, cols), ptx.AtByte(k, words, ptx.Shr(k, cols, u32(2)))
		}
		for run := 0; run < 2; run++ {
			at := words.At(2 * (run * g.between() / 32))
			var x []ptx.Reg[uint32]
			for n := run; n < 2; n++ {
				four := ptx.Load4(k, ptx.Cast[uint32](bytes.Bytes(n*g.between())), ptx.ReadOnly)
				if x = append(x, four[:]...); !g.grouped() {
					break
				}
			}
			var scale float
			sum := ptx.Imm(int32(0)) // of the activations
			if needsSum {
				pair := ptx.Load2(k, at, ptx.ReadOnly)
				scale = ptx.Bitcast[float32](k, pair[0])
				both := ptx.Bitcast[int32](k, pair[1])
				if g.grouped() {
					sum = ptx.Add(k, ptx.Bfe(k, both, u32(0), u32(16)), ptx.Shr(k, both, u32(16)))
				} else {
					sum = ptx.Bfe(k, both, half.reg, u32(16))
				}
			} else {
				scale = ptx.Load(k, ptx.Cast[float32](at), ptx.ReadOnly)
			}
			begin := ptx.Imm(int32(0))
			if g.zero > 0 {
				begin = ptx.Mul(k, sum, ptx.Imm(int32(-g.zero)))
			}
			var floatSum float
			if g.affine {
				floatSum = ptx.Convert[float32](k, sum)
			}
			for i := range units {
				q := quants[i][run]
				if g.grouped() {
					q = append(q[:4:4], quants[i][1]...)
				}
				dot := begin
				for n, w := range q {
					dot = ptx.Dp4a(k, ptx.Bitcast[ptx.S8x4](k, w), ptx.Bitcast[ptx.S8x4](k, x[n]), dot)
				}
				s, y := g.sums[i*g.room+v], ptx.Convert[float32](k, dot)
				if g.affine {
					y = c.fma(scales[i][run], y, c.neg(c.mul(minima[i][run], floatSum)))
					s.Set(c.fma(y, scale, s.Get()))
				} else {
					s.Set(c.fma(y, c.mul(scales[i][run], scale), s.Get()))
				}
			}
			if g.grouped() {
				break
			}
		}
	}
}
