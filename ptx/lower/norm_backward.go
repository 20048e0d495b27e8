package lower

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

// rmsNormBackward has the sums of squares and of products with g.
func rmsNormBackward(t team) statistic {
	k, c := t.k, calc{t.k}
	eps := ptx.Param[float32](k, "eps")
	return statistic{
		empty: []float32{0, 0},
		take: func(x, g []float, _ rowTile) []float {
			squares, products := make([]float, len(x)), make([]float, len(x))
			for i, v := range x {
				squares[i], products[i] = c.mul(v, v), c.mul(v, g[i])
			}
			return []float{sumOf(c, squares), sumOf(c, products)}
		},
		merge: func(a, b []float) []float { return []float{c.add(a[0], b[0]), c.add(a[1], b[1])} },
		coefficients: func(acc []float) []float {
			each := c.inverse(ptx.Convert[float32](k, t.cols))
			r := ptx.Rsqrt(k, c.fma(acc[0], each, eps))
			return []float{num(0), r, c.mul(c.mul(c.mul(r, r), c.mul(r, each)), acc[1])}
		},
		apply: func(x float, of, g []float) float { return c.fma(g[0], of[1], c.neg(c.mul(x, of[2]))) },
	}
}

// layerNormBackward has what [layerNorm] has, then the mean of g and the sum of the products of the deviations of x and g.
func layerNormBackward(t team) statistic {
	k, c := t.k, calc{t.k}
	s := layerNorm(t)
	take, merge, coefficients := s.take, s.merge, s.coefficients
	return statistic{
		empty: []float32{0, 0, 0, 0, 0},
		take: func(x, g []float, l rowTile) []float {
			of := take(x, nil, l)
			each := c.inverse(ptx.Max(k, of[0], num(1)))
			mean := c.mul(sumOf(c, g), each)
			products, deviations := make([]float, len(x)), make([]float, len(x))
			for i := range x {
				deviations[i] = c.where(l.has(i), ptx.Sub(k, g[i], mean), num(0))
				products[i] = c.mul(c.where(l.has(i), ptx.Sub(k, x[i], of[1]), num(0)), deviations[i])
			}
			rest := c.mul(sumOf(c, deviations), each) // the deviations of x sum up to nothing, so that it does not show in the products
			return append(of, c.add(mean, rest), sumOf(c, products))
		},
		merge: func(a, b []float) []float {
			n := c.add(a[0], b[0])
			w := c.where(ptx.Eq(k, a[0], num(0)), num(1), c.mul(b[0], c.inverse(n)))
			dx, dg := ptx.Sub(k, b[1], a[1]), ptx.Sub(k, b[3], a[3])
			return append(merge(a[:3], b[:3]), c.fma(dg, w, a[3]), c.fma(c.mul(dx, dg), c.mul(a[0], w), c.add(a[4], b[4])))
		},
		coefficients: func(acc []float) []float {
			of := coefficients(acc[:3])
			r := of[1]
			return append(of, acc[3], c.mul(c.mul(c.mul(r, r), c.mul(r, c.inverse(acc[0]))), acc[4]))
		},
		apply: func(x float, of, g []float) float {
			return c.fma(ptx.Sub(k, g[0], of[2]), of[1], c.neg(c.mul(ptx.Sub(k, x, of[0]), of[3])))
		},
	}
}

// A block of the kernels norm_columns has columnsOfBlock columns, four of each lane, and its warps take rows in turn.
const (
	columnsOfBlock = 128
	mostRowsOfPart = 4096
)

// normBackward is the gradient for x, then for the vectors: partial sums over some rows, and the sums of these.
func normBackward(s *step) {
	rows, cols := program.RowsCols(s.in[0].Shape)
	vectors := len(s.outs) - 1
	if rows == 0 {
		for i := range vectors {
			s.fillWords(resultAt(1+i), 0, cols)
		}
		return
	}
	norms := s.scratch(8 * rows)
	dy := operand(len(s.in) - 1)
	rowsStep(s, nil, []any{operand(0), dy, operand(1), result, norms})

	blocks := ceilDiv(cols, columnsOfBlock)
	perPart := min(max(ceilDiv(rows, ceilDiv(4*s.caps.Multiprocessors, blocks)), 4*warps), mostRowsOfPart)
	parts := ceilDiv(rows, perPart)
	sums := []any{resultAt(1), resultAt(vectors)}
	if parts > 1 {
		for i := range vectors {
			sums[i] = s.scratch(4 * parts * cols)
		}
		sums[1] = sums[vectors-1]
	}
	sizes := append([]uint32{uint32(rows), uint32(cols), uint32(perPart), flagIf(1, cols%4 == 0)}, divisorOf(blocks)...)
	s.launch(normColumns[vectors-1], [3]int{blocks * parts, 1, 1}, append([]any{sizes, operand(0), dy, norms}, sums[:vectors]...)...)
	if parts > 1 {
		for i := range vectors {
			partial := sums[i].(Buffer)
			addUp(s, uniform(parts, 1, 1, cols), 0, 0, nil, partial, partial, resultAt(1+i))
		}
	}
}

// normColumns are the kernels for gamma alone and for gamma and beta.
var normColumns = [2]*Kernel{normColumnsKernel("norm_columns", 1), normColumnsKernel("norm_columns_beta", 2)}

