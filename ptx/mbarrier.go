package ptx

import "github.com/wavelane/wavelane/ptx/ir"

// Mbarrier is an mbarrier object in shared memory of the block: it counts arrivals, and bytes of bulk copies, in phases. What counts
// arrivals or bytes is a Reg[uint32] or a constant.
type Mbarrier struct{ p Ptr[Shared, uint64] }

// ClusterMbarrier is an mbarrier object of any block of the cluster.
type ClusterMbarrier struct{ p Ptr[Cluster, uint64] }

// NewMbarrier declares n barriers in shared memory and returns the first; see [Mbarrier.At].
func NewMbarrier(k *Kernel, name string, n int) Mbarrier {
	p := SharedArray[uint64](k, name, n)
	k.vars[len(k.vars)-1].Type = ir.B64
	return Mbarrier{p}
}

// MbarrierAt is the barrier in the 8 bytes at p.
func MbarrierAt(p Ptr[Shared, uint64]) Mbarrier { return Mbarrier{p} }

// At is the barrier i barriers further; i is an int or an [Index].
func (b Mbarrier) At(i any) Mbarrier { return Mbarrier{b.p.At(i)} }

// Address is the address within shared memory in a register.
func (b Mbarrier) Address() Reg[uint32] { return SharedAddress(b.p) }

// Map is the same barrier of the cluster's block of this rank.
func (b Mbarrier) Map(rank Reg[uint32]) ClusterMbarrier { return ClusterMbarrier{MapShared(b.p, rank)} }

// counting emits an instruction with a count of arrivals or bytes.
func (b Mbarrier) counting(code string, n any, before ...arg) {
	if k := b.p.need(n); k != nil {
		k.emit(code, append(before, b.p, lift[uint32](k, n))...)
	}
}

// state emits an instruction that returns the state of the phase, which may stay unused.
func (b Mbarrier) state(code string, n ...any) Reg[uint64] {
	k := b.p.need(n...)
	if k == nil {
		return noKernel[uint64]()
	}
	args := []arg{b.p}
	for _, n := range n {
		args = append(args, lift[uint32](k, n))
	}
	r := def[uint64](k, code, args...)
	k.regs[r.v.reg].ignore = true
	return r
}

// test emits an instruction that tells whether the phase of a state is complete.
func (b Mbarrier) test(code string, state Reg[uint64]) Reg[bool] {
	k := b.p.need(state)
	if k == nil {
		return noKernel[bool]()
	}
	return def[bool](k, code, b.p, state)
}

func (b Mbarrier) testParity(code string, parity any) Reg[bool] {
	k := b.p.need(parity)
	if k == nil {
		return noKernel[bool]()
	}
	return def[bool](k, code, b.p, lift[uint32](k, parity))
}

// Init makes a barrier whose phases so many arrivals complete. Others may use it after a [Kernel.Barrier]; the async proxy after
// [Kernel.FenceMbarrierInit] too.
func (b Mbarrier) Init(count any) { b.counting("mbarrier.init.shared.b64", count) }

// Inval ends the use of the barrier.
func (b Mbarrier) Inval() {
	if k := b.p.need(); k != nil {
		k.emit("mbarrier.inval.shared.b64", b.p)
	}
}

// Arrive arrives and returns the state of the phase, for [Mbarrier.TestWait].
func (b Mbarrier) Arrive() Reg[uint64] { return b.state("mbarrier.arrive.shared.b64") }

// ArriveN arrives n times at once.
func (b Mbarrier) ArriveN(n any) { b.counting("mbarrier.arrive.shared.b64", n, sink) }

// ArriveNoComplete arrives n times, which must not complete the phase, and returns its state.
func (b Mbarrier) ArriveNoComplete(n any) Reg[uint64] {
	return b.state("mbarrier.arrive.noComplete.shared.b64", n)
}

// ArriveDrop arrives, and takes part in no later phase.
func (b Mbarrier) ArriveDrop() Reg[uint64] { return b.state("mbarrier.arrive_drop.shared.b64") }

// ArriveExpectTx arrives and makes the phase wait for so many more bytes of bulk copies.
func (b Mbarrier) ArriveExpectTx(bytes any) {
	b.counting("mbarrier.arrive.expect_tx.shared.b64", bytes, sink)
}

// ArriveCpAsync arrives when all copies of the thread by [CpAsync] so far have arrived; for that, the count of pending arrivals
// grows by one.
func (b Mbarrier) ArriveCpAsync() {
	if k := b.p.need(); k != nil {
		k.emit("cp.async.mbarrier.arrive.shared.b64", b.p)
	}
}

