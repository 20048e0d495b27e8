package ptx

// MbarrierInit makes a barrier that so many arrivals complete. Others may use it after a [Kernel.Barrier]; the async
// proxy after [Kernel.FenceMbarrierInit] too.
func MbarrierInit(k *Kernel, b Ptr[Shared, Mbarrier], count Reg[uint32]) {
	k.emit("mbarrier.init.shared.b64", b, count)
}

// MbarrierInval ends its use.
func MbarrierInval(k *Kernel, b Ptr[Shared, Mbarrier]) { k.emit("mbarrier.inval.shared.b64", b) }

// MbarrierArrive arrives and returns the state of the phase, for [MbarrierTest].
func MbarrierArrive(k *Kernel, b Ptr[Shared, Mbarrier]) Reg[uint64] {
	r := def[uint64](k, "mbarrier.arrive.shared.b64", b)
	k.regs[r.v.reg].ignore = true
	return r
}

// MbarrierArriveN arrives n times at once.
func MbarrierArriveN(k *Kernel, b Ptr[Shared, Mbarrier], n Reg[uint32]) {
	k.emit("mbarrier.arrive.shared.b64", sink, b, n)
}

// MbarrierArriveNoComplete arrives n times, which must not complete the phase, and returns its state.
func MbarrierArriveNoComplete(k *Kernel, b Ptr[Shared, Mbarrier], n Reg[uint32]) Reg[uint64] {
	r := def[uint64](k, "mbarrier.arrive.noComplete.shared.b64", b, n)
	k.regs[r.v.reg].ignore = true
	return r
}

// MbarrierArriveDrop arrives, and takes part in no later phase.
func MbarrierArriveDrop(k *Kernel, b Ptr[Shared, Mbarrier]) Reg[uint64] {
	r := def[uint64](k, "mbarrier.arrive_drop.shared.b64", b)
	k.regs[r.v.reg].ignore = true
	return r
}

// MbarrierArriveExpect arrives and makes the phase wait for so many more bytes of bulk copies.
func MbarrierArriveExpect(k *Kernel, b Ptr[Shared, Mbarrier], bytes Reg[uint32]) {
	k.emit("mbarrier.arrive.expect_tx.shared.b64", sink, b, bytes)
}

// MbarrierArriveCluster arrives at a barrier of any block of the cluster.
func MbarrierArriveCluster(k *Kernel, b Ptr[Cluster, Mbarrier]) {
	k.emit("mbarrier.arrive.release.cluster.shared::cluster.b64", sink, b)
}

// MbarrierArriveExpectCluster is [MbarrierArriveExpect] at a barrier of any block of the cluster.
func MbarrierArriveExpectCluster(k *Kernel, b Ptr[Cluster, Mbarrier], bytes Reg[uint32]) {
	k.emit("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64", sink, b, bytes)
}

// MbarrierExpect makes the phase wait for so many more bytes of bulk copies.
func MbarrierExpect(k *Kernel, b Ptr[Shared, Mbarrier], bytes Reg[uint32]) {
	k.emit("mbarrier.expect_tx.relaxed.cta.shared.b64", b, bytes)
}

// MbarrierComplete counts bytes as if a bulk copy had brought them.
func MbarrierComplete(k *Kernel, b Ptr[Shared, Mbarrier], bytes Reg[uint32]) {
	k.emit("mbarrier.complete_tx.relaxed.cta.shared.b64", b, bytes)
}

// MbarrierTest tells whether the phase of a state is complete.
func MbarrierTest(k *Kernel, b Ptr[Shared, Mbarrier], state Reg[uint64]) Reg[bool] {
	return def[bool](k, "mbarrier.test_wait.shared.b64", b, state)
}

// MbarrierTestParity tells whether the phase of this parity is complete: the first phase has parity 0.
func MbarrierTestParity(k *Kernel, b Ptr[Shared, Mbarrier], parity Reg[uint32]) Reg[bool] {
	return def[bool](k, "mbarrier.test_wait.parity.shared.b64", b, parity)
}

// MbarrierTry is [MbarrierTest] that may wait for a while.
func MbarrierTry(k *Kernel, b Ptr[Shared, Mbarrier], state Reg[uint64]) Reg[bool] {
	return def[bool](k, "mbarrier.try_wait.shared.b64", b, state)
}

// MbarrierTryParity is [MbarrierTestParity] that may wait for a while.
func MbarrierTryParity(k *Kernel, b Ptr[Shared, Mbarrier], parity Reg[uint32]) Reg[bool] {
	return def[bool](k, "mbarrier.try_wait.parity.shared.b64", b, parity)
}

// MbarrierTryParityCluster is [MbarrierTryParity] that also acquires what other blocks of the cluster released.
func MbarrierTryParityCluster(k *Kernel, b Ptr[Shared, Mbarrier], parity Reg[uint32]) Reg[bool] {
	return def[bool](k, "mbarrier.try_wait.parity.acquire.cluster.shared.b64", b, parity)
}

// MbarrierWait waits until the phase of a state is complete: on sm_80 too.
func MbarrierWait(k *Kernel, b Ptr[Shared, Mbarrier], state Reg[uint64]) {
	k.Loop(func() { k.BreakIf(MbarrierTest(k, b, state)) })
}

// MbarrierWaitParity waits until the phase of this parity is complete. It needs sm_90.
func MbarrierWaitParity(k *Kernel, b Ptr[Shared, Mbarrier], parity Reg[uint32]) {
	k.Loop(func() { k.BreakIf(MbarrierTryParity(k, b, parity)) })
}

// MbarrierPending is the count of pending arrivals in a state.
func MbarrierPending(k *Kernel, state Reg[uint64]) Reg[uint32] {
	return def[uint32](k, "mbarrier.pending_count.b64", state)
}

// FenceMbarrierInit makes MbarrierInit known to the cluster and the async proxy.
func (k *Kernel) FenceMbarrierInit() { k.emit("fence.mbarrier_init.release.cluster") }

// FenceProxyAsync orders the thread's ordinary accesses before it with those of bulk copies and wgmma behind it, and the
// other way round.
func (k *Kernel) FenceProxyAsync() { k.emit("fence.proxy.async") }

// FenceProxyAsyncShared is [Kernel.FenceProxyAsync] for the block's shared memory only.
func (k *Kernel) FenceProxyAsyncShared() { k.emit("fence.proxy.async.shared::cta") }

// FenceProxyAsyncGlobal is [Kernel.FenceProxyAsync] for global memory only.
func (k *Kernel) FenceProxyAsyncGlobal() { k.emit("fence.proxy.async.global") }

// FenceProxyAlias orders accesses to the same memory under different addresses.
func (k *Kernel) FenceProxyAlias() { k.emit("fence.proxy.alias") }
