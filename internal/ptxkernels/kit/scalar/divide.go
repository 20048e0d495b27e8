package scalar

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx"
)

// Divisor is a number by which a kernel divides, with what makes that a multiplication (Granlund and Montgomery, "Division by
// Invariant Integers using Multiplication", for dividends of 31 bits): x / d = (high(x · multiplier) + x) >> shift.
type Divisor struct {
	D, multiplier, shift ptx.Reg[uint32]
}

// Divide is a number from 1 to 2³¹ that a kernel divides by, among its parameters.
type Divide int

// DivisorWords is the number of arguments that a divisor takes.
const DivisorWords = 3

// DivisorOf is the arguments for a divisor from 1 to 2³¹: the number itself, the multiplier, the shift.
func DivisorOf(d int) []uint32 {
	shift := bits.Len(uint(d - 1)) // 2^shift is the least power of two from d on
	multiplier := (uint64(1)<<shift-uint64(d))<<32/uint64(d) + 1
	return []uint32{uint32(d), uint32(multiplier), uint32(shift)}
}

// DivisorAt reads a divisor from the arguments of a kernel, from element i on.
func DivisorAt(k *ptx.Kernel, a ptx.Array[uint32], i int) Divisor {
	return Divisor{a.At(i), a.At(i + 1), a.At(i + 2)}
}

// QuotientAt is x / d for x < 2³¹, for kernels that have no other use for the divisor from element i on.
func QuotientAt(k *ptx.Kernel, a ptx.Array[uint32], i int, x ptx.Reg[uint32]) ptx.Reg[uint32] {
	return Divisor{multiplier: a.At(i + 1), shift: a.At(i + 2)}.Divide(k, x)
}

// Divide is x / d for x < 2³¹.
func (v Divisor) Divide(k *ptx.Kernel, x ptx.Reg[uint32]) ptx.Reg[uint32] {
	return x.MadHi(v.multiplier, x).Shr(v.shift)
}

// Split is x / d and the remainder, for x < 2³¹.
func (v Divisor) Split(k *ptx.Kernel, x ptx.Reg[uint32]) (quotient, remainder ptx.Reg[uint32]) {
	q := v.Divide(k, x)
	return q, x.Sub(q.Mul(v.D))
}
