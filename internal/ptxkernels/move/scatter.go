package move

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// What puts rows by index finds the updates of each row with integer atomics, whose outcome does not depend on their order, or
// (the links of a list) is put in order afterwards. Words about updates count them from 1; 0 means none.

func EmbeddingBackward(s *kit.Step) error {
	s.Fill(kit.Out, 0, s.Result.Len())
	return ScatterAdd(s)
}

// Scatter puts the last update of each row of the result there.
func Scatter(s *kit.Step) error {
	d := catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape)
	if d.Count == 0 {
		return nil
	}
	last := s.NewScratch(4 * d.Rows)
	s.Fill(last, 0, d.Rows)
	s.Launch(scatterLast, moveGrid(d.Count), d.Count, d.Rows, kit.In(1), last)
	kernel, unit := scatterRows, 1
	if d.Inner%4 == 0 {
		kernel, unit = scatterRows4, 4
	}
	total := d.Count * d.Inner / unit
	s.Launch(kernel, moveGrid(total), total, d.Rows, scalar.DivisorOf(d.Inner/unit), kit.In(1), last, kit.In(2), kit.Out)
	return nil
}

// ScatterAdd adds the updates to the rows of the result.
func ScatterAdd(s *kit.Step) error {
	d := catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape)
	if d.Count == 0 {
		return nil
	}
	head, next, order := s.NewScratch(4*d.Rows), s.NewScratch(4*d.Count), s.NewScratch(4*d.Count)
	s.Fill(head, 0, d.Rows)
	s.Launch(scatterLink, moveGrid(d.Count), d.Count, d.Rows, kit.In(1), head, next)
	s.Launch(scatterOrder, [3]int{kit.CeilDiv(d.Count, moveThreads), 1, 1}, d.Count, d.Rows, kit.In(1), head, next, order)
	kernel, unit := scatterSum, 1
	if d.Inner%4 == 0 {
		kernel, unit = scatterSum4, 4
	}
	total := d.Count * d.Inner / unit
	s.Launch(kernel, [3]int{kit.CeilDiv(total, moveThreads), 1, 1}, total, scalar.DivisorOf(d.Inner/unit), kit.In(1), order, kit.In(2), kit.Out)
	return nil
}

// updates are the parameters that the kernels have in common: u32 count, u32 rows, u32* indices.
type updates struct {
	k           *ptx.Kernel
	count, rows ptx.Reg[uint32]
	indices     ptx.Ptr[ptx.Global, uint32]
}

func updatesOf(k *ptx.Kernel) updates {
	return updates{k, ptx.Param[uint32](k, "count"), ptx.Param[uint32](k, "rows"), ptx.PointerParam[uint32](k, "indices")}
}

// each gives f the numbers of the thread's updates and the rows that they are for, where there are such.
func (u updates) each(f func(update, row ptx.Reg[uint32])) {
	index, inside := unitsOf(u.k, u.count)
	var row [moveUnits]ptx.Reg[uint32]
	for j, i := range index {
		row[j] = ptx.LoadIf(u.k, inside[j], ptx.At(u.k, u.indices, i), u.rows)
	}
	for j, i := range index {
		u.k.If(ptx.Lt(u.k, row[j], u.rows), func() { f(ptx.Add(u.k, i, scalar.U32(1)), row[j]) })
	}
}

var scatterLast = kit.Register(kit.Kernel{Family: "scatter", Name: "scatter_last", Block: [3]int{moveThreads, 1, 1},
	Doc: "last[row] = the last update whose index is the row. Parameters: u32 count (of updates), u32 rows, u32* indices, " +
		"u32* last (0 before).",
	Build: func(k *ptx.Kernel) {
		u, last := updatesOf(k), ptx.PointerParam[uint32](k, "last")
		u.each(func(update, row ptx.Reg[uint32]) { ptx.Reduce(k, ptx.OpMax, ptx.At(k, last, row), update) })
	}})

var scatterRows, scatterRows4 = scatterRowsKernel("scatter_rows", 1), scatterRowsKernel("scatter_rows_4", 4)

