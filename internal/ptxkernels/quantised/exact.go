package quantised

import (
	"slices"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// exactChunk is how many values of x, of all rows that a kernel has room for, are in shared memory at a time.
const exactChunk = 8192

// buildExact is for float32 activations. All teams of a block walk along x together, which is brought to shared memory in chunks, and
// on the way multiplied by gamma if there is one: the norm itself is a factor of the sums.
//
// Value i of a chunk lies in shared memory at i ^ twist: lanes that read four values of different units at a time meet all banks, in
// each of the ways in which formats lay units out.
func (g *quantGemv) buildExact() {
	k, c := g.k, g.calc
	eps := ptx.Param[float32](k, "eps")
	x, gamma := ptx.PointerParam[float32](k, "x", ptx.Align(16)), ptx.PointerParam[float32](k, "gamma", ptx.Align(16))
	g.matrices()
	g.bindRows()
	chunk, cols := exactChunk/g.room, g.size(quantK)
	memory := ptx.SharedArray[float32](k, "x_values", exactChunk, ptx.Align(16))
	normed := scalar.HasFlag(k, g.flags, quantNorm)
	tid := k.Tid(ptx.X)
	vectors := []ptx.Ptr[ptx.Global, float32]{x}
	for _, n := range g.apart() {
		vectors = append(vectors, ptx.At(k, x, n))
	}
	// each calls f with every four values of x between base and end that the thread has, of all vectors.
	each := func(base, end ptx.Reg[uint32], f func(at ptx.Reg[uint32], values [][4]scalar.Float)) {
		ptx.For(k, ptx.Add(k, base, ptx.Shl(k, tid, scalar.U32(2))), end, scalar.U32(4*threadgroup.Threads), func(at ptx.Reg[uint32]) {
			var values [][4]scalar.Float
			for _, p := range vectors {
				values = append(values, ptx.Load4(k, ptx.At(k, p, at), ptx.ReadOnly))
			}
			f(at, values)
		}, ptx.NoUnroll())
	}
	bring := func(base, end ptx.Reg[uint32]) {
		each(base, end, func(at ptx.Reg[uint32], values [][4]scalar.Float) {
			factors := scalar.VariablesOf(k, scalar.Constants([]float32{1, 1, 1, 1}))
			k.When(normed, func() {
				four := ptx.Load4(k, ptx.At(k, gamma, at), ptx.ReadOnly)
				factors.Set(four[:])
			})
			to := ptx.At(k, memory, twisted(k, ptx.Sub(k, at, base)))
			for v, four := range values {
				for j := range four {
					four[j] = c.Mul(four[j], factors[j].Get())
				}
				ptx.Store4(k, to.At(v*chunk), four)
			}
		})
	}
	unit := g.unit()
	reader := g.readUnits(k, g.blocksAt(k, g.sizes, quantBlocks), unit)
	// Where the first values of both runs of the lane's first unit are, in bytes: other units are a multiple of 256 values further,
	// and only the bits of values within a run are below.
	first := ptx.Add(k, ptx.Mul(k, shiftRight(k, g.lane, known(scalar.Log2(g.units()))), scalar.U32(g.len())), g.firstOf(k, unit).reg)
	var places [2]ptx.Reg[uint32]
	for i := range places {
		places[i] = ptx.Shl(k, twisted(k, ptx.Add(k, first, scalar.U32(i*g.between()))), scalar.U32(2))
	}
	base := ptx.VarOf(k, scalar.U32(0))
	k.While(func() ptx.Reg[bool] { return ptx.Lt(k, base.Get(), cols) }, func() {
		from := ptx.Copy(k, base.Get())
		end := ptx.Min(k, cols, ptx.Add(k, from, scalar.U32(chunk)))
		bring(from, end)
		k.Barrier()
		before := ptx.Shr(k, from, scalar.U32(scalar.Log2(g.len()))) // blocks
		turn := ptx.VarOf(k, scalar.U32(0))
		g.walk(ptx.Shr(k, ptx.Sub(k, end, from), scalar.U32(5)), g.units(), func(block ptx.Reg[uint32]) {
			g.stepExact(reader, ptx.Add(k, before, block), memory, places, turn.Get(), chunk)
			turn.Set(ptx.Add(k, turn.Get(), ptx.Shl(k, g.team.Lanes, scalar.U32(7))))
		})
		k.Barrier()
		base.Set(ptx.Add(k, from, scalar.U32(chunk)))
	})
	shared := ptx.SharedArray[float32](k, "squares", g.room*threadgroup.Warps)
	factors := scalar.VariablesOf(k, slices.Repeat([]scalar.Float{scalar.Num(1)}, g.room))
	k.If(normed, func() {
		squares := scalar.VariablesOf(k, scalar.Constants(make([]float32, g.room)))
		each(scalar.U32(0), cols, func(_ ptx.Reg[uint32], values [][4]scalar.Float) {
			for v, four := range values {
				for _, e := range four {
					squares[v].Set(c.Fma(e, e, squares[v].Get()))
				}
			}
		})
		part := c.Inverse(ptx.Convert[float32](k, cols))
		for v, sum := range reduceBlock(k, squares.Get(), shared) {
			factors[v].Set(ptx.Rsqrt(k, c.Fma(sum, part, eps)))
		}
	})
	g.Finish(func(v int) scalar.Float { return factors[v].Get() })
}

// twisted is where value i of a chunk lies.
func twisted(k *ptx.Kernel, i ptx.Reg[uint32]) ptx.Reg[uint32] {
	pair := ptx.Xor(k, ptx.Shr(k, i, scalar.U32(3)), ptx.Shr(k, i, scalar.U32(4)))
	t := ptx.Or(k, ptx.And(k, pair, scalar.U32(4)), ptx.And(k, ptx.Shr(k, i, scalar.U32(4)), scalar.U32(8)))
	return ptx.Xor(k, i, ptx.Or(k, t, ptx.And(k, ptx.Shr(k, i, scalar.U32(1)), scalar.U32(16))))
}

// stepExact adds up the products of a unit of both rows. Shared memory has the unit of each vector at places + turn, in bytes.
func (g *quantGemv) stepExact(r *unitReader, block ptx.Reg[uint32], memory ptx.Ptr[ptx.Shared, float32], places [2]ptx.Reg[uint32],
	turn ptx.Reg[uint32], chunk int) {
	k, c := g.k, g.calc
	var units [2]packedUnit
	var scales, minima [2][]scalar.Float
	for i, row := range g.rows {
		units[i] = r.Load(row, block)
	}
	for i := range units {
		scales[i], minima[i] = r.scale(units[i])
	}
	direct := g.affine && g.room > 1 // registers are short then
	for run := range 2 {
		quants := [2][]ptx.Reg[uint32]{r.quants(units[0], run), r.quants(units[1], run)}
		chains := make([]scalar.Float, len(g.sums))
		for word := range 4 {
			at := ptx.AtByte(k, memory, ptx.Add(k, ptx.Xor(k, places[run], scalar.U32(16*word)), turn))
			var w [2][4]scalar.Float
			for i := range w {
				w[i] = g.integers(k, quants[i][word])
				for j, q := range w[i] {
					if g.affine {
						w[i][j] = c.Fma(q, scales[i][run], c.Neg(minima[i][run]))
					}
				}
			}
			for v := range g.room {
				for j, x := range ptx.Load4(k, at.At(v*chunk)) {
					for i := range w {
						s := &chains[i*g.room+v]
						switch {
						case direct:
							sum := g.sums[i*g.room+v]
							sum.Set(c.Fma(w[i][j], x, sum.Get()))
						case word+j == 0:
							*s = c.Mul(w[i][j], x)
						default:
							*s = c.Fma(w[i][j], x, *s)
						}
					}
				}
			}
		}
		for n, s := range g.sums {
			switch {
			case direct:
			case g.affine:
				s.Set(c.Add(s.Get(), chains[n]))
			default:
				s.Set(c.Fma(scales[n/g.room][run], chains[n], s.Get()))
			}
		}
	}
}

// reduceBlock adds up values of all threads of a block; each gets the sums. shared has a word for each value and warp.
func reduceBlock(k *ptx.Kernel, values []scalar.Float, shared ptx.Ptr[ptx.Shared, float32]) []scalar.Float {
	c := scalar.Math{K: k}
	sums := scalar.VariablesOf(k, values)
	for d := 16; d > 0; d /= 2 {
		for _, s := range sums {
			s.Set(c.Add(s.Get(), ptx.Shuffle(k, ptx.ShuffleXor, s.Get(), scalar.U32(d), 32, ptx.FullWarp())))
		}
	}
	tid := k.Tid(ptx.X)
	k.If(ptx.Eq(k, ptx.And(k, tid, scalar.U32(31)), scalar.U32(0)), func() {
		for i, s := range sums {
			ptx.Store(k, ptx.At(k, shared, ptx.Shr(k, tid, scalar.U32(5))).At(i*threadgroup.Warps), s.Get())
		}
	})
	k.Barrier()
	for i, s := range sums {
		total := ptx.Load(k, shared.At(i*threadgroup.Warps))
		for w := 1; w < threadgroup.Warps; w++ {
			total = c.Add(total, ptx.Load(k, shared.At(i*threadgroup.Warps+w)))
		}
		s.Set(total)
	}
	return sums.Get()
}
