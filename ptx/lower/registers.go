package lower

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx"
)

func log2(n int) int { return bits.TrailingZeros(uint(n)) }

func hasFlag(k *ptx.Kernel, flags ptx.Reg[uint32], flag uint32) ptx.Reg[bool] {
	return ptx.Ne(k, ptx.And(k, flags, ptx.Imm(flag)), u32(0))
}

func u64(n int) ptx.Reg[uint64] { return ptx.Imm(uint64(n)) }

func u32(n int) ptx.Reg[uint32] { return ptx.Imm(uint32(n)) }

// variables are the registers of a partial result that changes.
type variables[T ptx.Lane] []*ptx.Var[T]

func variablesOf[T ptx.Lane](k *ptx.Kernel, x []ptx.Reg[T]) (v variables[T]) {
	for _, r := range x {
		v = append(v, ptx.VarOf(k, r))
	}
	return v
}

func (v variables[T]) get() (x []ptx.Reg[T]) {
	for _, r := range v {
		x = append(x, r.Get())
	}
	return x
}

func (v variables[T]) set(x []ptx.Reg[T]) {
	for i, r := range x {
		v[i].Set(r)
	}
}

// constants are immediates.
func constants[T ptx.Lane](values []T) (x []ptx.Reg[T]) {
	for _, v := range values {
		x = append(x, ptx.Imm(v))
	}
	return x
}

// sumOf adds by a tree.
func sumOf(c calc, x []float) float {
	values := make([][]float, len(x))
	for i, v := range x {
		values[i] = []float{v}
	}
	return tree(values, func(a, b []float) []float { return []float{c.add(a[0], b[0])} })[0]
}

func s32(n int) ptx.Reg[int32] { return ptx.Imm(int32(n)) }

// merge joins two partial results, of as many registers each. It need not be commutative to the last bit.
type merge[T ptx.Lane] func(a, b []ptx.Reg[T]) []ptx.Reg[T]

// tree merges values pairwise, neighbours first.
func tree[T ptx.Lane](values [][]ptx.Reg[T], f merge[T]) []ptx.Reg[T] {
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
