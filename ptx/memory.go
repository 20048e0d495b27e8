package ptx

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Scope is the threads among which an access is ordered.
type Scope string

// The scopes.
const (
	ScopeBlock   Scope = "cta"
	ScopeCluster Scope = "cluster"
	ScopeGPU     Scope = "gpu"
	ScopeSystem  Scope = "sys"
)

// MemOption changes an access to memory. An access that has no such form is an error of Build.
type MemOption struct {
	rank   int // of its place in the opcode
	text   string
	policy Reg[uint64]
}

// The places of options in opcodes; the space stands after the first.
const (
	rankOrder = iota
	rankCache
	rankNC
	rankEvict
	rankPolicy
	rankPrefetch
)

// Options of loads and stores.
var (
	Volatile       = MemOption{rank: rankOrder, text: "volatile"}
	CacheAll       = MemOption{rank: rankCache, text: "ca"} // in all levels, the default of loads
	CacheL2        = MemOption{rank: rankCache, text: "cg"} // in L2 only
	CacheStreaming = MemOption{rank: rankCache, text: "cs"} // likely used once
	LastUse        = MemOption{rank: rankCache, text: "lu"}
	DontCache      = MemOption{rank: rankCache, text: "cv"}
	WriteBack      = MemOption{rank: rankCache, text: "wb"} // the default of stores
	WriteThrough   = MemOption{rank: rankCache, text: "wt"}
	ReadOnly       = MemOption{rank: rankNC, text: "nc"} // through the non-coherent cache: nobody writes there during the launch
	L1EvictFirst   = MemOption{rank: rankEvict, text: "L1::evict_first"}
	L1EvictLast    = MemOption{rank: rankEvict, text: "L1::evict_last"}
	L1EvictNormal  = MemOption{rank: rankEvict, text: "L1::evict_normal"}
	L1NoAllocate   = MemOption{rank: rankEvict, text: "L1::no_allocate"}
	L2Prefetch64   = MemOption{rank: rankPrefetch, text: "L2::64B"}
	L2Prefetch128  = MemOption{rank: rankPrefetch, text: "L2::128B"}
	L2Prefetch256  = MemOption{rank: rankPrefetch, text: "L2::256B"}
)

// Relaxed makes an access strong, without ordering others.
func Relaxed(s Scope) MemOption { return MemOption{rank: rankOrder, text: "relaxed." + string(s)} }

// Acquire orders a load, or atomic, before what follows.
func Acquire(s Scope) MemOption { return MemOption{rank: rankOrder, text: "acquire." + string(s)} }

// Release orders a store, or atomic, after what precedes.
func Release(s Scope) MemOption { return MemOption{rank: rankOrder, text: "release." + string(s)} }

// AcquireRelease is both, for atomics.
func AcquireRelease(s Scope) MemOption {
	return MemOption{rank: rankOrder, text: "acq_rel." + string(s)}
}

// WithPolicy applies a cache policy that [CreatePolicy] or [CreatePolicyRange] made.
func WithPolicy(policy Reg[uint64]) MemOption {
	return MemOption{rank: rankPolicy, text: "L2::cache_hint", policy: policy}
}

// access is the opcode of an access and the operand of its policy, if it has one. middle stands between space and hints.
func access(op string, s ir.Space, middle string, opts []MemOption, types ...string) (string, []arg) {
	opts = slices.Clone(opts)
	slices.SortStableFunc(opts, func(a, b MemOption) int { return cmp.Compare(a.rank, b.rank) })
	var policy []arg
	for _, o := range opts {
		if o.rank == rankOrder {
			op += "." + o.text
		}
	}
	if s != ir.NoSpace {
		op += "." + s.String()
	}
	if middle != "" {
		op += "." + middle
	}
	for _, o := range opts {
		if o.rank != rankOrder {
			op += "." + o.text
		}
		if o.rank == rankPolicy {
			policy = append(policy, o.policy)
		}
	}
	for _, t := range types {
		if t != "" {
			op += "." + t
		}
	}
	return op, policy
}

func loadVector[S Space, T Elem](k *Kernel, p Ptr[S, T], n int, opts []MemOption) []Reg[T] {
	code, policy := k.vectorAccess("ld", spaceOf[S](), typeOf[T](), n, opts)
	regs, out := several[T](k, n)
	k.emit(code, append([]arg{out, p}, policy...)...)
	return regs
}

