package quantised

import (
	"slices"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// exactChunk is how many values of x, of all rows that a kernel has room for, are in shared memory at a time.
const exactChunk = 8192

// exactLanes is how many lanes a thread group has at most: each has a unit of a chunk.
func exactLanes(room int) int { return exactChunk / room / 32 }

// buildExact is for float32 activations. All thread groups of a block walk along x together, which is brought to shared memory in chunks, and
// on the way multiplied by gamma if there is one: the norm itself is a factor of the sums.
//
// Value i of a chunk lies in shared memory at i ^ twist: lanes that read four values of different units at a time meet all banks, in
// each of the ways in which formats lay units out.
func (g *quantGemv) buildExact() {
	k, c := g.k, g.calc
	eps := kit.Read(g.Params, &g.of.Eps[0])
	x, gamma := kit.Ptr[float32](g.Params, &g.of.X, ptx.Align(16)), kit.Ptr[float32](g.Params, &g.of.Gamma[0], ptx.Align(16))
	g.matrices()
	g.bindRows()
	chunk, cols := exactChunk/g.room, g.U32(&g.of.K)
	memory := ptx.SharedArray[float32](k, "x_values", exactChunk, ptx.Align(16))
	normed := scalar.HasFlag(k, g.flags, quantNorm)
	tid := k.Tid(ptx.X)
	vectors := []ptx.Ptr[ptx.Global, float32]{x}
	for _, n := range g.apart() {
		vectors = append(vectors, x.At(n))
	}
	// each calls f with every four values of x between base and end that the thread has, of all vectors.
	each := func(base, end ptx.Reg[uint32], f func(at ptx.Reg[uint32], values [][4]scalar.Float)) {
		ptx.For(k, base.Add(tid.Shl(2)), end, 4*threadgroup.Threads, func(at ptx.Reg[uint32]) {
			var values [][4]scalar.Float
			for _, p := range vectors {
				values = append(values, p.At(at).Load4(ptx.ReadOnly))
			}
			f(at, values)
		}, ptx.NoUnroll())
	}
	bring := func(base, end ptx.Reg[uint32]) {
		each(base, end, func(at ptx.Reg[uint32], values [][4]scalar.Float) {
			factors := scalar.VariablesOf(k, scalar.Constants([]float32{1, 1, 1, 1}))
			k.When(normed, func() {
				four := gamma.At(at).Load4(ptx.ReadOnly)
				factors.Set(four[:])
			})
			to := memory.At(twisted(k, at.Sub(base)))
			for v, four := range values {
				for j := range four {
					four[j] = four[j].Mul(factors[j].Get())
				}
				to.At(v * chunk).Store4(four)
			}
		})
	}
	unit := g.unit()
	reader := g.readUnits(k, g.blocksOf(g.Params, &g.of.Blocks), unit)
	// Where the first values of both runs of the lane's first unit are, in bytes: other units are a multiple of 256 values further,
	// and only the bits of values within a run are below.
	first := shiftRight(k, g.lane, known(scalar.Log2(g.units()))).Mul(g.len()).Add(g.firstOf(k, unit).reg)
	var places [2]ptx.Reg[uint32]
	for i := range places {
		places[i] = twisted(k, first.Add(i*g.between())).Shl(2)
	}
	base := ptx.VarOf(k, ptx.U32(0))
	k.While(func() ptx.Reg[bool] { return base.Get().Lt(cols) }, func() {
		from := base.Get().Copy()
		end := cols.Min(from.Add(chunk))
		bring(from, end)
		k.Barrier()
		before := from.Shr(scalar.Log2(g.len())) // blocks
		offset := ptx.VarOf(k, ptx.U32(0))
		g.walk(end.Sub(from).Shr(5), g.units(), func(block ptx.Reg[uint32]) {
			g.stepExact(reader, before.Add(block), memory, places, offset.Get(), chunk)
			offset.Set(offset.Get().Add(g.group.Lanes.Shl(7)))
		})
		k.Barrier()
		base.Set(from.Add(chunk))
	})
	factors := scalar.VariablesOf(k, slices.Repeat([]scalar.Float{ptx.F32(1)}, g.room))
	k.If(normed, func() {
		squares := scalar.Zeros(k, g.room)
		each(ptx.U32(0), cols, func(_ ptx.Reg[uint32], values [][4]scalar.Float) {
			for v, four := range values {
				for _, e := range four {
					squares[v].Set(e.Fma(e, squares[v].Get()))
				}
			}
		})
		part := c.Inverse(ptx.Convert[float32](cols))
		for v, sum := range threadgroup.BlockReduce(k, "squares", squares.Get(), threadgroup.Plus) {
			factors[v].Set(sum.Fma(part, eps).Rsqrt())
		}
	})
	g.Finish(exactLanes(g.room), func(v int) scalar.Float { return factors[v].Get() })
}

// twisted is where value i of a chunk lies.
func twisted(k *ptx.Kernel, i ptx.Reg[uint32]) ptx.Reg[uint32] {
	pair := i.Shr(3).Xor(i.Shr(4))
	t := pair.And(4).Or(i.Shr(4).And(8))
	return i.Xor(t.Or(i.Shr(1).And(16)))
}

// stepExact adds up the products of a unit of both rows. Shared memory has the unit of each vector at places + offset, in bytes.
func (g *quantGemv) stepExact(r *unitReader, block ptx.Reg[uint32], memory ptx.Ptr[ptx.Shared, float32], places [2]ptx.Reg[uint32],
	offset ptx.Reg[uint32], chunk int) {
	k := g.k
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
			at := memory.Bytes(places[run].Xor(16 * word).Add(offset))
			var w [2][4]scalar.Float
			for i := range w {
				w[i] = g.integers(k, quants[i][word])
				for j, q := range w[i] {
					if g.affine {
						w[i][j] = q.Fma(scales[i][run], minima[i][run].Neg())
					}
				}
			}
			for v := range g.room {
				for j, x := range at.At(v * chunk).Load4() {
					for i := range w {
						s := &chains[i*g.room+v]
						switch {
						case direct:
							sum := g.sums[i*g.room+v]
							sum.Set(w[i][j].Fma(x, sum.Get()))
						case word+j == 0:
							*s = w[i][j].Mul(x)
						default:
							*s = w[i][j].Fma(x, *s)
						}
					}
				}
			}
		}
		for n, s := range g.sums {
			switch {
			case direct:
			case g.affine:
				s.Set(s.Get().Add(chains[n]))
			default:
				s.Set(scales[n/g.room][run].Fma(chains[n], s.Get()))
			}
		}
	}
}
