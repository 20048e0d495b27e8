package tensorcore

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// Instruction is what the opcode and the descriptor of tcgen05.mma say of a product. Of a sparse one K is the elements of A that are stored,
// half of those along k.
type Instruction struct {
	*Product
	TransA, TransB bool
	A, B           Elements
	Scales         *Scales // of elements with scales
	Selector       int     // of the column that has the metadata of a sparse A
}

// Elements is how the elements of a matrix lie in shared memory: those of up to 8 bits of the kinds f8f6f4 and mxf8f6f4 16 in 16 bytes,
// packed and with padding after them.
type Elements struct {
	Bits int // of one
	Per  int // in 16 bytes
}

// Scales are those of groups of elements along k, in tensor memory a byte each.
type Scales struct {
	Group          int // elements
	FirstA, FirstB int // the byte of a column that has the first one
	number         func(uint8) float64
}

// Number is the value of a scale. It is not ok if no number has these bits.
func (s *Scales) Number(b uint8) (v float64, ok bool) {
	v = s.number(b)
	return v, v >= 0 || math.IsNaN(v)
}

// ue8m0 is a power of two.
func ue8m0(b uint8) float64 {
	if b == 0xff {
		return math.NaN()
	}
	return math.Ldexp(1, int(b)-127)
}

// ue4m3 is E4M3 without sign: numbers that have one are no scales.
func ue4m3(b uint8) float64 {
	if b == 0x80 {
		return -1
	}
	return float64(eval.E4M3ToF32(b))
}

// tensorType is a type of elements. The zero one is none.
type tensorType struct {
	bits   int
	t      ir.Type // ir.NoType if PTX names it nowhere else
	number func(uint64) float64
}

func known(t ir.Type) tensorType { return tensorType{t.Bits(), t, decoder(t)} }

// tensorKind is a kind of tcgen05.mma.
type tensorKind struct {
	types []tensorType // of A and B by their numbers in the descriptor
	sums  []ir.Type    // likewise
	per   int          // elements in 16 bytes of shared memory
}

var (
	floats8 = []tensorType{known(ir.E4M3), known(ir.E5M2), {}, {6, ir.NoType, minifloat(2, 3)}, {6, ir.NoType, minifloat(3, 2)},
		{4, ir.NoType, minifloat(2, 1)}}
	floats4     = []tensorType{{}, floats8[5]}
	tensorKinds = map[string]tensorKind{
		"f16":      {[]tensorType{known(ir.F16), known(ir.BF16)}, []ir.Type{ir.F16, ir.F32}, 8},
		"tf32":     {[]tensorType{{}, {}, {32, ir.TF32, decoder(ir.TF32)}}, []ir.Type{ir.NoType, ir.F32}, 4},
		"f8f6f4":   {floats8, []ir.Type{ir.F16, ir.F32}, 16},
		"i8":       {[]tensorType{known(ir.U8), known(ir.S8)}, []ir.Type{ir.NoType, ir.NoType, ir.S32}, 16},
		"mxf8f6f4": {floats8, []ir.Type{ir.F32}, 16}, "mxf4": {floats4, []ir.Type{ir.F32}, 32}, "mxf4nvf4": {floats4, []ir.Type{ir.F32}, 32},
	}
)

