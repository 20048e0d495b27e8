package ptx

import "fmt"

// Barrier waits until all threads of the block are here, and orders their accesses to memory.
func (k *Kernel) Barrier() { k.emit("bar.sync", lit(0)) }

// BarSync waits at barrier id, of 16, until so many threads, a multiple of 32, are there or have been at [Kernel.BarArrive].
func (k *Kernel) BarSync(id, threads Reg[uint32]) { k.emit("bar.sync", id, threads) }

// BarArrive counts at barrier id without waiting.
func (k *Kernel) BarArrive(id, threads Reg[uint32]) { k.emit("bar.arrive", id, threads) }

// BarrierSync is [Kernel.BarSync] for warps whose lanes may arrive apart.
func (k *Kernel) BarrierSync(id, threads Reg[uint32]) { k.emit("barrier.sync", id, threads) }

// BarrierAll waits for all threads of the block: is p true for all of them?
func (k *Kernel) BarrierAll(p Reg[bool]) Reg[bool] {
	return def[bool](k, "bar.red.and.pred", lit(0), p)
}

// BarrierAny waits for all threads of the block: is p true for one of them?
func (k *Kernel) BarrierAny(p Reg[bool]) Reg[bool] { return def[bool](k, "bar.red.or.pred", lit(0), p) }

// BarrierCount waits for all threads of the block: for how many is p true?
func (k *Kernel) BarrierCount(p Reg[bool]) Reg[uint32] {
	return def[uint32](k, "bar.red.popc.u32", lit(0), p)
}

// WarpSync waits until the lanes of mask are here, and orders their accesses to memory.
func (k *Kernel) WarpSync(mask Reg[uint32]) { k.emit("bar.warp.sync", mask) }

// FenceAcqRel orders the thread's accesses to memory before it with those after, as the scope sees them.
func (k *Kernel) FenceAcqRel(s Scope) { k.emit("fence.acq_rel." + string(s)) }

// FenceSC is a sequentially consistent [Kernel.FenceAcqRel].
func (k *Kernel) FenceSC(s Scope) { k.emit("fence.sc." + string(s)) }

// FullWarp is the mask of all lanes.
func FullWarp() Reg[uint32] { return Imm(uint32(0xffffffff)) }

// Lane is what shuffles move.
type Lane interface {
	float32 | Word32
}

// ShuffleMode says which lane a shuffle reads.
type ShuffleMode string

// The modes. A lane whose source would lie outside its segment gets its own value.
const (
	ShuffleUp    ShuffleMode = "up"   // lane − n
	ShuffleDown  ShuffleMode = "down" // lane + n
	ShuffleXor   ShuffleMode = "bfly" // lane ^ n
	ShuffleIndex ShuffleMode = "idx"  // lane n of the segment
)

// segment is the operand of shfl that clamps and cuts.
func (k *Kernel) segment(mode ShuffleMode, width int) lit {
	if width < 1 || width > 32 || width&(width-1) != 0 {
		k.fail("segments of %d lanes; wanted a power of two of at most 32", width)
	}
	c := (32 - width) << 8
	if mode != ShuffleUp {
		c |= 31
	}
	return lit(c)
}

// VoteAll tells whether p is true in all lanes of mask.
func (k *Kernel) VoteAll(p Reg[bool], mask Reg[uint32]) Reg[bool] {
	return def[bool](k, "vote.sync.all.pred", p, mask)
}

// VoteAny tells whether p is true in a lane of mask.
func (k *Kernel) VoteAny(p Reg[bool], mask Reg[uint32]) Reg[bool] {
	return def[bool](k, "vote.sync.any.pred", p, mask)
}

// VoteSame tells whether p is the same in all lanes of mask.
func (k *Kernel) VoteSame(p Reg[bool], mask Reg[uint32]) Reg[bool] {
	return def[bool](k, "vote.sync.uni.pred", p, mask)
}

// Ballot is the lanes of mask in which p is true.
func (k *Kernel) Ballot(p Reg[bool], mask Reg[uint32]) Reg[uint32] {
	return def[uint32](k, "vote.sync.ballot.b32", p, mask)
}

// ActiveMask is the lanes that run this instruction together. It says nothing about which ones will next.
func (k *Kernel) ActiveMask() Reg[uint32] { return def[uint32](k, "activemask.b32") }

// Nanosleep pauses the thread for about so many nanoseconds, at most a million.
func (k *Kernel) Nanosleep(ns Reg[uint32]) { k.emit("nanosleep.u32", ns) }

// Shuffle is x of another lane, all lanes of mask taking part; n and mask are of type uint32. The warp is cut into segments of width
// lanes, a power of two.
func (x Reg[T]) Shuffle(mode ShuffleMode, n any, width int, mask any) Reg[T] {
	k := kernelOf(x, n, mask)
	if k == nil {
		return noKernel[T]()
	}
	k.admit("shfl", typeOf[T]())
	return def[T](k, "shfl.sync."+string(mode)+".b32", inRegister(k, x), lift[uint32](k, n), k.segment(mode, width), lift[uint32](k, mask))
}

// ShuffleInside is [Reg.Shuffle], and whether the source lies inside the segment.
func (x Reg[T]) ShuffleInside(mode ShuffleMode, n any, width int, mask any) (Reg[T], Reg[bool]) {
	k := kernelOf(x, n, mask)
	if k == nil {
		return noKernel[T](), noKernel[bool]()
	}
	k.admit("shfl", typeOf[T]())
	y, inside := Reg[T]{k.fresh(typeOf[T]())}, Reg[bool]{k.fresh(&infos.pred)}
	out := pair{result{y.v}, result{inside.v}}
	k.emit("shfl.sync."+string(mode)+".b32", out, inRegister(k, x), lift[uint32](k, n), k.segment(mode, width), lift[uint32](k, mask))
	return y, inside
}

// MatchAny is the lanes of mask whose x is the thread's.
func (x Reg[T]) MatchAny(mask any) Reg[uint32] {
	k := kernelOf(x, mask)
	if k == nil {
		return noKernel[uint32]()
	}
	k.admit("match", typeOf[T]())
	return def[uint32](k, fmt.Sprintf("match.any.sync.%s", typeOf[T]().bits), inRegister(k, x), lift[uint32](k, mask))
}

// MatchAll is mask if all its lanes have the same x, and whether they do.
func (x Reg[T]) MatchAll(mask any) (Reg[uint32], Reg[bool]) {
	k := kernelOf(x, mask)
	if k == nil {
		return noKernel[uint32](), noKernel[bool]()
	}
	k.admit("match", typeOf[T]())
	m, same := Reg[uint32]{k.fresh(&infos.u32)}, Reg[bool]{k.fresh(&infos.pred)}
	k.emit(fmt.Sprintf("match.all.sync.%s", typeOf[T]().bits), pair{result{m.v}, result{same.v}}, inRegister(k, x), lift[uint32](k, mask))
	return m, same
}

// Redux combines x of all lanes of mask by [OpAdd], [OpMin] or [OpMax], or, of unsigned ones, [OpAnd], [OpOr] or [OpXor].
func (x Reg[T]) Redux(op Op, mask any) Reg[T] {
	k := kernelOf(x, mask)
	if k == nil {
		return noKernel[T]()
	}
	t := typeOf[T]().op.String()
	if op == OpAnd || op == OpOr || op == OpXor {
		t = "b32"
	}
	k.admit("redux", typeOf[T]())
	return def[T](k, "redux.sync."+string(op)+"."+t, inRegister(k, x), lift[uint32](k, mask))
}
