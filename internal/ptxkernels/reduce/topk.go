package reduce

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

const (
	topKRoom  = 2048                    // pairs that a block sorts
	topKReads = 4                       // elements that a thread reads at a time
	topKTile  = 4 * threadgroup.Threads // of the block: beside the largest K there is room for one
	topKLeast = 8192                    // elements that are worth a block
)

// TopK chooses among parts of rows where rows are few and long, then among what these gave.
func TopK(s *kit.Step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	k := s.Attr.Options.(compute.TopKOptions).K
	x, pairs := kit.In(0), 0
	for {
		parts := max(1, min(kit.CeilDiv(2*s.Caps.Multiprocessors, rows), cols/max(topKLeast, 8*k)))
		chunk := kit.CeilDiv(cols, parts)
		if parts == 1 {
			s.Launch(topKKernel, [3]int{rows, 1, 1}, topKParams{cols, cols, 1, k, pairs, 0, x, kit.Out, kit.OutAt(1)})
			return nil
		}
		to := s.NewScratch(8 * k * rows * parts)
		s.Launch(topKKernel, [3]int{rows * parts, 1, 1}, topKParams{cols, chunk, parts, k, pairs, 1, x, to, to})
		x, pairs, cols = to, 1, parts*k
	}
}

// topKParams are those of top_k.
type topKParams struct {
	Cols, Chunk, Parts int // Chunk is the elements of a part, Parts how many a row has
	K                  int
	FromPairs, ToPairs int        // 1 where x or y are pairs of order key and complement of the index as u64
	X, Y               kit.Buffer `of:"f32 or u64"`
	Indices            kit.Buffer `of:"s32"` // not with ToPairs
}

var topKKernel = kit.Define(kit.Kernel{Family: "topk", Name: "top_k", Block: [3]int{threadgroup.Threads, 1, 1},
	Doc: "the k largest elements of each task, which is a part of a row, with their indices."}, buildTopK)