// ArriveCpAsyncNoInc is [Mbarrier.ArriveCpAsync] for an arrival that the count of the barrier includes already.
func (b Mbarrier) ArriveCpAsyncNoInc() {
	if k := b.p.need(); k != nil {
		k.emit("cp.async.mbarrier.arrive.noinc.shared.b64", b.p)
	}
}

// Arrive arrives.
func (b ClusterMbarrier) Arrive() {
	if k := b.p.need(); k != nil {
		k.emit("mbarrier.arrive.release.cluster.shared::cluster.b64", sink, b.p)
	}
}

// ArriveExpectTx is [Mbarrier.ArriveExpectTx].
func (b ClusterMbarrier) ArriveExpectTx(bytes any) {
	if k := b.p.need(bytes); k != nil {
		k.emit("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64", sink, b.p, lift[uint32](k, bytes))
	}
}

// ExpectTx makes the phase wait for so many more bytes of bulk copies.
func (b Mbarrier) ExpectTx(bytes any) { b.counting("mbarrier.expect_tx.relaxed.cta.shared.b64", bytes) }

// CompleteTx counts bytes as if a bulk copy had brought them.
func (b Mbarrier) CompleteTx(bytes any) {
	b.counting("mbarrier.complete_tx.relaxed.cta.shared.b64", bytes)
}

// TestWait tells whether the phase of a state is complete.
func (b Mbarrier) TestWait(state Reg[uint64]) Reg[bool] {
	return b.test("mbarrier.test_wait.shared.b64", state)
}

// TestWaitParity tells whether the phase of this parity is complete: the first phase has parity 0.
func (b Mbarrier) TestWaitParity(parity any) Reg[bool] {
	return b.testParity("mbarrier.test_wait.parity.shared.b64", parity)
}

// TryWait is [Mbarrier.TestWait] that may wait for a while.
func (b Mbarrier) TryWait(state Reg[uint64]) Reg[bool] {
	return b.test("mbarrier.try_wait.shared.b64", state)
}

// TryWaitParity is [Mbarrier.TestWaitParity] that may wait for a while.
func (b Mbarrier) TryWaitParity(parity any) Reg[bool] {
	return b.testParity("mbarrier.try_wait.parity.shared.b64", parity)
}

// TryWaitParityCluster is [Mbarrier.TryWaitParity] that also acquires what other blocks of the cluster released.
func (b Mbarrier) TryWaitParityCluster(parity any) Reg[bool] {
	return b.testParity("mbarrier.try_wait.parity.acquire.cluster.shared.b64", parity)
}

// Wait waits until the phase of a state is complete: on sm_80 too.
func (b Mbarrier) Wait(state Reg[uint64]) {
	if k := b.p.need(state); k != nil {
		k.Loop(func() { k.BreakIf(b.TestWait(state)) })
	}
}

// WaitParity waits until the phase of this parity is complete. It needs sm_90.
func (b Mbarrier) WaitParity(parity any) {
	if k := b.p.need(parity); k != nil {
		k.Loop(func() { k.BreakIf(b.TryWaitParity(parity)) })
	}
}

// PendingCount is the count of pending arrivals in a state.
func (b Mbarrier) PendingCount(state Reg[uint64]) Reg[uint32] {
	k := b.p.need(state)
	if k == nil {
		return noKernel[uint32]()
	}
	return def[uint32](k, "mbarrier.pending_count.b64", state)
}

// FenceMbarrierInit makes [Mbarrier.Init] known to the cluster and the async proxy.
func (k *Kernel) FenceMbarrierInit() { k.emit("fence.mbarrier_init.release.cluster") }

// FenceProxyAsync orders the thread's ordinary accesses before it with those of bulk copies and wgmma after it, and the
// other way round.
func (k *Kernel) FenceProxyAsync() { k.emit("fence.proxy.async") }

// FenceProxyAsyncShared is [Kernel.FenceProxyAsync] for the block's shared memory only.
func (k *Kernel) FenceProxyAsyncShared() { k.emit("fence.proxy.async.shared::cta") }

// FenceProxyAsyncGlobal is [Kernel.FenceProxyAsync] for global memory only.
func (k *Kernel) FenceProxyAsyncGlobal() { k.emit("fence.proxy.async.global") }

// FenceProxyAlias orders accesses to the same memory under different addresses.
func (k *Kernel) FenceProxyAlias() { k.emit("fence.proxy.alias") }
