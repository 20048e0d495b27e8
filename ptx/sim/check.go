package sim

import "github.com/wavelane/wavelane/ptx/ir"

// monitor watches memory and order where Config.Checks asks for it. A GPU has one, or nil: then nothing is called. All calls of
// a launch come from one goroutine. Methods end the launch by [warp.fault]; host calls return faults. Besides [watch] the tests have
// an implementation of their own, which finds races by full vector clocks, and compare the two.
type monitor interface {
	// begin and end enclose a launch; allocations keep their shadow between launches.
	begin(g *grid)
	end()

	// started is called before a warp's first instruction.
	started(w *warp)

	// access is called for each access of each lane after bounds and alignment were checked and before the bytes move. off is the
	// offset in s.data. undef has bit i set where byte i of what a store writes has no value; the result says the same of what a
	// load reads.
	access(w *warp, lane int, op *memOp, s *segment, off int, undef uint32) uint32
	// reads and writes are access for plain loads and stores of lanes at once, as long as nothing is unusual; else they return
	// false, and access has to be called for each lane.
	reads(w *warp, m uint32, op *memOp, s *segment, off *[warpSize]uint64) bool
	writes(w *warp, m uint32, op *memOp, s *segment, off *[warpSize]uint64) bool
	// forget makes n bytes undefined: a new block's shared memory, a new frame.
	forget(s *segment, off, n int)
	// carry copies what is known of n bytes at offset src of one segment to offset dst of another, or of the same: arguments and
	// results of calls, copies by the host.
	carry(to *segment, dst int, from *segment, src, n int)

	// release says that what the lanes did before is visible to whoever acquires the key afterwards; acquire is the other half.
	// Keys are pointers: *barrier for bar.sync, *cluster for barrier.cluster, whatever stands for an mbarrier.
	release(w *warp, lanes uint32, key any)
	acquire(w *warp, lanes uint32, key any)
	// releaseFenced is release of what the lanes did before their last fence for their cluster or more.
	releaseFenced(w *warp, lanes uint32, key any)
	// complete says that a phase of the key is over: until the next one is, acquire gets what has been released so far. It is
	// for keys whose waiters come at any later time; without it, acquire gets all.
	complete(key any)
	// meet says that the lanes of the warp synchronise with each other: bar.warp.sync, shfl.sync and their like.
	meet(w *warp, lanes uint32)
	// fence is fence.sem.scope and membar.
	fence(w *warp, lanes uint32, sem, scope ir.Mod)
	// exit says that the lanes have ended.
	exit(w *warp, lanes uint32)

	// allocated, freed, wrote and read are the host's accesses. read returns a fault if one of the bytes has no value.
	allocated(s *segment)
	freed(s *segment)
	wrote(s *segment, off, n int)
	read(s *segment, off, n int) *Fault
}