func storeVector[S Space, T Elem](k *Kernel, p Ptr[S, T], v []Reg[T], opts []MemOption) {
	code, policy := k.vectorAccess("st", spaceOf[S](), typeOf[T](), len(v), opts)
	k.emit(code, append([]arg{p, operands(v)}, policy...)...)
}

func (k *Kernel) vectorAccess(op string, s ir.Space, t *typeInfo, n int, opts []MemOption) (string, []arg) {
	if n < 8 && n*t.size() > 16 {
		k.fail("%d elements of %d bytes at once; 16 bytes are the most", n, t.size())
	}
	return access(op, s, "", opts, fmt.Sprintf("v%d", n), t.mem.String())
}

// Load is the element at p.
func (p Ptr[S, T]) Load(opts ...MemOption) Reg[T] {
	k := p.need()
	if k == nil {
		return noKernel[T]()
	}
	code, policy := access("ld", spaceOf[S](), "", opts, typeOf[T]().mem.String())
	return def[T](k, code, append([]arg{p}, policy...)...)
}

// LoadIf is the element at p where ok, and other, a Reg[T] or a constant, elsewhere; nothing is read there.
func LoadIf[S Space, T Elem](ok Reg[bool], p Ptr[S, T], other any, opts ...MemOption) Reg[T] {
	k := p.need(ok, other)
	if k == nil {
		return noKernel[T]()
	}
	r := def[T](k, "mov."+moveType(typeOf[T]()), lift[T](k, other))
	code, policy := access("ld", spaceOf[S](), "", opts, typeOf[T]().mem.String())
	k.When(ok, func() {
		in := k.emit(code, append([]arg{result{r.v}, p}, policy...)...)
		in.sure = true
	})
	r.v.def = -1 // two instructions write it
	return r
}

// Store writes v, a Reg[T] or a constant, to p.
func (p Ptr[S, T]) Store(v any, opts ...MemOption) {
	if k := p.need(v); k != nil {
		code, policy := access("st", spaceOf[S](), "", opts, typeOf[T]().mem.String())
		k.emit(code, append([]arg{p, lift[T](k, v)}, policy...)...)
	}
}

// StoreIf writes v, a Reg[T] or a constant, to p where ok.
func StoreIf[S Space, T Elem](ok Reg[bool], p Ptr[S, T], v any, opts ...MemOption) {
	if k := p.need(ok, v); k != nil {
		k.When(ok, func() { p.In(k).Store(v, opts...) })
	}
}

// Load2 is the two elements at p, which has to be a multiple of both their sizes.
func (p Ptr[S, T]) Load2(opts ...MemOption) [2]Reg[T] { return [2]Reg[T](p.loadVector(2, opts)) }

// Load4 is the four elements at p, of 16 bytes at most together.
func (p Ptr[S, T]) Load4(opts ...MemOption) [4]Reg[T] { return [4]Reg[T](p.loadVector(4, opts)) }

// Load8 is the eight elements of 32 bits at p, in global memory.
func (p Ptr[S, T]) Load8(opts ...MemOption) [8]Reg[T] { return [8]Reg[T](p.loadVector(8, opts)) }

func (p Ptr[S, T]) loadVector(n int, opts []MemOption) []Reg[T] {
	k := p.need()
	if k == nil {
		return slices.Repeat([]Reg[T]{noKernel[T]()}, n)
	}
	return loadVector(k, p, n, opts)
}

// Store2 writes two elements to p.
func (p Ptr[S, T]) Store2(v [2]Reg[T], opts ...MemOption) { p.storeVector(v[:], opts) }

// Store4 writes four elements, of 16 bytes at most together, to p.
func (p Ptr[S, T]) Store4(v [4]Reg[T], opts ...MemOption) { p.storeVector(v[:], opts) }

// Store8 writes eight elements of 32 bits to p, in global memory.
func (p Ptr[S, T]) Store8(v [8]Reg[T], opts ...MemOption) { p.storeVector(v[:], opts) }

func (p Ptr[S, T]) storeVector(v []Reg[T], opts []MemOption) {
	k := p.need()
	for _, x := range v {
		if k == nil {
			k = kernelOf(x)
		}
	}
	if k != nil {
		storeVector(k, p, v, opts)
	}
}
