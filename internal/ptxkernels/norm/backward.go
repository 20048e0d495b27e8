package norm

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// A block of the kernels norm_columns has columnsOfBlock columns, four of each lane, and its warps take rows in turn.
const (
	columnsOfBlock = 128
	mostRowsOfPart = 4096
)

// normBackward is the gradient for x, then for the vectors: partial sums over some rows, and the sums of these.
func normBackward(s *kit.Step) {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	vectors := len(s.Results) - 1
	if rows == 0 {
		for i := range vectors {
			s.Fill(kit.OutAt(1+i), 0, cols)
		}
		return
	}
	norms := s.NewScratch(8 * rows)
	dy := kit.In(len(s.Operands) - 1)
	rowsStep(s, nil, rowsParams{X: kit.In(0), M: []kit.Buffer{dy}, Vectors: []kit.Buffer{kit.In(1)}, Y: kit.Out, Norms: []kit.Buffer{norms}})

	blocks := kit.CeilDiv(cols, columnsOfBlock)
	perPart := min(max(kit.CeilDiv(rows, kit.CeilDiv(4*s.Caps.Multiprocessors, blocks)), 4*threadgroup.Warps), mostRowsOfPart)
	parts := kit.CeilDiv(rows, perPart)
	var sums []kit.Buffer
	for i := range vectors {
		to := kit.OutAt(1 + i)
		if parts > 1 {
			to = s.NewScratch(4 * parts * cols)
		}
		sums = append(sums, to)
	}
	s.Launch(normColumns[vectors-1], [3]int{blocks * parts, 1, 1}, columnsParams{Rows: rows, Cols: cols, RowsOfPart: perPart,
		Vector: int(kit.FlagIf(1, cols%4 == 0)), Blocks: scalar.Divide(blocks), X: kit.In(0), DY: dy, Norms: norms, Sums: sums})
	if parts > 1 {
		for i, partial := range sums {
			tiling.AddPartials(s, tiling.UniformSplit(parts, 1, 1, cols), 0, 0, nil, partial, partial, kit.OutAt(1+i))
		}
	}
}

// columnsParams are those of norm_columns.
type columnsParams struct {
	Rows, Cols, RowsOfPart int           `array:"sizes"`
	Vector                 int           // whether columns come in fours
	Blocks                 scalar.Divide // of a part
	X, DY, Norms           kit.Buffer
	Sums                   []kit.Buffer `names:"dgamma,dbeta"` // [parts][columns]
}

// normColumns are the kernels for gamma alone and for gamma and beta.
var normColumns = [2]*kit.Kernel{normColumnsKernel("norm_columns", 1), normColumnsKernel("norm_columns_beta", 2)}

func normColumnsKernel(name string, vectors int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "rows", Name: name, Block: [3]int{threadgroup.Threads, 1, 1},
		Doc:    "dgamma = Σdy·(x − mean)·rstd and dbeta = Σdy, if it is there, over parts of the rows.",
		Params: columnsParams{Sums: make([]kit.Buffer, vectors)}},
		func(k *ptx.Kernel, p *kit.Params, of *columnsParams) {
			x, dy := kit.Ptr[float32](p, &of.X, ptx.Align(16)), kit.Ptr[float32](p, &of.DY, ptx.Align(16))
			norms := kit.Ptr[float32](p, &of.Norms, ptx.Align(8))
			var sums []ptx.Ptr[ptx.Global, float32]
			for i := range vectors {
				sums = append(sums, kit.Ptr[float32](p, &of.Sums[i]))
			}
			rows, cols, perPart := p.U32(&of.Rows), p.U32(&of.Cols), p.U32(&of.RowsOfPart)
			vector := p.U32(&of.Vector).Ne(0)
			part, block := p.Divisor(&of.Blocks).Split(k, k.Ctaid(ptx.X))
			lane, warp := k.Tid(ptx.X).And(31), k.Tid(ptx.X).Shr(5)
			base := block.Mul(columnsOfBlock)
			// Places in the block's columns of the lane's four: neighbours, or 32 apart.
			at := ptx.Select(vector, lane.Shl(2), lane)
			apart := ptx.Select(vector, ptx.U32(1), 32)
			first := base.Add(at)
			var inside [4]ptx.Reg[bool]
			for j := range inside {
				inside[j] = first.Add(apart.Mul(j)).Lt(cols)
			}
			acc := make([]scalar.Variables[float32], vectors)
			for i := range acc {
				acc[i] = scalar.Zeros(k, 4)
			}
			start := part.Mul(perPart)
			end := start.Add(perPart).Min(rows)
			walk := func(load func(p ptx.Ptr[ptx.Global, float32]) []scalar.Float) {
				ptx.For(k, start.Add(warp), end, threadgroup.Warps, func(row ptx.Reg[uint32]) {
					n := norms.Bytes(row.MulWide(8)).Load2()
					from := row.MulWide(cols)
					v, d := load(x.At(from).At(first)), load(dy.At(from).At(first))
					for j := range v {
						acc[0][j].Set(d[j].Fma(v[j].Sub(n[0]).Mul(n[1]), acc[0][j].Get()))
						if vectors > 1 {
							acc[1][j].Set(acc[1][j].Get().Add(d[j]))
						}
					}
				}, ptx.Unroll(2))
			}
			k.If(vector, func() {
				k.If(inside[0], func() {
					walk(func(p ptx.Ptr[ptx.Global, float32]) []scalar.Float { return scalar.LoadAll(p, 4) })
				})
			}, func() {
				walk(func(p ptx.Ptr[ptx.Global, float32]) (v []scalar.Float) {
					for j := range inside {
						v = append(v, ptx.LoadIf(inside[j], p.At(32*j), 0))
					}
					return v
				})
			})
			// NaN and infinities of norms stand in columns beyond the end, too, where nobody looks.
			shared := ptx.SharedArray[float32](k, "of_warps", vectors*threadgroup.Warps*columnsOfBlock)
			mine := shared.At(warp.Mad(columnsOfBlock, at))
			for i := range acc {
				for j := range acc[i] {
					mine.At(i * threadgroup.Warps * columnsOfBlock).At(apart.Mul(j)).Store(acc[i][j].Get())
				}
			}
			k.Barrier()
			column := k.Tid(ptx.X).And(columnsOfBlock - 1)
			k.If(k.Tid(ptx.X).Lt(columnsOfBlock).And(base.Add(column).Lt(cols)), func() {
				for i, to := range sums {
					var parts []scalar.Float
					for w := range threadgroup.Warps {
						parts = append(parts, shared.At(column).At((i*threadgroup.Warps+w)*columnsOfBlock).Load())
					}
					to = to.At(part.MulWide(cols)).At(base.Add(column))
					to.Store(scalar.SumOf(parts))
				}
			})
		})
}
