package ptx

import (
	"fmt"
)

// Op is how an atomic, a reduction or a combination of predicates combines.
type Op string

// The operations.
const (
	OpAdd  Op = "add"
	OpMin  Op = "min"
	OpMax  Op = "max"
	OpAnd  Op = "and"
	OpOr   Op = "or"
	OpXor  Op = "xor"
	OpInc  Op = "inc"  // old >= v ? 0 : old + 1
	OpDec  Op = "dec"  // old == 0 || old > v ? v : old − 1
	OpExch Op = "exch" // v
)

// AtomicElem is what atomics work on.
type AtomicElem interface {
	Index | Float
}

// atomicOp is the operation in the opcode: 16-bit floats keep their denormals.
func atomicOp(op Op, t *typeInfo) string {
	if t.op.IsFloat() && t.op.Bits() <= 32 && t != &infos.f32 && op != OpExch && op != "cas" {
		return string(op) + ".noftz"
	}
	return string(op)
}

// atomicType is the type in the opcode.
func atomicType(op Op, t *typeInfo) string {
	switch {
	case op == OpAnd || op == OpOr || op == OpXor || op == OpExch || op == "cas":
		return t.bits.String()
	case op == OpAdd && t == &infos.s64: // the same sum
		return "u64"
	}
	return t.op.String()
}

// Atomic combines the element at p with v in one step and returns what it was. Who does not need that calls [Ptr.Reduce].
//
// Without an option it is relaxed, at the scope of the GPU.
func (p Ptr[S, T]) Atomic(op Op, v any, opts ...MemOption) Reg[T] {
	k := p.need(v)
	if k == nil {
		return noKernel[T]()
	}
	k.admit("atom", typeOf[T]())
	code, policy := access("atom", spaceOf[S](), atomicOp(op, typeOf[T]()), opts, atomicType(op, typeOf[T]()))
	return def[T](k, code, append([]arg{p, lift[T](k, v)}, policy...)...)
}

// CompareAndSwap writes v to p if compare is there, in one step, and returns what was.
func (p Ptr[S, T]) CompareAndSwap(compare, v any, opts ...MemOption) Reg[T] {
	k := p.need(compare, v)
	if k == nil {
		return noKernel[T]()
	}
	code, policy := access("atom", spaceOf[S](), "cas", opts, atomicType("cas", typeOf[T]()))
	return def[T](k, code, append([]arg{p, lift[T](k, compare), lift[T](k, v)}, policy...)...)
}

// Reduce combines the element at p with v in one step.
func (p Ptr[S, T]) Reduce(op Op, v any, opts ...MemOption) {
	if k := p.need(v); k != nil {
		k.admit("red", typeOf[T]())
		code, policy := access("red", spaceOf[S](), atomicOp(op, typeOf[T]()), opts, atomicType(op, typeOf[T]()))
		k.emit(code, append([]arg{p, lift[T](k, v)}, policy...)...)
	}
}

// ReduceVector combines as many neighbouring elements from p on with v, each in one step, in global memory.
func (p Ptr[S, T]) ReduceVector(op Op, v []Reg[T], opts ...MemOption) {
	if k := p.need(); k != nil {
		t := typeOf[T]()
		k.admit("red", typeOf[T]())
		code, policy := access("red", spaceOf[S](), atomicOp(op, t), opts, fmt.Sprintf("v%d", len(v)), t.op.String())
		k.emit(code, append([]arg{p, operands(allInRegisters(k, v))}, policy...)...)
	}
}