func scatterRowsKernel(name string, unit int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[indices[j]] = x[j], rows of units of words, where last says that j is the last one. Parameters: u32 total (units " +
			"of x), u32 rows (of y), u32 width[] (units of a row, as a divisor), u32* indices, u32* last, u32* x, u32* y.",
		Build: func(k *ptx.Kernel) {
			total, rows := ptx.Param[uint32](k, "total"), ptx.Param[uint32](k, "rows")
			width := scalar.DivisorAt(k, ptx.ParamArray[uint32](k, "width", scalar.DivisorWords), 0)
			indices, last := ptx.PointerParam[uint32](k, "indices"), ptx.PointerParam[uint32](k, "last")
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			var row, at [moveUnits]ptx.Reg[uint32]
			var mine [moveUnits]ptx.Reg[bool]
			for j, i := range index {
				update, col := width.Split(k, i)
				row[j] = ptx.LoadIf(k, inside[j], ptx.At(k, indices, update), rows)
				winner := ptx.LoadIf(k, ptx.Lt(k, row[j], rows), ptx.At(k, last, row[j]), scalar.U32(0))
				mine[j] = ptx.Eq(k, winner, ptx.Add(k, update, scalar.U32(1)))
				at[j] = ptx.Mad(k, row[j], width.D, col)
			}
			var words [moveUnits][]ptx.Reg[uint32]
			for j, i := range index {
				words[j] = loadUnit(k, unit, mine[j], unitAt(k, x, unit, i), scalar.U32(0))
			}
			for j := range index {
				storeUnit(k, mine[j], unitAt(k, y, unit, at[j]), words[j])
			}
		}})
}

var scatterLink = kit.Register(kit.Kernel{Family: "scatter", Name: "scatter_link", Block: [3]int{moveThreads, 1, 1},
	Doc: "Links the updates of each row to a list, in any order: head[row] is one of them, next[j−1] the one behind j, 0 the end. " +
		"Parameters: u32 count (of updates), u32 rows, u32* indices, u32* head (0 before), u32* next.",
	Build: func(k *ptx.Kernel) {
		u, head, next := updatesOf(k), ptx.PointerParam[uint32](k, "head"), ptx.PointerParam[uint32](k, "next")
		u.each(func(update, row ptx.Reg[uint32]) {
			ptx.Store(k, ptx.At(k, next, update).At(-1), ptx.Atomic(k, ptx.OpExch, ptx.At(k, head, row), update))
		})
	}})

// scatterFirst marks the first update of a row among what scatter_order writes.
const scatterFirst = 1 << 31

var scatterOrder = kit.Register(kit.Kernel{Family: "scatter", Name: "scatter_order", Block: [3]int{moveThreads, 1, 1},
	Doc: "Puts the lists of scatter_link in order: order[j−1] = the next greater update of the same row, 0 if there is none, plus " +
		"2³¹ if j is the first. Parameters: u32 count (of updates), u32 rows, u32* indices, u32* head, u32* next, u32* order.",
	Build: func(k *ptx.Kernel) {
		u, head, next := updatesOf(k), ptx.PointerParam[uint32](k, "head"), ptx.PointerParam[uint32](k, "next")
		order := ptx.PointerParam[uint32](k, "order")
		i := k.GlobalID(ptx.X)
		k.If(ptx.Lt(k, i, u.count), func() {
			update, row := ptx.Add(k, i, scalar.U32(1)), ptx.Load(k, ptx.At(k, u.indices, i))
			first, after := ptx.VarOf(k, scalar.U32(0)), ptx.VarOf(k, ptx.Imm(^uint32(0)))
			k.If(ptx.Lt(k, row, u.rows), func() {
				first.Set(ptx.Imm(uint32(scatterFirst)))
				other := ptx.VarOf(k, ptx.Load(k, ptx.At(k, head, row)))
				k.While(func() ptx.Reg[bool] { return ptx.Ne(k, other.Get(), scalar.U32(0)) }, func() {
					o := ptx.Copy(k, other.Get())
					first.Set(ptx.Select(k, ptx.Lt(k, o, update), scalar.U32(0), first.Get()))
					greater := ptx.Select(k, ptx.Gt(k, o, update), o, ptx.Imm(^uint32(0)))
					after.Set(ptx.Min(k, after.Get(), greater))
					other.Set(ptx.Load(k, ptx.At(k, next, o).At(-1)))
				})
			})
			// ^0 becomes 0.
			following := ptx.Select(k, ptx.Eq(k, after.Get(), ptx.Imm(^uint32(0))), scalar.U32(0), after.Get())
			ptx.Store(k, ptx.At(k, order, i), ptx.Or(k, following, first.Get()))
		})
	}})

