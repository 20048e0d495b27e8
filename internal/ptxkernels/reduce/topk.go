package reduce

import (
	"math"

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
			s.Launch(topKKernel, [3]int{rows, 1, 1}, cols, cols, 1, k, pairs, 0, x, kit.Out, kit.OutAt(1))
			return nil
		}
		to := s.NewScratch(8 * k * rows * parts)
		s.Launch(topKKernel, [3]int{rows * parts, 1, 1}, cols, chunk, parts, k, pairs, 1, x, to, to)
		x, pairs, cols = to, 1, parts*k
	}
}

var topKKernel = kit.Register(kit.Kernel{Family: "topk", Name: "top_k", Block: [3]int{threadgroup.Threads, 1, 1}, Build: buildTopK,
	Doc: "the k largest elements of each task, which is a part of a row, with their indices. Parameters: u32 cols; u32 chunk, elements of " +
		"a part; u32 parts, of a row; u32 k; u32 from_pairs, u32 to_pairs, 1 where operand and result are pairs of order key and " +
		"complement of the index as u64; f32* x or u64* pairs; f32* values or u64* pairs; i32* indices, not with to_pairs."})

// buildTopK gathers elements above the least of the k largest so far in an arena behind those; when it is full, it is sorted, and the
// k first stay. No two pairs are equal: the order in which they are gathered does not show.
func buildTopK(k *ptx.Kernel) {
	c := scalar.Math{K: k}
	cols, chunk, parts := ptx.Param[uint32](k, "cols"), ptx.Param[uint32](k, "chunk"), ptx.Param[uint32](k, "parts")
	most := ptx.Param[uint32](k, "k")
	fromPairs := ptx.Ne(k, ptx.Param[uint32](k, "from_pairs"), scalar.U32(0))
	toPairs := ptx.Ne(k, ptx.Param[uint32](k, "to_pairs"), scalar.U32(0))
	x := ptx.PointerParam[float32](k, "x")
	y := ptx.PointerParam[float32](k, "y")
	indices := ptx.PointerParam[uint32](k, "indices")
	tid, task := k.Tid(ptx.X), k.Ctaid(ptx.X)
	row := ptx.Div(k, task, parts)
	start := ptx.Mul(k, ptx.Sub(k, task, ptx.Mul(k, row, parts)), chunk)
	end := ptx.Min(k, ptx.Add(k, start, chunk), cols)
	origin := ptx.MulWideU32(k, row, cols)
	numbers := ptx.At(k, x, origin)
	given := ptx.At(k, ptx.Cast[uint64](x), origin)

	arena := ptx.SharedArray[uint64](k, "arena", topKRoom)
	count := ptx.SharedArray[uint32](k, "count", 1)
	none := ptx.Imm(uint64(0))
	for i := 0; i < topKRoom; i += threadgroup.Threads {
		ptx.Store(k, ptx.At(k, arena, tid).At(i), none)
	}
	k.When(ptx.Eq(k, tid, scalar.U32(0)), func() { ptx.Store(k, count, scalar.U32(0)) })
	least := ptx.VarOf(k, none)
	k.Barrier()
	ptx.For(k, start, end, scalar.U32(topKTile), func(tile ptx.Reg[uint32]) {
		var pairs [topKReads]*ptx.Var[uint64]
		for j := range pairs {
			pairs[j] = ptx.NewVar[uint64](k)
		}
		k.If(fromPairs, func() {
			for j := range pairs {
				i := ptx.Add(k, ptx.Add(k, tile, tid), scalar.U32(j*threadgroup.Threads))
				pairs[j].Set(ptx.LoadIf(k, ptx.Lt(k, i, end), ptx.At(k, given, i), none))
			}
		}, func() {
			var v [topKReads]scalar.Float
			for j := range pairs {
				i := ptx.Add(k, ptx.Add(k, tile, tid), scalar.U32(j*threadgroup.Threads))
				v[j] = ptx.LoadIf(k, ptx.Lt(k, i, end), ptx.At(k, numbers, i), scalar.Num(0))
			}
			for j := range pairs {
				i := ptx.Add(k, ptx.Add(k, tile, tid), scalar.U32(j*threadgroup.Threads))
				key := ptx.Bitcast[uint32](k, orderKey(k, withSign(c, v[j], scalar.Num(1))))
				pair := ptx.Pack64(k, ptx.Not(k, i), ptx.Xor(k, key, ptx.Imm(uint32(1)<<31)))
				pairs[j].Set(ptx.Select(k, ptx.Lt(k, i, end), pair, none))
			}
		})
		for j := range pairs {
			k.If(ptx.Gt(k, pairs[j].Get(), least.Get()), func() {
				at := ptx.Atomic(k, ptx.OpAdd, count, scalar.U32(1))
				ptx.Store(k, ptx.At(k, arena, at), pairs[j].Get())
			})
		}
		k.Barrier()
		n := ptx.Load(k, count)
		full := ptx.Gt(k, n, scalar.U32(topKRoom-topKTile))
		// A barrier: all know n before any thread changes it.
		sort := k.BarrierAny(ptx.Or(k, full, ptx.Ge(k, ptx.Add(k, tile, scalar.U32(topKTile)), end)))
		k.If(sort, func() {
			sortPairs(k, arena, n)
			least.Set(ptx.Load(k, ptx.At(k, arena, ptx.Sub(k, most, scalar.U32(1)))))
			ptx.For(k, ptx.Add(k, most, tid), n, scalar.U32(threadgroup.Threads), func(i ptx.Reg[uint32]) {
				ptx.Store(k, ptx.At(k, arena, i), none)
			}, ptx.NoUnroll())
			k.When(ptx.Eq(k, tid, scalar.U32(0)), func() { ptx.Store(k, count, ptx.Min(k, n, most)) })
			k.Barrier()
		})
	}, ptx.NoUnroll())
	to := ptx.MulWideU32(k, task, most)
	ptx.For(k, tid, most, scalar.U32(threadgroup.Threads), func(i ptx.Reg[uint32]) {
		pair := ptx.Load(k, ptx.At(k, arena, i))
		k.If(toPairs, func() { ptx.Store(k, ptx.At(k, ptx.At(k, ptx.Cast[uint64](y), to), i), pair) }, func() {
			index, key := ptx.Unpack64(k, pair)
			v := ptx.Bitcast[int32](k, ptx.Xor(k, key, ptx.Imm(uint32(1)<<31)))
			v = ptx.Xor(k, v, ptx.And(k, ptx.Shr(k, v, scalar.U32(31)), ptx.Imm(int32(math.MaxInt32)))) // as orderKey, its own inverse
			ptx.Store(k, ptx.At(k, ptx.At(k, ptx.Cast[int32](y), to), i), v)
			ptx.Store(k, ptx.At(k, ptx.At(k, indices, to), i), ptx.Not(k, index))
		})
	}, ptx.NoUnroll())
}

