package ptx

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx/ir"
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

// Atomic combines the element at p with v in one step and returns what it was. Who does not need that calls [Reduce].
//
// Without an option it is relaxed, at the scope of the GPU.
func Atomic[S Space, T AtomicElem](k *Kernel, op Op, p Ptr[S, T], v Reg[T], opts ...MemOption) Reg[T] {
	code, policy := access("atom", spaceOf[S](), atomicOp(op, typeOf[T]()), opts, atomicType(op, typeOf[T]()))
	return def[T](k, code, append([]arg{p, v}, policy...)...)
}

// AtomicCAS writes v to p if compare is there, and returns what was.
func AtomicCAS[S Space, T Integer | float32 | float64](k *Kernel, p Ptr[S, T], compare, v Reg[T], opts ...MemOption) Reg[T] {
	code, policy := access("atom", spaceOf[S](), "cas", opts, atomicType("cas", typeOf[T]()))
	return def[T](k, code, append([]arg{p, compare, v}, policy...)...)
}

// Reduce combines the element at p with v in one step.
func Reduce[S Space, T AtomicElem](k *Kernel, op Op, p Ptr[S, T], v Reg[T], opts ...MemOption) {
	code, policy := access("red", spaceOf[S](), atomicOp(op, typeOf[T]()), opts, atomicType(op, typeOf[T]()))
	k.emit(code, append([]arg{p, v}, policy...)...)
}

// ReduceVector combines neighbouring elements of global memory, each in one step: 2 or 4 float32, or up to 8 of 16 bits.
func ReduceVector[T Float](k *Kernel, op Op, p Ptr[Global, T], v []Reg[T], opts ...MemOption) {
	t := typeOf[T]()
	code, policy := access("red", ir.GlobalSpace, atomicOp(op, t), opts, fmt.Sprintf("v%d", len(v)), t.op.String())
	k.emit(code, append([]arg{p, operands(allInRegisters(k, v))}, policy...)...)
}
