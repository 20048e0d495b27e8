package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

// What puts rows by index finds the updates of each row with integer atomics, whose outcome does not depend on their order, or
// (the links of a list) is put in order afterwards. Words about updates count them from 1; 0 means none.

func EmbeddingBackward(s *step) error {
	s.fillWords(result, 0, s.out.Len())
	return scatterAdd(s)
}

// scatter puts the last update of each row of the result there.
func scatter(s *step) error {
	d := catalogue.GatherRows(s.in[0].Shape, s.in[1].Shape)
	if d.Count == 0 {
		return nil
	}
	last := s.scratch(4 * d.Rows)
	s.fillWords(last, 0, d.Rows)
	s.launch(scatterLast, moveGrid(d.Count), d.Count, d.Rows, operand(1), last)
	kernel, unit := scatterRows, 1
	if d.Inner%4 == 0 {
		kernel, unit = scatterRows4, 4
	}
	total := d.Count * d.Inner / unit
	s.launch(kernel, moveGrid(total), total, d.Rows, divisorOf(d.Inner/unit), operand(1), last, operand(2), result)
	return nil
}

// scatterAdd adds the updates to the rows of the result.
func scatterAdd(s *step) error {
	d := catalogue.GatherRows(s.in[0].Shape, s.in[1].Shape)
	if d.Count == 0 {
		return nil
	}
	head, next, order := s.scratch(4*d.Rows), s.scratch(4*d.Count), s.scratch(4*d.Count)
	s.fillWords(head, 0, d.Rows)
	s.launch(scatterLink, moveGrid(d.Count), d.Count, d.Rows, operand(1), head, next)
	s.launch(scatterOrder, [3]int{ceilDiv(d.Count, moveThreads), 1, 1}, d.Count, d.Rows, operand(1), head, next, order)
	kernel, unit := scatterSum, 1
	if d.Inner%4 == 0 {
		kernel, unit = scatterSum4, 4
	}
	total := d.Count * d.Inner / unit
	s.launch(kernel, [3]int{ceilDiv(total, moveThreads), 1, 1}, total, divisorOf(d.Inner/unit), operand(1), order, operand(2), result)
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
		u.k.If(ptx.Lt(u.k, row[j], u.rows), func() { f(ptx.Add(u.k, i, u32(1)), row[j]) })
	}
}

var scatterLast = register(Kernel{Family: "scatter", Name: "scatter_last", Block: [3]int{moveThreads, 1, 1},
	Doc: "last[row] = the last update whose index is the row. Parameters: u32 count (of updates), u32 rows, u32* indices, " +
		"u32* last (0 before).",
	build: func(k *ptx.Kernel) {
		u, last := updatesOf(k), ptx.PointerParam[uint32](k, "last")
		u.each(func(update, row ptx.Reg[uint32]) { ptx.Reduce(k, ptx.OpMax, ptx.At(k, last, row), update) })
	}})

var scatterRows, scatterRows4 = scatterRowsKernel("scatter_rows", 1), scatterRowsKernel("scatter_rows_4", 4)

func scatterRowsKernel(name string, unit int) *Kernel {
	return register(Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[indices[j]] = x[j], rows of units of words, where last says that j is the last one. Parameters: u32 total (units " +
			"of x), u32 rows (of y), u32 width[] (units of a row, as a divisor), u32* indices, u32* last, u32* x, u32* y.",
		build: func(k *ptx.Kernel) {
			total, rows := ptx.Param[uint32](k, "total"), ptx.Param[uint32](k, "rows")
			width := divisorAt(k, ptx.ParamArray[uint32](k, "width", divisorWords), 0)
			indices, last := ptx.PointerParam[uint32](k, "indices"), ptx.PointerParam[uint32](k, "last")
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			var row, at [moveUnits]ptx.Reg[uint32]
			var mine [moveUnits]ptx.Reg[bool]
			for j, i := range index {
				update, col := width.split(k, i)
				row[j] = ptx.LoadIf(k, inside[j], ptx.At(k, indices, update), rows)
				winner := ptx.LoadIf(k, ptx.Lt(k, row[j], rows), ptx.At(k, last, row[j]), u32(0))
				mine[j] = ptx.Eq(k, winner, ptx.Add(k, update, u32(1)))
				at[j] = ptx.Mad(k, row[j], width.d, col)
			}
			var words [moveUnits][]ptx.Reg[uint32]
			for j, i := range index {
				words[j] = loadUnit(k, unit, mine[j], unitAt(k, x, unit, i), u32(0))
			}
			for j := range index {
				storeUnit(k, mine[j], unitAt(k, y, unit, at[j]), words[j])
			}
		}})
}

var scatterLink = register(Kernel{Family: "scatter", Name: "scatter_link", Block: [3]int{moveThreads, 1, 1},
	Doc: "Links the updates of each row to a list, in any order: head[row] is one of them, next[j−1] the one behind j, 0 the end. " +
		"Parameters: u32 count (of updates), u32 rows, u32* indices, u32* head (0 before), u32* next.",
	build: func(k *ptx.Kernel) {
		u, head, next := updatesOf(k), ptx.PointerParam[uint32](k, "head"), ptx.PointerParam[uint32](k, "next")
		u.each(func(update, row ptx.Reg[uint32]) {
			ptx.Store(k, ptx.At(k, next, update).At(-1), ptx.Atomic(k, ptx.OpExch, ptx.At(k, head, row), update))
		})
	}})