var scatterSum, scatterSum4 = scatterSumKernel("scatter_sum", 1), scatterSumKernel("scatter_sum_4", 4)

// scatterPart is how many updates are added up before their sum is added to the row: that keeps errors small.
const scatterPart = 32

func scatterSumKernel(name string, unit int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[indices[j]] += Σ x[i] over j and the updates that order has behind it, where it marks j as the first of its row. " +
			"Parameters: u32 total (units of x), u32 width[] (units of a row, as a divisor), u32* indices, u32* order, f32* x, f32* y.",
		Build: func(k *ptx.Kernel) {
			total := ptx.Param[uint32](k, "total")
			width := scalar.DivisorAt(k, ptx.ParamArray[uint32](k, "width", scalar.DivisorWords), 0)
			indices, order := ptx.PointerParam[uint32](k, "indices"), ptx.PointerParam[uint32](k, "order")
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			i := k.GlobalID(ptx.X)
			update, col := width.Split(k, i)
			link := ptx.LoadIf(k, ptx.Lt(k, i, total), ptx.At(k, order, update), scalar.U32(0))
			k.If(ptx.Ge(k, link, ptx.Imm(uint32(scatterFirst))), func() {
				row := ptx.Load(k, ptx.At(k, indices, update))
				to := unitAt(k, y, unit, ptx.Mad(k, row, width.D, col))
				var sums, parts []*ptx.Var[float32]
				for _, w := range wholeUnit(k, unit, to) {
					sums = append(sums, ptx.VarOf(k, ptx.Bitcast[float32](k, w)))
					parts = append(parts, ptx.VarOf(k, ptx.Imm(float32(0))))
				}
				now := ptx.VarOf(k, ptx.Add(k, update, scalar.U32(1)))
				n := ptx.VarOf(k, scalar.U32(0))
				k.While(func() ptx.Reg[bool] { return ptx.Ne(k, now.Get(), scalar.U32(0)) }, func() {
					j := ptx.Sub(k, now.Get(), scalar.U32(1))
					from := unitAt(k, x, unit, ptx.Mad(k, j, width.D, col))
					now.Set(ptx.And(k, ptx.Load(k, ptx.At(k, order, j)), ptx.Imm(uint32(scatterFirst-1))))
					for w, v := range wholeUnit(k, unit, from) {
						parts[w].Set(ptx.Add(k, parts[w].Get(), ptx.Bitcast[float32](k, v)))
					}
					n.Set(ptx.Add(k, n.Get(), scalar.U32(1)))
					full := ptx.Eq(k, ptx.And(k, n.Get(), scalar.U32(scatterPart-1)), scalar.U32(0))
					k.If(ptx.Or(k, full, ptx.Eq(k, now.Get(), scalar.U32(0))), func() {
						for w := range sums {
							sums[w].Set(ptx.Add(k, sums[w].Get(), parts[w].Get()))
							parts[w].Set(ptx.Imm(float32(0)))
						}
					})
				})
				var words []ptx.Reg[uint32]
				for _, v := range sums {
					words = append(words, ptx.Bitcast[uint32](k, v.Get()))
				}
				if unit == 1 {
					ptx.Store(k, to, words[0])
				} else {
					ptx.Store4(k, to, [4]ptx.Reg[uint32](words))
				}
			})
		}})
}

// wholeUnit is the words of a unit.
func wholeUnit(k *ptx.Kernel, unit int, p ptx.Ptr[ptx.Global, uint32]) []ptx.Reg[uint32] {
	if unit == 1 {
		return []ptx.Reg[uint32]{ptx.Load(k, p)}
	}
	v := ptx.Load4(k, p)
	return v[:]
}
