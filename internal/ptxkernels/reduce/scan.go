package reduce

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

func CumSum(s *kit.Step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	o := s.Attr.Options.(compute.CumSumOptions)
	scanRows(s, kit.In(0), kit.Out, rows, cols, o.Exclusive, o.Reverse)
	return nil
}

// longestScan is the number of elements of a task at most: 16 tiles, one after the other.
const longestScan = 16 * 4 * threadgroup.Threads

// scanRows sums rows of x up to each element. Parts of rows are summed first, their sums are scanned likewise, and then each part from
// what is before it. (Blelloch, "Prefix sums and their applications", 1990: reduce, then scan; no block waits for another.)
func scanRows(s *kit.Step, x, y kit.Buffer, rows, cols int, exclusive, backwards bool) {
	const blocks = 8 // per multiprocessor
	w := threadgroup.Split(s, rows, cols, blocks, longestScan)
	before := x // of no use
	if w.Parts > 1 {
		sums := s.NewScratch(4 * w.Tasks())
		reduceTasks(s, nil, nil, sumKernel, w, finishing(plain)(false, cols), sums, []any{x})
		before = s.NewScratch(4 * w.Tasks())
		scanRows(s, sums, before, rows, w.Parts, true, backwards)
		w.Lanes = threadgroup.Threads
	} else {
		w.Lanes = threadgroup.Lanes(s, w, 1, 4, 1)
	}
	flags := 0
	for i, f := range []bool{exclusive, backwards, w.Parts > 1} {
		if f {
			flags |= 1 << i
		}
	}
	s.Launch(scanKernel, w.Grid(), w.Args(), flags, x, y, before)
}

var scanKernel = kit.Register(kit.Kernel{Family: "scan", Name: "cumsum", Block: [3]int{threadgroup.Threads, 1, 1}, Build: buildScan,
	Doc: "sums of the elements of tasks up to each one. Parameters: work; u32 flags: 1 without the element itself, 2 from the last " +
		"element down, 4 from what is before each task; f32* x, y; f32* before, one per task."})

// buildScan walks over tiles: a lane sums four neighbours, the lanes' sums are summed up by doubling distances, and the sum of all
// goes on to the next tile.
func buildScan(k *ptx.Kernel) {
	t, c := threadgroup.Of(k), scalar.Math{K: k}
	flags := ptx.Param[uint32](k, "flags")
	flag := func(bit int) ptx.Reg[bool] { return ptx.Ne(k, ptx.And(k, flags, scalar.U32(bit)), scalar.U32(0)) }
	x := ptx.At(k, threadgroup.RowOf(t, ptx.PointerParam[float32](k, "x")), t.Start)
	y := ptx.At(k, threadgroup.RowOf(t, ptx.PointerParam[float32](k, "y")), t.Start)
	before := ptx.PointerParam[float32](k, "before")
	carry := ptx.VarOf(k, ptx.LoadIf(k, ptx.And(k, t.Active, flag(4)), ptx.At(k, before, t.Task), scalar.Num(0)))
	// Two buffers in turn: one barrier a tile.
	shared := ptx.SharedArray[float32](k, "of_warps", 2*threadgroup.Warps)
	length := ptx.Sub(k, t.End, t.Start)
	last := ptx.Sub(k, length, scalar.U32(1))
	longest := ptx.Min(k, t.Words.At(k, 2), t.Cols) // of any task: teams of a block take as many turns
	warp, lane := ptx.Shr(k, k.Tid(ptx.X), scalar.U32(5)), ptx.And(k, k.Tid(ptx.X), scalar.U32(31))
	width := ptx.Min(k, t.Lanes, scalar.U32(32))
	inWarp := ptx.And(k, lane, ptx.Sub(k, width, scalar.U32(1)))
	firstWarp := ptx.And(k, warp, ptx.Not(k, ptx.Sub(k, ptx.Shr(k, t.Lanes, scalar.U32(5)), scalar.U32(1)))) // of the team, if it is wide
	turn := ptx.VarOf(k, scalar.U32(0))
	ptx.For(k, scalar.U32(0), longest, ptx.Shl(k, t.Lanes, scalar.U32(2)), func(tile ptx.Reg[uint32]) {
		place := ptx.Mad(k, t.Lane, scalar.U32(4), tile)
		backwards := flag(2)
		var at [4]ptx.Reg[uint32]
		var inside [4]ptx.Reg[bool]
		var v [4]scalar.Float
		for j := range v {
			i := place
			if j > 0 {
				i = ptx.Add(k, place, scalar.U32(j))
			}
			inside[j] = ptx.Lt(k, i, length)
			at[j] = ptx.Select(k, backwards, ptx.Sub(k, last, i), i)
			v[j] = ptx.LoadIf(k, inside[j], ptx.At(k, x, at[j]), scalar.Num(0))
		}
		for j := 1; j < 4; j++ {
			v[j] = c.Add(v[j-1], v[j])
		}
		sum := ptx.VarOf(k, v[3]) // of the lanes of the team in the warp up to this one
		for d := 1; d < 32; d *= 2 {
			other := ptx.Shuffle(k, ptx.ShuffleUp, sum.Get(), scalar.U32(d), 32, ptx.FullWarp())
			sum.Set(c.Where(ptx.Ge(k, inWarp, scalar.U32(d)), c.Add(other, sum.Get()), sum.Get()))
		}
		lower := ptx.Shuffle(k, ptx.ShuffleUp, sum.Get(), scalar.U32(1), 32, ptx.FullWarp())
		lower = c.Where(ptx.Eq(k, inWarp, scalar.U32(0)), scalar.Num(0), lower)
		end := ptx.Or(k, ptx.And(k, lane, ptx.Not(k, ptx.Sub(k, width, scalar.U32(1)))), ptx.Sub(k, width, scalar.U32(1)))
		all := ptx.VarOf(k, ptx.Shuffle(k, ptx.ShuffleIndex, sum.Get(), end, 32, ptx.FullWarp()))
		from := ptx.VarOf(k, c.Add(carry.Get(), scalar.Num(0))) // what is before the warp
		k.If(ptx.Gt(k, t.Lanes, scalar.U32(32)), func() {
			sums := ptx.At(k, shared, turn.Get())
			k.When(ptx.Eq(k, lane, scalar.U32(31)), func() { ptx.Store(k, ptx.At(k, sums, warp), sum.Get()) })
			k.Barrier()
			total := ptx.VarOf(k, scalar.Num(0))
			for j := range threadgroup.Warps {
				other := ptx.Add(k, firstWarp, scalar.U32(j))
				s := ptx.LoadIf(k, ptx.Lt(k, scalar.U32(32*j), t.Lanes), ptx.At(k, sums, other), scalar.Num(0))
				from.Set(c.Where(ptx.Lt(k, other, warp), c.Add(from.Get(), s), from.Get()))
				total.Set(c.Add(total.Get(), s))
			}
			all.Set(total.Get())
			turn.Set(ptx.Xor(k, turn.Get(), scalar.U32(threadgroup.Warps)))
		})
		others, exclusive := c.Add(from.Get(), lower), flag(1)
		carry.Set(c.Add(carry.Get(), all.Get()))
		for j := range v {
			before := others
			if j > 0 {
				before = c.Add(others, v[j-1])
			}
			ptx.StoreIf(k, inside[j], ptx.At(k, y, at[j]), c.Where(exclusive, before, c.Add(others, v[j])))
		}
	}, ptx.NoUnroll())
}
