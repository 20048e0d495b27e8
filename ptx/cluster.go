package ptx

// ClusterArrive counts at the barrier of the cluster, and releases the thread's accesses to memory.
func (k *Kernel) ClusterArrive() { k.emit("barrier.cluster.arrive.aligned") }

// ClusterArriveRelaxed counts at the barrier of the cluster without ordering memory.
func (k *Kernel) ClusterArriveRelaxed() { k.emit("barrier.cluster.arrive.relaxed.aligned") }

// ClusterWait waits until all threads of the cluster have arrived.
func (k *Kernel) ClusterWait() { k.emit("barrier.cluster.wait.aligned") }

// ClusterBarrier waits until all threads of the cluster are here.
func (k *Kernel) ClusterBarrier() {
	k.ClusterArrive()
	k.ClusterWait()
}

// OwnShared is p as an address in the cluster. It takes no instruction.
func OwnShared[T Elem](p Ptr[Shared, T]) Ptr[Cluster, T] { return Ptr[Cluster, T](p) }

// Elect is true in exactly one lane of mask, all of which are here.
func (k *Kernel) Elect(mask Reg[uint32]) Reg[bool] {
	p := Reg[bool]{k.fresh(&infos.pred)}
	k.emit("elect.sync", pair{sink, result{p.v}}, mask)
	return p
}

// SetMaxRegsInc asks for n registers per thread for the warpgroup, a multiple of 8 from 24 to 256, and waits until they
// are free.
func (k *Kernel) SetMaxRegsInc(n int) { k.emit("setmaxnreg.inc.sync.aligned.u32", lit(n)) }

// SetMaxRegsDec gives back all but n registers per thread of the warpgroup.
func (k *Kernel) SetMaxRegsDec(n int) { k.emit("setmaxnreg.dec.sync.aligned.u32", lit(n)) }

// LaunchDependents lets the next kernel in the stream, if launched so, begin.
func (k *Kernel) LaunchDependents() { k.emit("griddepcontrol.launch_dependents") }

// WaitPrerequisites waits until the kernels before in the stream have ended and their memory is visible.
func (k *Kernel) WaitPrerequisites() { k.emit("griddepcontrol.wait") }

// MapShared is the place p in the shared memory of the cluster's block of this rank.
func MapShared[T Elem](p Ptr[Shared, T], rank Reg[uint32]) Ptr[Cluster, T] {
	k := p.need()
	if k == nil {
		return Ptr[Cluster, T]{}
	}
	r := def[uint32](k, "mapa.shared::cluster.u32", SharedAddress(p), rank)
	return Ptr[Cluster, T]{pointer{base: r.v}}
}

// RankOf is the rank of the block in whose shared memory p lies.
func RankOf[T Elem](p Ptr[Cluster, T]) Reg[uint32] {
	k := p.need()
	if k == nil {
		return noKernel[uint32]()
	}
	return def[uint32](k, "getctarank.shared::cluster.u32", SharedAddress(p))
}

// StoreAsync writes v to shared memory of the cluster in the background; barrier b in the same block counts the bytes.
func StoreAsync[T Index | float32 | float64](p Ptr[Cluster, T], v Reg[T], b ClusterMbarrier) {
	k := p.need()
	if k == nil {
		return
	}
	k.emit("st.async.shared::cluster.mbarrier::complete_tx::bytes."+typeOf[T]().mem.String(), p, v, b.p)
}

// StoreAsync4 is [StoreAsync] of four elements.
func StoreAsync4[T int32 | uint32 | float32](p Ptr[Cluster, T], v [4]Reg[T], b ClusterMbarrier) {
	k := p.need()
	if k == nil {
		return
	}
	k.emit("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4."+typeOf[T]().mem.String(), p, operands(v[:]), b.p)
}

// ReduceAsync combines v into shared memory of the cluster in the background; barrier b in the same block counts the bytes.
func ReduceAsync[T int32 | uint32](op Op, p Ptr[Cluster, T], v Reg[T], b ClusterMbarrier) {
	k := p.need()
	if k == nil {
		return
	}
	code := "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." + string(op)
	k.emit(code+"."+atomicType(op, typeOf[T]()), p, v, b.p)
}