// sortPairs sorts the first n elements of an arena, descending, by a bitonic network whose comparisons all have one direction; those
// behind are 0. It ends with a barrier.
func sortPairs(k *ptx.Kernel, arena ptx.Ptr[ptx.Shared, uint64], n ptx.Reg[uint32]) {
	tid := k.Tid(ptx.X)
	exchange := func(i, j ptx.Reg[uint32]) {
		p, q := ptx.At(k, arena, i), ptx.At(k, arena, j)
		a, b := ptx.Load(k, p), ptx.Load(k, q)
		k.If(ptx.Gt(k, b, a), func() {
			ptx.Store(k, p, b)
			ptx.Store(k, q, a)
		})
	}
	log := ptx.VarOf(k, scalar.U32(0)) // of half the size of what gets sorted
	k.While(func() ptx.Reg[bool] { return ptx.Lt(k, ptx.Shl(k, scalar.U32(1), log.Get()), n) }, func() {
		half := ptx.Shl(k, scalar.U32(1), log.Get())
		last := ptx.Sub(k, half, scalar.U32(1))
		ptx.For(k, tid, n, scalar.U32(threadgroup.Threads), func(i ptx.Reg[uint32]) {
			at := ptx.And(k, i, last)
			base := ptx.Shl(k, ptx.Sub(k, i, at), scalar.U32(1))
			j := ptx.Sub(k, ptx.Add(k, ptx.Add(k, base, half), last), at)
			k.If(ptx.Lt(k, j, scalar.U32(topKRoom)), func() { exchange(ptx.Add(k, base, at), j) })
		}, ptx.NoUnroll())
		k.Barrier()
		step := ptx.VarOf(k, ptx.Shr(k, half, scalar.U32(1)))
		k.While(func() ptx.Reg[bool] { return ptx.Ne(k, step.Get(), scalar.U32(0)) }, func() {
			ptx.For(k, tid, n, scalar.U32(threadgroup.Threads), func(i ptx.Reg[uint32]) {
				at := ptx.And(k, i, ptx.Sub(k, step.Get(), scalar.U32(1)))
				from := ptx.Sub(k, ptx.Shl(k, i, scalar.U32(1)), at)
				j := ptx.Add(k, from, step.Get())
				k.If(ptx.Lt(k, j, scalar.U32(topKRoom)), func() { exchange(from, j) })
			}, ptx.NoUnroll())
			k.Barrier()
			step.Set(ptx.Shr(k, step.Get(), scalar.U32(1)))
		})
		log.Set(ptx.Add(k, log.Get(), scalar.U32(1)))
	})
}