func normColumnsKernel(name string, vectors int) *Kernel {
	return register(Kernel{Family: "rows", Name: name, Block: [3]int{teamThreads, 1, 1},
		Doc: "dgamma = Σdy·(x − mean)·rstd and dbeta = Σdy, if it is there, over parts of the rows. Parameters: u32 sizes[] (rows, " +
			"columns, rows of a part, whether columns come in fours, blocks of a part as a divisor), f32* x, f32* dy, f32* norms, " +
			"f32* dgamma, f32* dbeta [parts][columns].",
		build: func(k *ptx.Kernel) {
			c := calc{k}
			sizes := ptx.ParamArray[uint32](k, "sizes", 4+divisorWords)
			x, dy := ptx.PointerParam[float32](k, "x", ptx.Align(16)), ptx.PointerParam[float32](k, "dy", ptx.Align(16))
			norms := ptx.PointerParam[float32](k, "norms", ptx.Align(8))
			sums := []ptx.Ptr[ptx.Global, float32]{ptx.PointerParam[float32](k, "dgamma")}
			if vectors > 1 {
				sums = append(sums, ptx.PointerParam[float32](k, "dbeta"))
			}
			rows, cols, perPart := sizes.At(k, 0), sizes.At(k, 1), sizes.At(k, 2)
			vector := ptx.Ne(k, sizes.At(k, 3), u32(0))
			part, block := divisorAt(k, sizes, 4).split(k, k.Ctaid(ptx.X))
			lane, warp := ptx.And(k, k.Tid(ptx.X), u32(31)), ptx.Shr(k, k.Tid(ptx.X), u32(5))
			base := ptx.Mul(k, block, u32(columnsOfBlock))
			// Places in the block's columns of the lane's four: neighbours, or 32 apart.
			at := ptx.Select(k, vector, ptx.Shl(k, lane, u32(2)), lane)
			apart := ptx.Select(k, vector, u32(1), u32(32))
			first := ptx.Add(k, base, at)
			var inside [4]ptx.Reg[bool]
			for j := range inside {
				inside[j] = ptx.Lt(k, ptx.Add(k, first, ptx.Mul(k, apart, u32(j))), cols)
			}
			acc := make([][4]*ptx.Var[float32], vectors)
			for i := range acc {
				for j := range acc[i] {
					acc[i][j] = ptx.VarOf(k, num(0))
				}
			}
			start := ptx.Mul(k, part, perPart)
			end := ptx.Min(k, ptx.Add(k, start, perPart), rows)
			add := func(row ptx.Reg[uint32], load func(p ptx.Ptr[ptx.Global, float32]) [4]float) {
				n := ptx.Load2(k, ptx.AtByte(k, norms, ptx.MulWideU32(k, row, u32(8))))
				from := ptx.MulWideU32(k, row, cols)
				v, d := load(ptx.At(k, ptx.At(k, x, from), first)), load(ptx.At(k, ptx.At(k, dy, from), first))
				for j := range v {
					acc[0][j].Set(c.fma(d[j], c.mul(ptx.Sub(k, v[j], n[0]), n[1]), acc[0][j].Get()))
					if vectors > 1 {
						acc[1][j].Set(c.add(acc[1][j].Get(), d[j]))
					}
				}
			}
			walk := func(load func(p ptx.Ptr[ptx.Global, float32]) [4]float) func() {
				return func() {
					ptx.For(k, ptx.Add(k, start, warp), end, u32(warps), func(row ptx.Reg[uint32]) { add(row, load) }, ptx.UnrollBy(2))
				}
			}
			k.If(vector, func() {
				k.If(inside[0], walk(func(p ptx.Ptr[ptx.Global, float32]) [4]float { return ptx.Load4(k, p) }))
			}, walk(func(p ptx.Ptr[ptx.Global, float32]) (v [4]float) {
				for j := range v {
					v[j] = ptx.LoadIf(k, inside[j], p.At(32*j), num(0))
				}
				return v
			}))
			// NaN and infinities of norms stand in columns beyond the end, too, where nobody looks.
			shared := ptx.SharedArray[float32](k, "of_warps", vectors*warps*columnsOfBlock)
			mine := ptx.At(k, shared, ptx.Mad(k, warp, u32(columnsOfBlock), at))
			for i := range acc {
				for j := range acc[i] {
					ptx.Store(k, ptx.At(k, mine.At(i*warps*columnsOfBlock), ptx.Mul(k, apart, u32(j))), acc[i][j].Get())
				}
			}
			k.Barrier()
			column := ptx.And(k, k.Tid(ptx.X), u32(columnsOfBlock-1))
			k.If(ptx.And(k, ptx.Lt(k, k.Tid(ptx.X), u32(columnsOfBlock)), ptx.Lt(k, ptx.Add(k, base, column), cols)), func() {
				for i, to := range sums {
					var parts []float
					for w := range warps {
						parts = append(parts, ptx.Load(k, ptx.At(k, shared, column).At((i*warps+w)*columnsOfBlock)))
					}
					to = ptx.At(k, ptx.At(k, to, ptx.MulWideU32(k, part, cols)), ptx.Add(k, base, column))
					ptx.Store(k, to, sumOf(c, parts))
				}
			})
		}})
}
