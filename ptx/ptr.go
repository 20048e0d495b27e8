package ptx

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// The state spaces of pointers. Generic is an address in any of them.
type (
	Generic struct{}
	Global  struct{}
	Shared  struct{} // of the block
	Cluster struct{} // shared memory of any block of the cluster
	Local   struct{}
	Const   struct{}
)

// Space is a state space.
type Space interface {
	Generic | Global | Shared | Cluster | Local | Const
	space() ir.Space
}

func (Generic) space() ir.Space { return ir.NoSpace }
func (Global) space() ir.Space  { return ir.GlobalSpace }
func (Shared) space() ir.Space  { return ir.SharedSpace }
func (Cluster) space() ir.Space { return ir.SharedClusterSpace }
func (Local) space() ir.Space   { return ir.LocalSpace }
func (Const) space() ir.Space   { return ir.ConstSpace }

// Windowed is a space whose addresses are 32 bits wide here; those of the others are 64.
type Windowed interface {
	Shared | Cluster
	space() ir.Space
}

// Wide is a space whose addresses are 64 bits wide.
type Wide interface {
	Generic | Global | Local | Const
	space() ir.Space
}

// Ptr is the address of elements T in space S.
type Ptr[S Space, T Elem] struct{ p pointer }

// pointer is base + off or sym + off.
type pointer struct {
	k    *Kernel // of sym; nil for a variable of the module until In
	m    *Module // of sym
	base *value
	sym  string
	off  int64
}

func spaceOf[S Space]() ir.Space {
	var s S
	return s.space()
}

// addressType is that of registers with addresses of a space.
func addressType(s ir.Space) *typeInfo {
	if s == ir.SharedSpace || s == ir.SharedClusterSpace {
		return &infos.u32
	}
	return &infos.u64
}

func (p Ptr[S, T]) arg(u *uses) ir.Operand { return address{p.p.in(u.k, spaceOf[S]())}.arg(u) }

func (a address) arg(u *uses) ir.Operand {
	p := a.p
	if p.base == nil {
		return ir.AddrOf(p.sym, p.off)
	}
	o := u.read(p.base, u.k.typeOfReg(p.base))
	return ir.Addr(o.Reg, p.off)
}

func (k *Kernel) typeOfReg(v *value) *typeInfo {
	if v.k != nil {
		return v.k.regs[v.reg].typ
	}
	return &infos.u64
}

// in is the pointer as an instruction of k can have it: with an offset of at most 32 bits.
func (p pointer) in(k *Kernel, s ir.Space) pointer {
	if p.base == nil && (p.sym == "" || p.m != k.m) {
		k.fail("a pointer that was never defined here is used")
		return pointer{m: k.m, sym: "_"}
	}
	if int64(int32(p.off)) != p.off {
		return pointer{base: k.addressOf(p, s)}
	}
	return p
}

// addressOf is the pointer in a register.
func (k *Kernel) addressOf(p pointer, s ir.Space) *value {
	t := addressType(s)
	base := p.base
	if base == nil {
		if p.sym == "" || p.m != k.m {
			k.fail("a pointer that was never defined here is used")
			return k.fresh(t)
		}
		base = k.symbol(p.sym, t)
	}
	if p.off == 0 {
		return base
	}
	v := k.fresh(t)
	k.emit("add."+signedType(t), result{v}, held{base, t}, lit(p.off))
	return v
}

// held is a value of known type as operand.
type held struct {
	v *value
	t *typeInfo
}

func (h held) arg(u *uses) ir.Operand { return u.read(h.v, h.t) }

func signedType(t *typeInfo) string { return "s" + t.op.String()[1:] }

// In is a pointer to a variable of the module for use in kernel k.
func (p Ptr[S, T]) In(k *Kernel) Ptr[S, T] {
	if p.p.base == nil {
		p.p.k = k
	}
	return p
}

