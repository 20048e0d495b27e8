package ptx

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx/ir"
)

// CopyOption changes a bulk copy.
type CopyOption struct {
	multicast Reg[uint16]
	policy    Reg[uint64]
}

// Multicast copies to the same place in each block of the cluster whose bit in the mask is set, and completes at the
// barrier there.
func Multicast(mask Reg[uint16]) CopyOption { return CopyOption{multicast: mask} }

// CopyPolicy applies a cache policy that [Kernel.CreatePolicy] made.
func CopyPolicy(policy Reg[uint64]) CopyOption { return CopyOption{policy: policy} }

// bulk emits a bulk copy with its options.
func (k *Kernel) bulk(code string, opts []CopyOption, args ...arg) {
	for _, o := range opts {
		if o.multicast.v != nil {
			code += ".multicast::cluster"
			args = append(args, inRegister(k, o.multicast))
		}
	}
	for _, o := range opts {
		if o.policy.v != nil {
			code += ".L2::cache_hint"
			args = append(args, o.policy)
		}
	}
	k.emit(code, args...)
}

// CopyBulk copies bytes, a multiple of 16, from global to shared memory in the background. Addresses are multiples of
// 16. Barrier b, which expects them, counts the bytes. This number is a Reg[uint32] or a constant, as with the other copies.
func CopyBulk[T, U Elem](dst Ptr[Shared, T], src Ptr[Global, U], bytes any, b Mbarrier, opts ...CopyOption) {
	if k := dst.need(src, bytes); k != nil {
		k.bulk("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", opts, dst, src, lift[uint32](k, bytes), b.p)
	}
}

// CopyBulkCluster copies from the block's shared memory to that of any block of the cluster, whose barrier b counts the
// bytes.
func CopyBulkCluster[T, U Elem](dst Ptr[Cluster, T], src Ptr[Shared, U], bytes any, b ClusterMbarrier) {
	if k := dst.need(src, bytes); k != nil {
		k.emit("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", dst, src, lift[uint32](k, bytes), b.p)
	}
}

// CopyBulkOut copies from shared to global memory, as part of a bulk group.
func CopyBulkOut[T, U Elem](dst Ptr[Global, T], src Ptr[Shared, U], bytes any, opts ...CopyOption) {
	if k := dst.need(src, bytes); k != nil {
		k.bulk("cp.async.bulk.global.shared::cta.bulk_group", opts, dst, src, lift[uint32](k, bytes))
	}
}

// ReduceBulk combines shared memory into global memory, as part of a bulk group.
func ReduceBulk[T Index | Float](op Op, dst Ptr[Global, T], src Ptr[Shared, T], bytes any, opts ...CopyOption) {
	k := dst.need(src, bytes)
	if k == nil {
		return
	}
	t := typeOf[T]()
	code := "cp.reduce.async.bulk.global.shared::cta.bulk_group"
	args := []arg{dst, src, lift[uint32](k, bytes)}
	for _, o := range opts {
		if o.policy.v != nil {
			code += ".L2::cache_hint"
			args = append(args, o.policy)
		}
	}
	k.emit(code+"."+atomicOp(op, t)+"."+atomicType(op, t), args...)
}

// PrefetchBulk brings bytes, a multiple of 16, into L2.
func PrefetchBulk[T Elem](src Ptr[Global, T], bytes any) {
	if k := src.need(bytes); k != nil {
		k.emit("cp.async.bulk.prefetch.L2.global", src, lift[uint32](k, bytes))
	}
}

// BulkCommit makes a group of all copies out of shared memory since the last one.
func (k *Kernel) BulkCommit() { k.emit("cp.async.bulk.commit_group") }

// BulkWait waits until at most pending of the thread's bulk groups are under way.
func (k *Kernel) BulkWait(pending int) { k.emit("cp.async.bulk.wait_group", lit(pending)) }

// BulkWaitRead waits until at most pending of the thread's bulk groups have still to read shared memory.
func (k *Kernel) BulkWaitRead(pending int) { k.emit("cp.async.bulk.wait_group.read", lit(pending)) }

// TensorMap describes tiles of a tensor in global memory, for copies by the Tensor Memory Accelerator; package tensormap and the
// driver make them. T is the elements of tiles in shared memory.
type TensorMap[T Elem] struct{ address Reg[uint64] }

// TensorMapParam declares a tensor map as parameter: 128 bytes, which package cuda makes (Buffer.TensorMap).
func TensorMapParam[T Elem](k *Kernel, name string) TensorMap[T] {
	k.addParam(ir.Var{Name: name, Type: ir.B8, Align: 64, Dims: []int{128}}, nil)
	p := def[uint64](k, "mov.b64", raw{Kind: ir.SymOperand, Sym: name})
	g := def[uint64](k, "cvta.param.u64", p)
	k.regs[g.v.reg].what = "parameter " + name
	return TensorMap[T]{g}
}

// TensorMapAt is a tensor map in global memory.
func TensorMapAt[T, U Elem](p Ptr[Global, U]) TensorMap[T] {
	return TensorMap[T]{Address(ToGeneric(p))}
}

// tile is [map, {coordinates}], or [map].
type tile struct {
	address Reg[uint64]
	at      []Reg[int32]
}

func (t tile) arg(u *uses) ir.Operand {
	a := ir.Addr(t.address.arg(u).Reg, 0)
	if len(t.at) > 0 {
		a.Elems = []ir.Operand{operands(t.at).arg(u)}
	}
	return a
}

func (k *Kernel) rank(at []Reg[int32]) string {
	if len(at) < 1 || len(at) > 5 {
		k.fail("a tensor of %d dimensions; 1 to 5 are possible", len(at))
	}
	return fmt.Sprintf("%dd", len(at))
}

// Load copies the tile that begins at the coordinates, innermost first, to shared memory. Barrier b counts the bytes of the
// whole tile; what lies outside the tensor is filled.
func (m TensorMap[T]) Load(dst Ptr[Shared, T], at []Reg[int32], b Mbarrier, opts ...CopyOption) {
	if k := dst.need(m.address); k != nil {
		code := "cp.async.bulk.tensor." + k.rank(at) + ".shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		k.bulk(code, opts, dst, tile{m.address, at}, b.p)
	}
}

// Store copies a tile from shared memory to the tensor, as part of a bulk group. What lies outside is left out.
func (m TensorMap[T]) Store(at []Reg[int32], src Ptr[Shared, T], opts ...CopyOption) {
	if k := src.need(m.address); k != nil {
		k.bulk("cp.async.bulk.tensor."+k.rank(at)+".global.shared::cta.tile.bulk_group", opts, tile{m.address, at}, src)
	}
}

// Reduce combines a tile from shared memory into the tensor, as part of a bulk group.
func (m TensorMap[T]) Reduce(op Op, at []Reg[int32], src Ptr[Shared, T], opts ...CopyOption) {
	if k := src.need(m.address); k != nil {
		code := "cp.reduce.async.bulk.tensor." + k.rank(at) + ".global.shared::cta." + string(op) + ".tile.bulk_group"
		k.bulk(code, opts, tile{m.address, at}, src)
	}
}

// Prefetch brings a tile into L2.
func (m TensorMap[T]) Prefetch(at []Reg[int32]) {
	if k := m.address.kernel(); k != nil {
		k.emit("cp.async.bulk.prefetch.tensor."+k.rank(at)+".L2.global.tile", tile{m.address, at})
	}
}

// PrefetchDescriptor brings the map itself near.
func (m TensorMap[T]) PrefetchDescriptor() {
	if k := m.address.kernel(); k != nil {
		k.emit("prefetch.tensormap", tile{address: m.address})
	}
}