// scatterFirst marks the first update of a row among what scatter_order writes.
const scatterFirst = 1 << 31

var scatterOrder = register(Kernel{Family: "scatter", Name: "scatter_order", Block: [3]int{moveThreads, 1, 1},
	Doc: "Puts the lists of scatter_link in order: order[j−1] = the next greater update of the same row, 0 if there is none, plus " +
		"2³¹ if j is the first. Parameters: u32 count (of updates), u32 rows, u32* indices, u32* head, u32* next, u32* order.",
	build: func(k *ptx.Kernel) {
		u, head, next := updatesOf(k), ptx.PointerParam[uint32](k, "head"), ptx.PointerParam[uint32](k, "next")
		order := ptx.PointerParam[uint32](k, "order")
		i := k.GlobalID(ptx.X)
		k.If(ptx.Lt(k, i, u.count), func() {
			update, row := ptx.Add(k, i, u32(1)), ptx.Load(k, ptx.At(k, u.indices, i))
			first, after := ptx.VarOf(k, u32(0)), ptx.VarOf(k, ptx.Imm(^uint32(0)))
			k.If(ptx.Lt(k, row, u.rows), func() {
				first.Set(ptx.Imm(uint32(scatterFirst)))
				other := ptx.VarOf(k, ptx.Load(k, ptx.At(k, head, row)))
				k.While(func() ptx.Reg[bool] { return ptx.Ne(k, other.Get(), u32(0)) }, func() {
					o := ptx.Copy(k, other.Get())
					first.Set(ptx.Select(k, ptx.Lt(k, o, update), u32(0), first.Get()))
					greater := ptx.Select(k, ptx.Gt(k, o, update), o, ptx.Imm(^uint32(0)))
					after.Set(ptx.Min(k, after.Get(), greater))
					other.Set(ptx.Load(k, ptx.At(k, next, o).At(-1)))
				})
			})
			// ^0 becomes 0.
			following := ptx.Select(k, ptx.Eq(k, after.Get(), ptx.Imm(^uint32(0))), u32(0), after.Get())
			ptx.Store(k, ptx.At(k, order, i), ptx.Or(k, following, first.Get()))
		})
	}})

var scatterSum, scatterSum4 = scatterSumKernel("scatter_sum", 1), scatterSumKernel("scatter_sum_4", 4)

// scatterPart is how many updates are added up before their sum is added to the row: that keeps errors small.
const scatterPart = 32

func scatterSumKernel(name string, unit int) *Kernel {
	return register(Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[indices[j]] += Σ x[i] over j and the updates that order has behind it, where it marks j as the first of its row. " +
			"Parameters: u32 total (units of x), u32 width[] (units of a row, as a divisor), u32* indices, u32* order, f32* x, f32* y.",
		build: func(k *ptx.Kernel) {
			total := ptx.Param[uint32](k, "total")
			width := divisorAt(k, ptx.ParamArray[uint32](k, "width", divisorWords), 0)
			indices, order := ptx.PointerParam[uint32](k, "indices"), ptx.PointerParam[uint32](k, "order")
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			i := k.GlobalID(ptx.X)
			update, col := width.split(k, i)
			link := ptx.LoadIf(k, ptx.Lt(k, i, total), ptx.At(k, order, update), u32(0))
			k.If(ptx.Ge(k, link, ptx.Imm(uint32(scatterFirst))), func() {
				row := ptx.Load(k, ptx.At(k, indices, update))
				to := unitAt(k, y, unit, ptx.Mad(k, row, width.d, col))
				var sums, parts []*ptx.Var[float32]
				for _, w := range wholeUnit(k, unit, to) {
					sums = append(sums, ptx.VarOf(k, ptx.Bitcast[float32](k, w)))
					parts = append(parts, ptx.VarOf(k, ptx.Imm(float32(0))))
				}
				now := ptx.VarOf(k, ptx.Add(k, update, u32(1)))
				n := ptx.VarOf(k, u32(0))
				k.While(func() ptx.Reg[bool] { return ptx.Ne(k, now.Get(), u32(0)) }, func() {
					j := ptx.Sub(k, now.Get(), u32(1))
					from := unitAt(k, x, unit, ptx.Mad(k, j, width.d, col))
					now.Set(ptx.And(k, ptx.Load(k, ptx.At(k, order, j)), ptx.Imm(uint32(scatterFirst-1))))
					for w, v := range wholeUnit(k, unit, from) {
						parts[w].Set(ptx.Add(k, parts[w].Get(), ptx.Bitcast[float32](k, v)))
					}
					n.Set(ptx.Add(k, n.Get(), u32(1)))
					full := ptx.Eq(k, ptx.And(k, n.Get(), u32(scatterPart-1)), u32(0))
					k.If(ptx.Or(k, full, ptx.Eq(k, now.Get(), u32(0))), func() {
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
