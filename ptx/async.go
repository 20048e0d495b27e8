package ptx

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

func cpAsync[T, U Elem](dst Ptr[Shared, T], src Ptr[Global, U], bytes int, valid []arg, opts []MemOption) {
	k := dst.need(src)
	if k == nil {
		return
	}
	if bytes != 4 && bytes != 8 && bytes != 16 {
		k.fail("cp.async of %d bytes; 4, 8 and 16 are possible", bytes)
	}
	if !slices.ContainsFunc(opts, func(o MemOption) bool { return o.rank == rankCache }) {
		cache := CacheAll
		if bytes == 16 {
			cache = CacheL2
		}
		opts = append([]MemOption{cache}, opts...)
	}
	var level, hints []MemOption
	for _, o := range opts {
		if o.rank == rankCache {
			level = append(level, o)
		} else {
			hints = append(hints, o)
		}
	}
	code, _ := access("cp.async", ir.NoSpace, "", level)
	code, policy := access(code+".shared.global", ir.NoSpace, "", hints)
	k.emit(code, slices.Concat([]arg{dst, src, lit(bytes)}, valid, policy)...)
}

// CpAsyncCommit makes a group of all copies since the last one.
func (k *Kernel) CpAsyncCommit() { k.emit("cp.async.commit_group") }

// CpAsyncWait waits until at most pending of the thread's groups are under way.
func (k *Kernel) CpAsyncWait(pending int) { k.emit("cp.async.wait_group", lit(pending)) }

// CpAsyncWaitAll waits for all copies of the thread.
func (k *Kernel) CpAsyncWaitAll() { k.emit("cp.async.wait_all") }

// Eviction is how long L2 keeps a line.
type Eviction string

// The priorities of eviction.
const (
	EvictLast      Eviction = "evict_last"
	EvictNormal    Eviction = "evict_normal"
	EvictFirst     Eviction = "evict_first"
	EvictUnchanged Eviction = "evict_unchanged"
)

// CreatePolicy is a policy for [WithPolicy]: first for that fraction of the accesses, the usual one for the others.
func (k *Kernel) CreatePolicy(first Eviction, fraction Reg[float32]) Reg[uint64] {
	return def[uint64](k, "createpolicy.fractional.L2::"+string(first)+".b64", fraction)
}

// CpAsync copies 4, 8 or 16 bytes from global to shared memory in the background. They have arrived after
// [Kernel.CpAsyncWait], for other threads after a barrier too. 16 bytes pass by L1 unless [CacheAll] is given.
func CpAsync[T, U Elem](dst Ptr[Shared, T], src Ptr[Global, U], bytes int, opts ...MemOption) {
	cpAsync(dst, src, bytes, nil, opts)
}

// CpAsyncZfill is [CpAsync] of only the first valid bytes; zeros fill the rest.
func CpAsyncZfill[T, U Elem](dst Ptr[Shared, T], src Ptr[Global, U], bytes int, valid any,
	opts ...MemOption) {
	cpAsync(dst, src, bytes, []arg{lift[uint32](dst.kernel(), valid)}, opts)
}

// CacheLevel is a cache that [Ptr.Prefetch] fills.
type CacheLevel string

// The levels; the last two say how long L2 keeps the line.
const (
	L1            CacheLevel = "L1"
	L2            CacheLevel = "L2"
	L2EvictLast   CacheLevel = "L2::evict_last"
	L2EvictNormal CacheLevel = "L2::evict_normal"
)

// Prefetch brings the line at p into a cache.
func (p Ptr[S, T]) Prefetch(level CacheLevel) {
	p.hint("prefetch", "."+string(level))
}

// Discard drops the 128 bytes of global memory at p from L2 without writing them back.
func (p Ptr[S, T]) Discard() {
	p.hint("discard", ".L2", lit(128))
}

// ApplyPriority makes the 128 bytes at p be evicted from L2 as usual again.
func (p Ptr[S, T]) ApplyPriority() {
	p.hint("applypriority", ".L2::evict_normal", lit(128))
}

func (p Ptr[S, T]) hint(code, level string, size ...arg) {
	if k := p.need(); k != nil {
		k.emit(code+dot(spaceOf[S]())+level, append([]arg{p}, size...)...)
	}
}

// CreatePolicyRange is a policy for the total bytes at p: first for the leading ones, then for the others.
func CreatePolicyRange[T Elem](p Ptr[Global, T], first, then Eviction, leading, total Reg[uint32]) Reg[uint64] {
	k := p.need()
	if k == nil {
		return noKernel[uint64]()
	}
	return def[uint64](k, "createpolicy.range.global.L2::"+string(first)+".L2::"+string(then)+".b64", p, leading, total)
}
