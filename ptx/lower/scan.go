package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

func CumSum(s *step) error {
	rows, cols := program.RowsCols(s.in[0].Shape)
	o := s.Attr.Options.(compute.CumSumOptions)
	scanRows(s, operand(0), result, rows, cols, o.Exclusive, o.Reverse)
	return nil
}

// longestScan is the number of elements of a task at most: 16 tiles, one after the other.
const longestScan = 16 * 4 * teamThreads

// scanRows sums rows of x up to each element. Parts of rows are summed first, their sums are scanned likewise, and then each part from
// what is before it. (Blelloch, "Prefix sums and their applications", 1990: reduce, then scan; no block waits for another.)
func scanRows(s *step, x, y Buffer, rows, cols int, exclusive, backwards bool) {
	const blocks = 8 // per multiprocessor
	w := splitRows(s, rows, cols, blocks, longestScan)
	before := x // of no use
	if w.parts > 1 {
		sums := s.scratch(4 * w.tasks())
		reduceTasks(s, nil, nil, sumKernel, w, finishing(plain)(false, cols), sums, []any{x})
		before = s.scratch(4 * w.tasks())
		scanRows(s, sums, before, rows, w.parts, true, backwards)
		w.lanes = teamThreads
	} else {
		w.lanes = teamLanes(s, w, 1, 4, 1)
	}
	flags := 0
	for i, f := range []bool{exclusive, backwards, w.parts > 1} {
		if f {
			flags |= 1 << i
		}
	}
	s.launch(scanKernel, w.grid(), w.args(), flags, x, y, before)
}

var scanKernel = register(Kernel{Family: "scan", Name: "cumsum", Block: [3]int{teamThreads, 1, 1}, build: buildScan,
	Doc: "sums of the elements of tasks up to each one. Parameters: work; u32 flags: 1 without the element itself, 2 from the last " +
		"element down, 4 from what is before each task; f32* x, y; f32* before, one per task."})

// buildScan walks over tiles: a lane sums four neighbours, the lanes' sums are summed up by doubling distances, and the sum of all
// goes on to the next tile.
func buildScan(k *ptx.Kernel) {
	t, c := teamOf(k), calc{k}
	flags := ptx.Param[uint32](k, "flags")
	flag := func(bit int) ptx.Reg[bool] { return ptx.Ne(k, ptx.And(k, flags, u32(bit)), u32(0)) }
	x := ptx.At(k, rowOf(t, ptx.PointerParam[float32](k, "x")), t.start)
	y := ptx.At(k, rowOf(t, ptx.PointerParam[float32](k, "y")), t.start)
	before := ptx.PointerParam[float32](k, "before")
	carry := ptx.VarOf(k, ptx.LoadIf(k, ptx.And(k, t.active, flag(4)), ptx.At(k, before, t.task), num(0)))
	// Two buffers in turn: one barrier a tile.
	shared := ptx.SharedArray[float32](k, "of_warps", 2*warps)
	length := ptx.Sub(k, t.end, t.start)
	last := ptx.Sub(k, length, u32(1))
	longest := ptx.Min(k, t.words.At(k, 2), t.cols) // of any task: teams of a block take as many turns
	warp, lane := ptx.Shr(k, k.Tid(ptx.X), u32(5)), ptx.And(k, k.Tid(ptx.X), u32(31))
	width := ptx.Min(k, t.lanes, u32(32))
	inWarp := ptx.And(k, lane, ptx.Sub(k, width, u32(1)))
	firstWarp := ptx.And(k, warp, ptx.Not(k, ptx.Sub(k, ptx.Shr(k, t.lanes, u32(5)), u32(1)))) // of the team, if it is wide
	turn := ptx.VarOf(k, u32(0))
	ptx.For(k, u32(0), longest, ptx.Shl(k, t.lanes, u32(2)), func(tile ptx.Reg[uint32]) {
		place := ptx.Mad(k, t.lane, u32(4), tile)
		backwards := flag(2)
		var at [4]ptx.Reg[uint32]
		var inside [4]ptx.Reg[bool]
		var v [4]float
		for j := range v {
			i := place
			if j > 0 {
				i = ptx.Add(k, place, u32(j))
			}
			inside[j] = ptx.Lt(k, i, length)
			at[j] = ptx.Select(k, backwards, ptx.Sub(k, last, i), i)
			v[j] = ptx.LoadIf(k, inside[j], ptx.At(k, x, at[j]), num(0))
		}
		for j := 1; j < 4; j++ {
			v[j] = c.add(v[j-1], v[j])
		}
		sum := ptx.VarOf(k, v[3]) // of the lanes of the team in the warp up to this one
		for d := 1; d < 32; d *= 2 {
			other := ptx.Shuffle(k, ptx.ShuffleUp, sum.Get(), u32(d), 32, ptx.FullWarp())
			sum.Set(c.where(ptx.Ge(k, inWarp, u32(d)), c.add(other, sum.Get()), sum.Get()))
		}
		lower := ptx.Shuffle(k, ptx.ShuffleUp, sum.Get(), u32(1), 32, ptx.FullWarp())
		lower = c.where(ptx.Eq(k, inWarp, u32(0)), num(0), lower)
		end := ptx.Or(k, ptx.And(k, lane, ptx.Not(k, ptx.Sub(k, width, u32(1)))), ptx.Sub(k, width, u32(1)))
		all := ptx.VarOf(k, ptx.Shuffle(k, ptx.ShuffleIndex, sum.Get(), end, 32, ptx.FullWarp()))
		from := ptx.VarOf(k, c.add(carry.Get(), num(0))) // what is before the warp
		k.If(ptx.Gt(k, t.lanes, u32(32)), func() {
			sums := ptx.At(k, shared, turn.Get())
			k.When(ptx.Eq(k, lane, u32(31)), func() { ptx.Store(k, ptx.At(k, sums, warp), sum.Get()) })
			k.Barrier()
			total := ptx.VarOf(k, num(0))
			for j := range warps {
				other := ptx.Add(k, firstWarp, u32(j))
				s := ptx.LoadIf(k, ptx.Lt(k, u32(32*j), t.lanes), ptx.At(k, sums, other), num(0))
				from.Set(c.where(ptx.Lt(k, other, warp), c.add(from.Get(), s), from.Get()))
				total.Set(c.add(total.Get(), s))
			}
			all.Set(total.Get())
			turn.Set(ptx.Xor(k, turn.Get(), u32(warps)))
		})
		others, exclusive := c.add(from.Get(), lower), flag(1)
		carry.Set(c.add(carry.Get(), all.Get()))
		for j := range v {
			before := others
			if j > 0 {
				before = c.add(others, v[j-1])
			}
			ptx.StoreIf(k, inside[j], ptx.At(k, y, at[j]), c.where(exclusive, before, c.add(others, v[j])))
		}
	}, ptx.NoUnroll())
}