// need is the kernel that p, or one of the others, belongs to.
func (p Ptr[S, T]) need(others ...any) *Kernel {
	k := kernelOf(append([]any{p}, others...)...)
	if k == nil && p.p.m != nil {
		p.p.m.fail("a pointer to a variable of the module is used in no kernel: see Ptr.In")
	}
	return k
}

// At is the pointer i elements further; i is an int or an [Index]. With a constant it takes no instruction.
func (p Ptr[S, T]) At(i any) Ptr[S, T] { return p.move(i, typeOf[T]().size()) }

// Bytes is the pointer n bytes further; n is an int or an [Index]. With a constant it takes no instruction.
func (p Ptr[S, T]) Bytes(n any) Ptr[S, T] { return p.move(n, 1) }

func (p Ptr[S, T]) move(i any, size int) Ptr[S, T] {
	switch i := i.(type) {
	case int:
		return p.further(i * size)
	case Reg[uint32]:
		return advanced(p, i, size)
	case Reg[int32]:
		return advanced(p, i, size)
	case Reg[uint64]:
		return advanced(p, i, size)
	case Reg[int64]:
		return advanced(p, i, size)
	}
	if k := p.need(i); k != nil {
		k.fail("an index is %s, want an int or a register of 32 or 64 bits", describe(i))
	}
	return p
}

func (p Ptr[S, T]) further(n int) Ptr[S, T] {
	p.p.off += int64(n)
	return p
}

func advanced[S Space, T Elem, I Index](p Ptr[S, T], i Reg[I], size int) Ptr[S, T] {
	k := i.kernel()
	if k == nil {
		k = p.kernel()
	}
	return advance(k, p, i, size) // which needs no kernel for constants
}

// Cast is the same address, of other elements.
func Cast[U Elem, S Space, T Elem](p Ptr[S, T]) Ptr[S, U] { return Ptr[S, U](p) }

// PtrVar is a mutable pointer. What holds for [Var] holds for it.
type PtrVar[S Space, T Elem] struct {
	wide   *Var[uint64]
	narrow *Var[uint32]
}

// Get is the present pointer.
func (v *PtrVar[S, T]) Get() Ptr[S, T] {
	if v.narrow != nil {
		return Ptr[S, T]{pointer{base: v.narrow.Get().v}}
	}
	return Ptr[S, T]{pointer{base: v.wide.Get().v}}
}

// Set changes it.
func (v *PtrVar[S, T]) Set(p Ptr[S, T]) {
	s := spaceOf[S]()
	if v.narrow != nil {
		v.narrow.Set(Reg[uint32]{v.narrow.k.addressOf(p.p, s)})
	} else {
		v.wide.Set(Reg[uint64]{v.wide.k.addressOf(p.p, s)})
	}
}

// Advance moves it n elements further; n is an int or an [Index].
func (v *PtrVar[S, T]) Advance(n any) { v.Set(v.Get().At(n)) }

func advance[S Space, T Elem, I Index](k *Kernel, p Ptr[S, T], i Reg[I], size int) Ptr[S, T] {
	it := typeOf[I]()
	if c, ok := i.constant(); ok {
		n := 64 - it.op.Bits()
		if it.op.IsSigned() {
			return p.further(int(int64(c<<n)>>n) * size)
		}
		return p.further(int(c) * size)
	}
	s := spaceOf[S]()
	t := addressType(s)
	// The constant offset stays one, so that neighbouring elements share the register.
	base := k.addressOf(pointer{k: p.p.k, m: p.p.m, base: p.p.base, sym: p.p.sym}, s)
	v := k.fresh(t)
	switch {
	case t.op.Bits() < it.op.Bits(): // the low half says it all
		low := k.fresh(t)
		k.emit("cvt.u32."+it.op.String(), result{low}, i)
		i = Reg[I]{low}
		fallthrough
	case t.op.Bits() == it.op.Bits():
		index := arg(held{i.v, t})
		if size > 1 && t.op.Bits() == 32 {
			k.emit("mad.lo.u32", result{v}, index, lit(size), held{base, t})
			break
		}
		if size > 1 {
			scaled := k.fresh(t)
			k.emit("shl.b64", result{scaled}, index, lit(bits.TrailingZeros(uint(size))))
			index = held{scaled, t}
		}
		k.emit("add."+signedType(t), result{v}, held{base, t}, index)
	default:
		k.emit("mad.wide."+it.op.String(), result{v}, i, lit(size), held{base, t})
	}
	return Ptr[S, T]{pointer{base: v, off: p.p.off}}
}

