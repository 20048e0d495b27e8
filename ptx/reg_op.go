package ptx

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// kernelOf is the kernel that the first of some operands belongs to, nil if all are constants.
func kernelOf(operands ...any) *Kernel {
	for _, x := range operands {
		if x, ok := x.(interface{ kernel() *Kernel }); ok {
			if k := x.kernel(); k != nil {
				return k
			}
		}
	}
	return nil
}

func (r Reg[T]) kernel() *Kernel {
	if r.v == nil {
		return nil
	}
	return cmp.Or(r.v.k, r.v.of)
}

func (p Ptr[S, T]) kernel() *Kernel {
	if p.p.base != nil {
		return p.p.base.k
	}
	return p.p.k
}

// noKernel is the result of an operation on constants alone, whose use is an error of Build.
func noKernel[T Type]() Reg[T] {
	return Reg[T]{&value{what: "an operation on constants alone: compute it in Go, or make one by ConstIn"}}
}

// lift is an operand: a Reg[T], or a constant.
func lift[T Type](k *Kernel, x any) Reg[T] {
	switch x := x.(type) {
	case Reg[T]:
		return x
	case T:
		return Imm(x)
	case int:
		if bits, ok := typeOf[T]().ofInt(x); ok {
			return Reg[T]{&value{bits: bits}}
		}
		k.fail("%d is no %s", x, typeOf[T]().name)
		return Reg[T]{&value{}}
	case float64:
		if bits, ok := typeOf[T]().ofFloat(x); ok {
			return Reg[T]{&value{bits: bits}}
		}
	}
	k.fail("an operand is %s, want a %s or a constant", describe(x), typeOf[T]().name)
	return Reg[T]{&value{}}
}

// describe names the type of an operand for messages.
func describe(x any) string {
	if x, ok := x.(interface{ typeName() string }); ok {
		return "a " + x.typeName()
	}
	return fmt.Sprintf("a %T", x)
}

func (r Reg[T]) typeName() string { return typeOf[T]().name }

// ofInt is the bits of the number n, which an unsigned integer may also have as its two's complement.
func (t *typeInfo) ofInt(n int) (bits uint64, ok bool) {
	switch t {
	case &infos.s8, &infos.u8, &infos.s16, &infos.u16, &infos.s32, &infos.u32, &infos.s64, &infos.u64:
		width := t.op.Bits()
		most := width
		if t.op.IsSigned() {
			most--
		}
		if width < 64 && (n < -1<<(width-1) || n >= 1<<most) {
			return 0, false
		}
		return uint64(n) << (64 - width) >> (64 - width), true
	}
	return t.ofFloat(float64(n))
}

// ofFloat is the bits of the number nearest to x.
func (t *typeInfo) ofFloat(x float64) (bits uint64, ok bool) {
	switch t {
	case &infos.f32:
		return uint64(math.Float32bits(float32(x))), true
	case &infos.f64:
		return math.Float64bits(x), true
	case &infos.f16:
		return uint64(F16Of(float32(x))), true
	case &infos.bf16:
		return uint64(BF16Of(float32(x))), true
	}
	return 0, false
}

// op emits an instruction that makes a T of x and others of its type.
func (r Reg[T]) op(code string, others ...any) Reg[T] { return to[T](r, code, others...) }

// to emits an instruction that makes a U of x and others of its type.
func to[U, T Type](x Reg[T], code string, others ...any) Reg[U] {
	k := kernelOf(append([]any{x}, others...)...)
	if k == nil {
		return noKernel[U]()
	}
	k.admit(code, typeOf[T]())
	args := []arg{x}
	for _, y := range others {
		args = append(args, lift[T](k, y))
	}
	return def[U](k, code, args...)
}

// Types that groups of operations take.
var (
	indices  = []*typeInfo{&infos.s32, &infos.u32, &infos.s64, &infos.u64}
	integers = append([]*typeInfo{&infos.s16, &infos.u16}, indices...)
	reals    = []*typeInfo{&infos.f32, &infos.f64, &infos.f16, &infos.bf16}
	floats   = append([]*typeInfo{&infos.f16x2, &infos.bf16x2}, reals...)
	numbers  = append(integers[:len(integers):len(integers)], floats...)
	signed   = append([]*typeInfo{&infos.s16, &infos.s32, &infos.s64}, floats...)
	wide     = []*typeInfo{&infos.f32, &infos.f64}
	word     = []*typeInfo{&infos.u32}
	lanes    = []*typeInfo{&infos.f32, &infos.s32, &infos.u32, &infos.f16x2, &infos.bf16x2, &infos.tf32, &infos.s8x4, &infos.u8x4,
		&infos.e4m3x4, &infos.e5m2x4}
)

// admitted are the types of operands by the name of an instruction, of those that methods make.
var admitted = map[string][]*typeInfo{
	"add": numbers, "sub": numbers, "mul": numbers, "min": numbers, "max": numbers,
	"mad": integers, "rem": integers, "sad": integers, "cnot": integers, "shl": integers, "shr": integers,
	"and": append([]*typeInfo{&infos.pred}, integers...), "or": append([]*typeInfo{&infos.pred}, integers...),
	"xor": append([]*typeInfo{&infos.pred}, integers...), "not": append([]*typeInfo{&infos.pred}, integers...),
	"fma": floats, "abs": signed, "neg": signed, "div": append(integers[:len(integers):len(integers)], wide...),
	"sqrt": wide, "rcp": wide, "rsqrt": wide, "copysign": wide, "testp": wide,
	"sin": {&infos.f32}, "cos": {&infos.f32}, "lg2": {&infos.f32},
	"ex2":  {&infos.f32, &infos.f16, &infos.f16x2, &infos.bf16, &infos.bf16x2},
	"tanh": {&infos.f32, &infos.f16, &infos.f16x2, &infos.bf16, &infos.bf16x2},
	"bfe":  indices, "bfi": indices, "popc": indices, "clz": indices, "bfind": indices, "brev": indices, "match": indices,
	"shf": word, "lop3": word, "prmt": word, "fns": word, "redux": {&infos.s32, &infos.u32},
	"setp": numbers, "cvt": {&infos.f32, &infos.f64, &infos.f16}, "shfl": lanes, "atom": append(indices[:4:4], floats...),
	"red": append(indices[:4:4], floats...),
}

// admit reports operands of a type that an instruction does not take.
func (k *Kernel) admit(code string, t *typeInfo) {
	name, _, _ := strings.Cut(code, ".")
	if all, ok := admitted[name]; ok && !slices.Contains(all, t) {
		k.fail("%s of %s", name, t.name)
	}
}
