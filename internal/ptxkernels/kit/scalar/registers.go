package scalar

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx"
)

// Log2 is the binary logarithm of a power of two.
func Log2(n int) int { return bits.TrailingZeros(uint(n)) }

// HasFlag tells whether flags have a bit.
func HasFlag(k *ptx.Kernel, flags ptx.Reg[uint32], flag uint32) ptx.Reg[bool] {
	return flags.And(flag).Ne(0)
}

// U64 is a constant of type uint64.
func U64(n int) ptx.Reg[uint64] { return ptx.Imm(uint64(n)) }

// Variables are the registers of a partial result that changes.
type Variables[T ptx.Lane] []*ptx.Var[T]

// VariablesOf returns variables that begin as x.
func VariablesOf[T ptx.Lane](k *ptx.Kernel, x []ptx.Reg[T]) (v Variables[T]) {
	for _, r := range x {
		v = append(v, ptx.VarOf(k, r))
	}
	return v
}

// Zeros returns n variables that begin as 0.
func Zeros(k *ptx.Kernel, n int) Variables[float32] {
	return VariablesOf(k, Constants(make([]float32, n)))
}

// Get returns the present values.
func (v Variables[T]) Get() (x []ptx.Reg[T]) {
	for _, r := range v {
		x = append(x, r.Get())
	}
	return x
}

// Set changes the values.
func (v Variables[T]) Set(x []ptx.Reg[T]) {
	for i, r := range x {
		v[i].Set(r)
	}
}

// Constants are immediates.
func Constants[T ptx.Lane](values []T) (x []ptx.Reg[T]) {
	for _, v := range values {
		x = append(x, ptx.Imm(v))
	}
	return x
}

// SumOf adds by a tree.
func SumOf(x []Float) Float {
	values := make([][]Float, len(x))
	for i, v := range x {
		values[i] = []Float{v}
	}
	return Tree(values, func(a, b []Float) []Float { return []Float{a[0].Add(b[0])} })[0]
}

// S32 is a constant of type int32.
func S32(n int) ptx.Reg[int32] { return ptx.Imm(int32(n)) }

// Combine makes one partial result of two, of as many registers each. It need not be commutative to the last bit.
type Combine[T ptx.Lane] func(a, b []ptx.Reg[T]) []ptx.Reg[T]

// Tree combines values pairwise, neighbours first.
func Tree[T ptx.Lane](values [][]ptx.Reg[T], f Combine[T]) []ptx.Reg[T] {
	for len(values) > 1 {
		var next [][]ptx.Reg[T]
		for i := 0; i+1 < len(values); i += 2 {
			next = append(next, f(values[i], values[i+1]))
		}
		if len(values)%2 == 1 {
			next = append(next, values[len(values)-1])
		}
		values = next
	}
	return values[0]
}

// LoadAll reads n neighbours: two or four at once, which lie at a multiple of their size.
func LoadAll[T ptx.Lane](p ptx.Ptr[ptx.Global, T], n int) (x []ptx.Reg[T]) {
	switch n {
	case 4:
		all := p.Load4()
		return all[:]
	case 2:
		all := p.Load2()
		return all[:]
	}
	for i := range n {
		x = append(x, p.At(i).Load())
	}
	return x
}

// StoreAll writes neighbours likewise.
func StoreAll[T ptx.Lane](p ptx.Ptr[ptx.Global, T], x []ptx.Reg[T]) {
	switch len(x) {
	case 4:
		p.Store4([4]ptx.Reg[T](x))
	case 2:
		p.Store2([2]ptx.Reg[T](x))
	default:
		for i, v := range x {
			p.At(i).Store(v)
		}
	}
}