// buildTopK gathers elements above the least of the k largest so far in an arena after those; when it is full, it is sorted, and the
// k first stay. No two pairs are equal: the order in which they are gathered does not show.
func buildTopK(k *ptx.Kernel, p *kit.Params, params *topKParams) {
	cols, chunk, parts, most := p.U32(&params.Cols), p.U32(&params.Chunk), p.U32(&params.Parts), p.U32(&params.K)
	fromPairs := p.U32(&params.FromPairs).Ne(0)
	toPairs := p.U32(&params.ToPairs).Ne(0)
	x, y := kit.Ptr[float32](p, &params.X), kit.Ptr[float32](p, &params.Y)
	indices := kit.Ptr[uint32](p, &params.Indices)
	tid, task := k.Tid(ptx.X), k.Ctaid(ptx.X)
	row := task.Div(parts)
	start := task.Sub(row.Mul(parts)).Mul(chunk)
	end := start.Add(chunk).Min(cols)
	origin := row.MulWide(cols)
	numbers := x.At(origin)
	given := ptx.Cast[uint64](x).At(origin)

	arena := ptx.SharedArray[uint64](k, "arena", topKRoom)
	count := ptx.SharedArray[uint32](k, "count", 1)
	none := ptx.Imm(uint64(0))
	for i := 0; i < topKRoom; i += threadgroup.Threads {
		arena.At(tid).At(i).Store(none)
	}
	k.When(tid.Eq(0), func() { count.Store(0) })
	least := ptx.VarOf(k, none)
	k.Barrier()
	ptx.For(k, start, end, topKTile, func(tile ptx.Reg[uint32]) {
		var pairs [topKReads]*ptx.Var[uint64]
		for j := range pairs {
			pairs[j] = ptx.NewVar[uint64](k)
		}
		k.If(fromPairs, func() {
			for j := range pairs {
				i := tile.Add(tid).Add(j * threadgroup.Threads)
				pairs[j].Set(ptx.LoadIf(i.Lt(end), given.At(i), none))
			}
		}, func() {
			var v [topKReads]scalar.Float
			for j := range pairs {
				i := tile.Add(tid).Add(j * threadgroup.Threads)
				v[j] = ptx.LoadIf(i.Lt(end), numbers.At(i), 0)
			}
			for j := range pairs {
				i := tile.Add(tid).Add(j * threadgroup.Threads)
				key := ptx.Bitcast[uint32](orderKey(v[j], ptx.F32(1)))
				pair := ptx.Pack64(i.Not(), key.Xor(uint32(1)<<31))
				pairs[j].Set(ptx.Select(i.Lt(end), pair, none))
			}
		})
		for j := range pairs {
			k.If(pairs[j].Get().Gt(least.Get()), func() {
				at := count.Atomic(ptx.OpAdd, 1)
				arena.At(at).Store(pairs[j].Get())
			})
		}
		k.Barrier()
		n := count.Load()
		full := n.Gt(topKRoom - topKTile)
		// A barrier: all know n before any thread changes it.
		sort := k.BarrierAny(full.Or(tile.Add(topKTile).Ge(end)))
		k.If(sort, func() {
			sortPairs(k, arena, n)
			least.Set(arena.At(most.Sub(1)).Load())
			ptx.For(k, most.Add(tid), n, threadgroup.Threads, func(i ptx.Reg[uint32]) {
				arena.At(i).Store(none)
			}, ptx.NoUnroll())
			k.When(tid.Eq(0), func() { count.Store(n.Min(most)) })
			k.Barrier()
		})
	}, ptx.NoUnroll())
	to := task.MulWide(most)
	ptx.For(k, tid, most, threadgroup.Threads, func(i ptx.Reg[uint32]) {
		pair := arena.At(i).Load()
		k.If(toPairs, func() { ptx.Cast[uint64](y).At(to).At(i).Store(pair) }, func() {
			index, key := ptx.Unpack64(pair)
			ptx.Cast[int32](y).At(to).At(i).Store(ordered(ptx.Bitcast[int32](key.Xor(uint32(1) << 31))))
			indices.At(to).At(i).Store(index.Not())
		})
	}, ptx.NoUnroll())
}

// sortPairs sorts the first n elements of an arena, descending, by a bitonic network whose comparisons all have one direction; those
// after are 0. It ends with a barrier.
func sortPairs(k *ptx.Kernel, arena ptx.Ptr[ptx.Shared, uint64], n ptx.Reg[uint32]) {
	tid := k.Tid(ptx.X)
	exchange := func(i, j ptx.Reg[uint32]) {
		p, q := arena.At(i), arena.At(j)
		a, b := p.Load(), q.Load()
		k.If(b.Gt(a), func() {
			p.Store(b)
			q.Store(a)
		})
	}
	log := ptx.VarOf(k, ptx.U32(0)) // of half the size of what gets sorted
	k.While(func() ptx.Reg[bool] { return ptx.U32(1).Shl(log.Get()).Lt(n) }, func() {
		half := ptx.U32(1).Shl(log.Get())
		last := half.Sub(1)
		ptx.For(k, tid, n, threadgroup.Threads, func(i ptx.Reg[uint32]) {
			at := i.And(last)
			base := i.Sub(at).Shl(1)
			j := base.Add(half).Add(last).Sub(at)
			k.If(j.Lt(topKRoom), func() { exchange(base.Add(at), j) })
		}, ptx.NoUnroll())
		k.Barrier()
		step := ptx.VarOf(k, half.Shr(1))
		k.While(func() ptx.Reg[bool] { return step.Get().Ne(0) }, func() {
			ptx.For(k, tid, n, threadgroup.Threads, func(i ptx.Reg[uint32]) {
				at := i.And(step.Get().Sub(1))
				from := i.Shl(1).Sub(at)
				j := from.Add(step.Get())
				k.If(j.Lt(topKRoom), func() { exchange(from, j) })
			}, ptx.NoUnroll())
			k.Barrier()
			step.Set(step.Get().Shr(1))
		})
		log.Set(log.Get().Add(1))
	})
}
