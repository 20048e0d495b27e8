package tensorcore

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// Instruction is what the descriptor of tcgen05.mma says of a product.
type Instruction struct {
	*Product
	TransA, TransB bool
	SizeA          int // bytes of an element of A and of B in shared memory
}

// tensorTypes are the types of A and B by their numbers in the descriptor, those of [ir.NoType] are not here.
var tensorTypes = map[string][]ir.Type{
	"f16": {ir.F16, ir.BF16}, "tf32": {ir.NoType, ir.NoType, ir.TF32}, "f8f6f4": {ir.E4M3, ir.E5M2}, "i8": {ir.U8, ir.S8},
}

// DecodeInstruction decodes the descriptor of a product of a kind such as "f16". It is an error if it describes none that there is, or
// one that is not here: of sparse matrices, and of elements of 4 and 6 bits.
func DecodeInstruction(kind string, d uint32) (*Instruction, error) {
	field := func(at, n uint) uint32 { return d >> at & (1<<n - 1) }
	wrong := func(format string, args ...any) (*Instruction, error) {
		return nil, fmt.Errorf("instruction descriptor 0x%08x of kind %s: %s: %w", d, kind, fmt.Sprintf(format, args...), compute.ErrArgument)
	}
	element := func(n uint32) ir.Type {
		if list := tensorTypes[kind]; int(n) < len(list) {
			return list[n]
		}
		return ir.NoType
	}
	ta, tb := element(field(7, 3)), element(field(10, 3))
	td := map[string][]ir.Type{"f16": {ir.F16, ir.F32}, "tf32": {ir.NoType, ir.F32}, "f8f6f4": {ir.F16, ir.F32},
		"i8": {ir.NoType, ir.NoType, ir.S32}}[kind]
	m, n := int(field(24, 5))*16, int(field(17, 6))*8
	switch {
	case field(2, 1) != 0:
		return wrong("a sparse matrix")
	case ta == ir.NoType || tb == ir.NoType:
		return wrong("elements of types %d and %d", field(7, 3), field(10, 3))
	case int(field(4, 2)) >= len(td) || td[field(4, 2)] == ir.NoType:
		return wrong("sums of type %d", field(4, 2))
	case d&(1<<6|1<<23|1<<29) != 0:
		return wrong("bits outside its fields")
	case m != 64 && m != 128:
		return wrong("%d rows, want 64 or 128", m)
	case n == 0 || n > 256 || m == 128 && n%16 != 0:
		return wrong("%d columns, want up to 256, a multiple of 8 with 64 rows and of 16 with 128", n)
	case field(30, 2) != 0:
		return wrong("a shift")
	}
	size := max(1, ta.Bits()/8)
	p, err := NewProduct(m, n, 32/size, td[field(4, 2)], ta, tb, td[field(4, 2)])
	if err != nil {
		return nil, err
	}
	p.Saturate = field(3, 1) != 0
	p.NegateA, p.NegateB = field(13, 1) != 0, field(14, 1) != 0
	return &Instruction{Product: p, TransA: field(15, 1) != 0, TransB: field(16, 1) != 0, SizeA: size}, nil
}

// tensorFields are the bits of a matrix descriptor of tcgen05 that mean something.
const tensorFields = 0xe00f_ffff_3fff_3fff

// DecodeTensorDescriptor decodes a matrix descriptor of tcgen05.mma and tcgen05.cp, whose layouts in shared memory are those of wgmma.
func DecodeTensorDescriptor(d uint64) (Descriptor, error) {
	swizzle, ok := map[uint64]tensormap.Swizzle{0: tensormap.NoSwizzle, 2: tensormap.Swizzle128, 4: tensormap.Swizzle64,
		6: tensormap.Swizzle32}[d>>61]
	switch {
	case d>>52&1 != 0:
		return Descriptor{}, fmt.Errorf("matrix descriptor 0x%016x has an absolute leading dimension, which is not supported: %w", d, compute.ErrUnsupported)
	case d&^tensorFields != 0 || d>>46&7 != 1:
		return Descriptor{}, fmt.Errorf("matrix descriptor 0x%016x has bits 0x%x outside its fields, or not 1 in bits 46 to 48: %w", d, d&^tensorFields,
			compute.ErrArgument)
	case !ok:
		return Descriptor{}, fmt.Errorf("matrix descriptor 0x%016x has the swizzle %d, which is not supported: %w", d, d>>61, compute.ErrUnsupported)
	}
	return Descriptor{start: uint32(d&0x3fff) << 4, leading: uint32(d>>16&0x3fff) << 4, stride: uint32(d>>32&0x3fff) << 4,
		base: uint32(d >> 49 & 7), swizzle: swizzle}, nil
}