// Address is the address in a register: 64 bits wide but for shared memory, see [SharedAddress].
func Address[S Wide, T Elem](p Ptr[S, T]) Reg[uint64] {
	k := p.need()
	if k == nil {
		return noKernel[uint64]()
	}
	return Reg[uint64]{k.addressOf(p.p, spaceOf[S]())}
}

// SharedAddress is the address within shared memory in a register.
func SharedAddress[S Windowed, T Elem](p Ptr[S, T]) Reg[uint32] {
	k := p.need()
	if k == nil {
		return noKernel[uint32]()
	}
	return Reg[uint32]{k.addressOf(p.p, spaceOf[S]())}
}

// PtrAt is an address as a pointer.
func PtrAt[S Wide, T Elem](k *Kernel, address Reg[uint64]) Ptr[S, T] {
	return Ptr[S, T]{pointer{base: inRegister(k, address).v}}
}

// SharedPtrAt is an address within shared memory as a pointer.
func SharedPtrAt[S Windowed, T Elem](k *Kernel, address Reg[uint32]) Ptr[S, T] {
	return Ptr[S, T]{pointer{base: inRegister(k, address).v}}
}

// ToGeneric is p as a generic address.
func ToGeneric[S Space, T Elem](p Ptr[S, T]) Ptr[Generic, T] {
	k := p.need()
	if k == nil {
		return Ptr[Generic, T]{}
	}
	s := spaceOf[S]()
	if s == ir.NoSpace {
		return Ptr[Generic, T](p)
	}
	v := k.addressOf(p.p, s)
	if t := addressType(s); t.op == ir.U32 {
		wide := k.fresh(&infos.u64)
		k.emit("cvt.u64.u32", result{wide}, held{v, t})
		v = wide
	}
	g := k.fresh(&infos.u64)
	k.emit("cvta."+s.String()+".u64", result{g}, held{v, &infos.u64})
	return Ptr[Generic, T]{pointer{base: g}}
}

// FromGeneric is a generic address as one of space S, in which it has to lie.
func FromGeneric[S Space, T Elem](p Ptr[Generic, T]) Ptr[S, T] {
	k := p.need()
	if k == nil {
		return Ptr[S, T]{}
	}
	s := spaceOf[S]()
	if s == ir.NoSpace {
		return Ptr[S, T](p)
	}
	v := k.fresh(&infos.u64)
	k.emit("cvta.to."+s.String()+".u64", result{v}, held{k.addressOf(p.p, ir.NoSpace), &infos.u64})
	if addressType(s).op == ir.U32 {
		low := k.fresh(&infos.u32)
		k.emit("cvt.u32.u64", result{low}, held{v, &infos.u64})
		v = low
	}
	return Ptr[S, T]{pointer{base: v}}
}

// IsIn tells whether a generic address lies in space S.
func IsIn[S Space, T Elem](p Ptr[Generic, T]) Reg[bool] {
	k := p.need()
	if k == nil {
		return noKernel[bool]()
	}
	return def[bool](k, "isspacep."+spaceOf[S]().String(), held{k.addressOf(p.p, ir.NoSpace), &infos.u64})
}

// PtrVarOf is a mutable pointer that begins as p.
func PtrVarOf[S Space, T Elem](p Ptr[S, T]) *PtrVar[S, T] {
	k := p.need()
	if k == nil {
		return nil
	}
	v := &PtrVar[S, T]{}
	if addressType(spaceOf[S]()).op == ir.U32 {
		v.narrow = NewVar[uint32](k)
	} else {
		v.wide = NewVar[uint64](k)
	}
	v.Set(p)
	return v
}
