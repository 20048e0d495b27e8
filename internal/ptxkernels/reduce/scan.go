package reduce

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// CumSum lowers running sums along rows.
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
	w := threadgroup.Split(s, rows, cols, taskBlocks, longestScan)
	before := x // of no use
	if w.Parts > 1 {
		sums := s.NewScratch(4 * w.Tasks())
		tasks := taskLanes(s, w, nil)
		head := stageParams{tasks.Work(), int(threadgroup.PartRows), w.Parts, sums}
		s.Launch(sumKernel, tasks.Grid(), Reductions[catalogue.Sum].params(head, cols, y, x))
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
	s.Launch(scanKernel, w.Grid(), scanParams{w.Work(), flags, x, y, before})
}

// scanParams are those of cumsum.
type scanParams struct {
	threadgroup.Work
	Flags  int `array:"-"` // 1 without the element itself, 2 from the last element down, 4 from what is before each task
	X, Y   kit.Buffer
	Before kit.Buffer // one for each task
}

var scanKernel = kit.Define(kit.Kernel{Family: "scan", Name: "cumsum", Block: [3]int{threadgroup.Threads, 1, 1},
	Doc: "sums of the elements of tasks up to each one."}, buildScan)

// buildScan walks over tiles: a lane sums four neighbours, the lanes' sums are summed up by doubling distances, and the sum of all
// goes on to the next tile.
func buildScan(k *ptx.Kernel, p *kit.Params, params *scanParams) {
	t, c := threadgroup.Of(p, &params.Work), scalar.Math{K: k}
	flags := p.U32(&params.Flags)
	flag := func(bit int) ptx.Reg[bool] { return flags.And(bit).Ne(0) }
	x := threadgroup.RowParam(t, &params.X).At(t.Start)
	y := threadgroup.RowParam(t, &params.Y).At(t.Start)
	before := kit.Ptr[float32](p, &params.Before)
	carry := ptx.VarOf(k, ptx.LoadIf(t.Active.And(flag(4)), before.At(t.Task), 0))
	// Two buffers, used alternately: one barrier a tile.
	shared := ptx.SharedArray[float32](k, "of_warps", 2*threadgroup.Warps)
	length := t.End.Sub(t.Start)
	last := length.Sub(1)
	longest := t.Longest() // groups of a block take as many iterations
	warp, lane := k.Tid(ptx.X).Shr(5), k.Tid(ptx.X).And(31)
	width := t.Lanes.Min(32)
	inWarp := lane.And(width.Sub(1))
	firstWarp := warp.And(t.Lanes.Shr(5).Sub(1).Not()) // of the group, if it is wide
	buffer := ptx.VarOf(k, ptx.U32(0))
	ptx.For(k, 0, longest, t.Lanes.Shl(2), func(tile ptx.Reg[uint32]) {
		place := t.Lane.Mad(4, tile)
		backwards := flag(2)
		var at [4]ptx.Reg[uint32]
		var inside [4]ptx.Reg[bool]
		var v [4]scalar.Float
		for j := range v {
			i := place
			if j > 0 {
				i = place.Add(j)
			}
			inside[j] = i.Lt(length)
			at[j] = ptx.Select(backwards, last.Sub(i), i)
			v[j] = ptx.LoadIf(inside[j], x.At(at[j]), 0)
		}
		for j := 1; j < 4; j++ {
			v[j] = v[j-1].Add(v[j])
		}
		sum := ptx.VarOf(k, v[3]) // of the lanes of the group in the warp up to this one
		for d := 1; d < 32; d *= 2 {
			other := sum.Get().Shuffle(ptx.ShuffleUp, d, 32, ptx.FullWarp())
			sum.Set(c.Where(inWarp.Ge(d), other.Add(sum.Get()), sum.Get()))
		}
		lower := sum.Get().Shuffle(ptx.ShuffleUp, 1, 32, ptx.FullWarp())
		lower = c.Where(inWarp.Eq(0), ptx.F32(0), lower)
		end := lane.And(width.Sub(1).Not()).Or(width.Sub(1))
		all := ptx.VarOf(k, sum.Get().Shuffle(ptx.ShuffleIndex, end, 32, ptx.FullWarp()))
		from := ptx.VarOf(k, carry.Get().Add(0)) // what is before the warp
		k.If(t.Lanes.Gt(32), func() {
			sums := shared.At(buffer.Get())
			k.When(lane.Eq(31), func() { sums.At(warp).Store(sum.Get()) })
			k.Barrier()
			total := ptx.VarOf(k, ptx.F32(0))
			for j := range threadgroup.Warps {
				other := firstWarp.Add(j)
				s := ptx.LoadIf(ptx.U32(32*j).Lt(t.Lanes), sums.At(other), 0)
				from.Set(c.Where(other.Lt(warp), from.Get().Add(s), from.Get()))
				total.Set(total.Get().Add(s))
			}
			all.Set(total.Get())
			buffer.Set(buffer.Get().Xor(threadgroup.Warps))
		})
		others, exclusive := from.Get().Add(lower), flag(1)
		carry.Set(carry.Get().Add(all.Get()))
		for j := range v {
			before := others
			if j > 0 {
				before = others.Add(v[j-1])
			}
			ptx.StoreIf(inside[j], y.At(at[j]), c.Where(exclusive, before, others.Add(v[j])))
		}
	}, ptx.NoUnroll())
}