// DecodeInstruction decodes the descriptor of a product of a kind such as "f16" by one block or two, with so many elements to a scale, 0
// without scales. It is an error if it describes none that there is, or one that is not here: with scales one of 128 rows by two blocks, and
// a sparse one of 64 rows or, by two blocks, 128.
func DecodeInstruction(kind string, blocks, group int, sparse bool, d uint32) (*Instruction, error) {
	field := func(at, n uint) uint32 { return d >> at & (1<<n - 1) }
	wrong := func(format string, args ...any) (*Instruction, error) {
		return nil, fmt.Errorf("instruction descriptor 0x%08x of kind %s: %s: %w", d, kind, fmt.Sprintf(format, args...), compute.ErrArgument)
	}
	of := tensorKinds[kind]
	element := func(n uint32) tensorType {
		if int(n) < len(of.types) {
			return of.types[n]
		}
		return tensorType{}
	}
	ta, tb := element(field(7, 3)), element(field(10, 3))
	m, n := int(field(24, 5))*16, int(field(17, 6))*8
	td, unused := uint32(0), uint32(1<<6|1<<23|1<<29)
	if group == 0 {
		td = field(4, 2)
	} else {
		unused = 1<<3 | 1<<6
	}
	step := 8 // of the number of columns
	switch {
	case blocks == 2 && kind == "i8":
		step = 32
	case blocks == 2 || m == 128 && group == 0:
		step = 16
	}
	switch {
	case (field(2, 1) != 0) != sparse:
		return wrong("the bit of sparse matrices is %d", field(2, 1))
	case !sparse && field(0, 2) != 0 || field(0, 2) > 1 || field(0, 2) == 1 && of.per >= 16:
		return wrong("the selector of metadata %d", field(0, 2))
	case ta.bits == 0 || tb.bits == 0:
		return wrong("elements of types %d and %d", field(7, 3), field(10, 3))
	case int(td) >= len(of.sums) || of.sums[td] == ir.NoType:
		return wrong("sums of type %d", td)
	case d&unused != 0:
		return wrong("bits outside its fields")
	case m != 128*blocks && (m != 64*blocks || group > 0 || sparse):
		return wrong("%d rows, want %d, or of a product that is not sparse and has no scales %d", m, 128*blocks, 64*blocks)
	case n == 0 || n > 256 || n%step != 0:
		return wrong("%d columns, want up to 256, a multiple of %d", n, step)
	case group == 0 && field(30, 2) != 0:
		return wrong("a shift")
	case group > 0 && field(31, 1) != 0:
		return wrong("96 elements along k, which sm_100 has not")
	}
	k := 2 * of.per
	x := &Instruction{Selector: int(field(0, 2)), TransA: field(15, 1) != 0, TransB: field(16, 1) != 0, A: Elements{ta.bits, of.per}, B: Elements{tb.bits, of.per}}
	if x.TransA && x.A.packed() || x.TransB && x.B.packed() {
		return wrong("a matrix of elements of 4 or 6 bits that is not along k")
	}
	if ta.t != ir.NoType && tb.t != ir.NoType {
		var err error
		if x.Product, err = NewProduct(m, n, k, of.sums[td], ta.t, tb.t, of.sums[td]); err != nil {
			return nil, err
		}
	} else {
		x.Product = &Product{M: m, N: n, K: k, td: of.sums[td], tc: of.sums[td], decodeA: ta.number, decodeB: tb.number,
			decodeC: decoder(of.sums[td])}
	}
	x.NegateA, x.NegateB = field(13, 1) != 0, field(14, 1) != 0
	if group == 0 {
		x.Saturate = field(3, 1) != 0
		return x, nil
	}
	x.Scales = &Scales{Group: group, FirstA: int(field(29, 2)), FirstB: int(field(4, 2)), number: ue4m3}
	if field(23, 1) != 0 {
		x.Scales.number = ue8m0
	}
	switch count := k / group; {
	case x.Scales.FirstA%count != 0 || x.Scales.FirstB%count != 0:
		return wrong("the scales of A and B begin in bytes %d and %d, want a multiple of %d", x.Scales.FirstA, x.Scales.FirstB, count)
	case kind != "mxf4nvf4" && field(23, 1) == 0:
		return wrong("scales of type ue4m3")
	}
	return x, nil
}

// packed tells whether the bytes of shared memory are not elements.
func (e Elements) packed() bool { return e.Bits < 8 }

// bytes is how many of 16 bytes have elements.
func (e Elements) bytes() int { return e.Per * e.Bits / 8 }

// Chunks calls f with the addresses and lengths of the pieces of up to 16 bytes that rows hold, k elements long.
func (e Elements) Chunks(d *Descriptor, rows, k int, trans bool, f func(addr uint32, bytes int)) {
	if trans {
		d.Chunks(0, rows, k, e.Bits/8, true, func(addr uint32) { f(addr, chunk) })
		return
	}
	d.Chunks(0, rows, k/e.Per*chunk, 1, false, func(addr uint32) { f(addr, e.bytes()) })
}

// Read reads the bits of the elements of rows, k elements long.
func (e Elements) Read(d *Descriptor, mem []byte, dst []uint64, rows, k int, trans bool) {
	for mn := range rows {
		for at := range k {
			if trans {
				b := mem[d.Address(mn, at, e.Bits/8, true):]
				dst[mn*k+at] = bitsAt(b[:e.Bits/8], 0, e.Bits)
				continue
			}
			if at%e.Per == 0 {
				b := mem[d.Address(mn, at/e.Per*chunk, 1, false):][:e.bytes()]
				for i := range e.Per {
					dst[mn*k+at+i] = bitsAt(b, i*e.Bits, e.Bits)
				}
			}
		}
	}
}

// bitsAt are n bits, up to 32, of bytes.
func bitsAt(b []byte, at, n int) uint64 {
	var word [8]byte
	copy(word[:], b[at/8:])
	return binary.LittleEndian.Uint64(word[:]) >> (at % 8) & (1<<n - 1)
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
