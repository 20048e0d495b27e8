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
// 16. Barrier b, which expects them, counts the bytes.
func CopyBulk[T, U Elem](k *Kernel, dst Ptr[Shared, T], src Ptr[Global, U], bytes Reg[uint32], b Ptr[Shared, Mbarrier],
	opts ...CopyOption) {
	k.bulk("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", opts, dst, src, bytes, b)
}

// CopyBulkCluster copies from the block's shared memory to that of any block of the cluster, whose barrier b counts the
// bytes.
func CopyBulkCluster[T, U Elem](k *Kernel, dst Ptr[Cluster, T], src Ptr[Shared, U], bytes Reg[uint32],
	b Ptr[Cluster, Mbarrier]) {
	k.emit("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", dst, src, bytes, b)
}

// CopyBulkOut copies from shared to global memory, as part of a bulk group.
func CopyBulkOut[T, U Elem](k *Kernel, dst Ptr[Global, T], src Ptr[Shared, U], bytes Reg[uint32], opts ...CopyOption) {
	k.bulk("cp.async.bulk.global.shared::cta.bulk_group", opts, dst, src, bytes)
}

// ReduceBulk combines shared memory into global memory, as part of a bulk group.
func ReduceBulk[T Index | Float](k *Kernel, op Op, dst Ptr[Global, T], src Ptr[Shared, T], bytes Reg[uint32],
	opts ...CopyOption) {
	t := typeOf[T]()
	code := "cp.reduce.async.bulk.global.shared::cta.bulk_group"
	for _, o := range opts {
		if o.policy.v != nil {
			code += ".L2::cache_hint"
		}
	}
	args := []arg{dst, src, bytes}
	for _, o := range opts {
		if o.policy.v != nil {
			args = append(args, o.policy)
		}
	}
	k.emit(code+"."+atomicOp(op, t)+"."+atomicType(op, t), args...)
}

// PrefetchBulk brings bytes, a multiple of 16, into L2.
func PrefetchBulk[T Elem](k *Kernel, src Ptr[Global, T], bytes Reg[uint32]) {
	k.emit("cp.async.bulk.prefetch.L2.global", src, bytes)
}

// BulkCommit makes a group of all copies out of shared memory since the last one.
func (k *Kernel) BulkCommit() { k.emit("cp.async.bulk.commit_group") }

// BulkWait waits until at most pending of the thread's bulk groups are under way.
func (k *Kernel) BulkWait(pending int) { k.emit("cp.async.bulk.wait_group", lit(pending)) }

// BulkWaitRead waits until at most pending of the thread's bulk groups have still to read shared memory.
func (k *Kernel) BulkWaitRead(pending int) { k.emit("cp.async.bulk.wait_group.read", lit(pending)) }

// TensorMap describes tiles of a tensor in global memory; package tensormap and the driver make them.
type TensorMap struct{ address Reg[uint64] }

// TensorMapParam declares a tensor map as parameter: 128 bytes, which package cuda makes (Buffer.TensorMap).
func TensorMapParam(k *Kernel, name string) TensorMap {
	k.addParam(ir.Var{Name: name, Type: ir.B8, Align: 64, Dims: []int{128}}, nil)
	p := def[uint64](k, "mov.b64", raw{Kind: ir.SymOperand, Sym: name})
	g := def[uint64](k, "cvta.param.u64", p)
	k.regs[g.v.reg].what = "parameter " + name
	return TensorMap{g}
}

// TensorMapAt is a tensor map in global memory.
func TensorMapAt[T Elem](k *Kernel, p Ptr[Global, T]) TensorMap {
	return TensorMap{Address(ToGeneric(p))}
}

// tile is [map, {coordinates}], or [map].
type tile struct {
	m  TensorMap
	at []Reg[int32]
}

func (t tile) arg(u *uses) ir.Operand {
	r := t.m.address.arg(u)
	a := ir.Addr(r.Reg, 0)
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

// CopyTensor copies the tile that begins at the coordinates, innermost first, to shared memory. Barrier b counts the
// bytes of the whole tile; what lies outside the tensor is filled.
func CopyTensor[T Elem](k *Kernel, dst Ptr[Shared, T], m TensorMap, at []Reg[int32], b Ptr[Shared, Mbarrier],
	opts ...CopyOption) {
	code := "cp.async.bulk.tensor." + k.rank(at) + ".shared::cluster.global.tile.mbarrier::complete_tx::bytes"
	k.bulk(code, opts, dst, tile{m, at}, b)
}

// CopyTensorOut copies a tile from shared memory to the tensor, as part of a bulk group. What lies outside is left out.
func CopyTensorOut[T Elem](k *Kernel, m TensorMap, at []Reg[int32], src Ptr[Shared, T], opts ...CopyOption) {
	k.bulk("cp.async.bulk.tensor."+k.rank(at)+".global.shared::cta.tile.bulk_group", opts, tile{m, at}, src)
}

// ReduceTensor combines a tile from shared memory into the tensor, as part of a bulk group.
func ReduceTensor[T Elem](k *Kernel, op Op, m TensorMap, at []Reg[int32], src Ptr[Shared, T], opts ...CopyOption) {
	k.bulk("cp.reduce.async.bulk.tensor."+k.rank(at)+".global.shared::cta."+string(op)+".tile.bulk_group", opts, tile{m, at}, src)
}

// PrefetchTensor brings a tile into L2.
func PrefetchTensor(k *Kernel, m TensorMap, at []Reg[int32]) {
	k.emit("cp.async.bulk.prefetch.tensor."+k.rank(at)+".L2.global.tile", tile{m, at})
}

// PrefetchTensorMap brings the map itself near.
func PrefetchTensorMap(k *Kernel, m TensorMap) {
	k.emit("prefetch.tensormap", tile{m: m})
}
