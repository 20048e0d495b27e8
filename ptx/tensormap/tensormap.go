// Package tensormap describes tiles of tensors in global memory for bulk tensor copies, cp.async.bulk.tensor (TMA).
//
// NVIDIA's driver turns such a description into 128 opaque bytes (cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col) whose format is not
// public. The
// software GPU needs one that it can read back: [Map.Encode] checks what the driver checks and writes bytes of our own
// format, [Decode] reads them. Host code that fills a [Map] can hand it to either.
//
// Values are plain data, safe for concurrent reading. Errors wrap compute.ErrArgument and name the field.
//
// Source of the rules: CUDA driver API, "Tensor Map Object Management"; PTX ISA, "Tensors".
package tensormap

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/wavelane/wavelane/compute"
)

// MaxRank is the largest number of dimensions.
const MaxRank = 5

// Size is the number of bytes of an encoded map, Align the alignment that it needs in memory.
const (
	Size  = 128
	Align = 64
)

// DataType is the type of the elements. The values are those of the driver's enumeration.
type DataType uint8

// The data types. Copies to shared memory round elements of TF32 to the nearest, ties away from zero. Those in FTZ flush denormals;
// reductions treat them as the plain types.
const (
	U8 DataType = iota
	U16
	U32
	S32
	U64
	S64
	F16
	F32
	F64
	BF16
	F32FTZ
	TF32
	TF32FTZ
	numDataTypes
)

var dataTypes = [numDataTypes]struct {
	name string
	size int
}{
	{"u8", 1}, {"u16", 2}, {"u32", 4}, {"s32", 4}, {"u64", 8}, {"s64", 8}, {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2},
	{"f32.ftz", 4}, {"tf32", 4}, {"tf32.ftz", 4},
}

// String is the name of the type as PTX would write it.
func (t DataType) String() string {
	if t >= numDataTypes {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return dataTypes[t].name
}

// Bytes is the size of an element, 0 for a type that does not exist.
func (t DataType) Bytes() int {
	if t >= numDataTypes {
		return 0
	}
	return dataTypes[t].size
}

// IsFloat tells floating-point types.
func (t DataType) IsFloat() bool { return t >= F16 && t < numDataTypes }

// Interleave is the layout of channels in blocks, as in NC/8HWC8.
type Interleave uint8

// The interleaved layouts.
const (
	NoInterleave Interleave = iota
	Interleave16            // slices of 16 bytes
	Interleave32            // slices of 32 bytes
)

// L2Promotion widens the requests that the copy sends to the L2 cache. It changes no result.
type L2Promotion uint8

// The promotions.
const (
	NoPromotion L2Promotion = iota
	L2x64
	L2x128
	L2x256
)

// Fill is what elements outside the tensor read as.
type Fill uint8

// The fills.
const (
	FillZero Fill = iota
	// FillNaN marks them with a NaN that FMA instructions treat as zero; floating-point types only.
	FillNaN
)

// Map describes a tensor and the tile (box) that one copy moves. Dimension 0 is the innermost: neighbours in memory.
//
// With Pixels it is the map of an image, for the mode im2col: dimension 0 has the channels, the last one the images, and those between are
// width, height and depth. A copy moves a column of pixels instead of a box, see [Map.Rows].
type Map struct {
	Type    DataType
	Rank    int    // 1 to 5; the arrays below count up to it
	Address uint64 // of the first element, in global memory; a multiple of 16 (32 for Interleave32)
	Dims    [MaxRank]uint64
	// Strides are distances in bytes between neighbours in dimension 1, 2, …: Strides[0] belongs to dimension 1.
	Strides [MaxRank - 1]uint64
	Box     [MaxRank]uint32 // in elements of the tensor, 1 to 256; none with Pixels
	// ElementStrides takes every n-th element of a dimension, 1 to 8; 0 means 1. Dimension 0 has none without interleave. With Pixels it is
	// how far apart the pixels of a column are.
	ElementStrides [MaxRank]uint32
	Interleave     Interleave
	Swizzle        Swizzle
	Promotion      L2Promotion
	Fill           Fill
	Pixels         uint32 // of a column, 1 to 1024; 0 for tiles
	Channels       uint32 // of a pixel, 1 to 256
	// Lower and Upper are the corners of the box that columns run through, of width, height and depth: from Lower to Upper elements after
	// the last one, both may be negative.
	Lower, Upper [MaxRank - 2]int32
}

func argument(format string, args ...any) error {
	return fmt.Errorf("tensor map: %w: "+format, append([]any{compute.ErrArgument}, args...)...)
}

// Validate checks everything that the driver's documentation demands.
func (m *Map) Validate() error {
	align := uint64(16)
	if m.Interleave == Interleave32 {
		align = 32
	}
	switch {
	case m.Type >= numDataTypes:
		return argument("data type %d does not exist", m.Type)
	case m.Rank < 1 || m.Rank > MaxRank:
		return argument("rank %d, want 1 to %d", m.Rank, MaxRank)
	case m.Interleave > Interleave32:
		return argument("interleave %d does not exist", m.Interleave)
	case m.Interleave != NoInterleave && m.Rank < 3:
		return argument("rank %d, want at least 3 with interleave", m.Rank)
	case m.Swizzle >= numSwizzles:
		return argument("swizzle %d does not exist", m.Swizzle)
	case m.Interleave == Interleave32 && m.Swizzle != Swizzle32:
		return argument("interleave of 32 bytes needs the swizzle of 32 bytes, not %v", m.Swizzle)
	case m.Promotion > L2x256:
		return argument("L2 promotion %d does not exist", m.Promotion)
	case m.Fill > FillNaN:
		return argument("out-of-bounds fill %d does not exist", m.Fill)
	case m.Fill == FillNaN && !m.Type.IsFloat():
		return argument("out-of-bounds fill with NaN for elements of type %v", m.Type)
	case m.Address == 0 || m.Address%align != 0:
		return argument("address 0x%x, want a multiple of %d", m.Address, align)
	}
	for i := range m.Rank {
		switch {
		case m.Dims[i] == 0 || m.Dims[i] > 1<<32:
			return argument("dimension %d has %d elements, want 1 to 2^32", i, m.Dims[i])
		case m.Pixels == 0 && (m.Box[i] == 0 || m.Box[i] > 256):
			return argument("box has %d elements in dimension %d, want 1 to 256", m.Box[i], i)
		case m.ElementStrides[i] > 8:
			return argument("element stride %d in dimension %d, want 1 to 8", m.ElementStrides[i], i)
		case i > 0 && (m.Strides[i-1] == 0 || m.Strides[i-1]%align != 0 || m.Strides[i-1] >= 1<<40):
			return argument("stride of dimension %d is %d bytes, want a multiple of %d below 2^40", i, m.Strides[i-1], align)
		}
	}
	if err := m.validatePixels(); err != nil {
		return err
	}
	inner := m.RowLength() * m.Type.Bytes()
	switch {
	case m.Interleave != NoInterleave:
		return nil
	case inner%16 != 0:
		return argument("inner dimension of the box has %d bytes, want a multiple of 16", inner)
	case m.Swizzle != NoSwizzle && inner > m.Swizzle.Span():
		return argument("inner dimension of the box has %d bytes, more than the span of %v", inner, m.Swizzle)
	}
	return nil
}

// Step is the distance in elements of the tensor between neighbours in the box.
func (m *Map) Step(dim int) int {
	if dim == 0 && m.Interleave == NoInterleave {
		return 1
	}
	return int(max(1, m.ElementStrides[dim]))
}

// Counts are the numbers of elements that a copy of a tile moves in each dimension, 1 beyond the rank.
func (m *Map) Counts() (n [MaxRank]int) {
	for i := range n {
		n[i] = 1
		if i < m.Rank {
			n[i] = (int(m.Box[i]) + m.Step(i) - 1) / m.Step(i)
		}
	}
	return n
}

// BoxBytes is the number of bytes that a copy moves to or from shared memory, elements outside the tensor included: what it
// credits to an mbarrier.
func (m *Map) BoxBytes() int {
	n := m.Type.Bytes()
	if m.Pixels > 0 {
		return n * int(m.Pixels) * int(m.Channels)
	}
	for _, c := range m.Counts() {
		n *= c
	}
	return n
}

// Element is the address of an element, and whether the tensor has it.
func (m *Map) Element(at [MaxRank]int64) (addr uint64, ok bool) {
	addr = m.Address + uint64(at[0])*uint64(m.Type.Bytes())
	for i := range m.Rank {
		if at[i] < 0 || uint64(at[i]) >= m.Dims[i] {
			return 0, false
		}
		if i > 0 {
			addr += uint64(at[i]) * m.Strides[i-1]
		}
	}
	return addr, true
}

// FillBits are the bits of an element outside the tensor.
func (m *Map) FillBits() uint64 {
	if m.Fill != FillNaN {
		return 0
	}
	switch m.Type.Bytes() { // all ones: a quiet NaN in every format
	case 2:
		return 0xffff
	case 4:
		return 0xffffffff
	}
	return ^uint64(0)
}

const magic = "wlTM"

// Encode is the map as 128 bytes, or an error if it is not valid.
func (m *Map) Encode() ([Size]byte, error) {
	var b [Size]byte
	if err := m.Validate(); err != nil {
		return b, err
	}
	copy(b[:], magic)
	copy(b[4:], []byte{byte(m.Type), byte(m.Rank), byte(m.Interleave), byte(m.Swizzle), byte(m.Promotion), byte(m.Fill)})
	le := binary.LittleEndian
	le.PutUint64(b[16:], m.Address)
	for i := range m.Rank {
		le.PutUint32(b[24+4*i:], uint32(m.Dims[i]-1))
		le.PutUint16(b[76+2*i:], uint16(m.Box[i]))
		b[86+i] = byte(max(1, m.ElementStrides[i]))
		if i > 0 {
			le.PutUint64(b[44+8*(i-1):], m.Strides[i-1])
		}
	}
	le.PutUint16(b[92:], uint16(m.Pixels))
	le.PutUint16(b[94:], uint16(m.Channels))
	for i := range m.Lower {
		le.PutUint16(b[96+2*i:], uint16(m.Lower[i]))
		le.PutUint16(b[102+2*i:], uint16(m.Upper[i]))
	}
	le.PutUint32(b[Size-4:], crc32.ChecksumIEEE(b[:Size-4]))
	return b, nil
}

// Decode reads what [Map.Encode] wrote. Bytes that are no map, or were changed, are an error.
func Decode(b []byte) (Map, error) {
	le := binary.LittleEndian
	switch {
	case len(b) != Size:
		return Map{}, argument("%d bytes, want %d", len(b), Size)
	case string(b[:4]) != magic:
		return Map{}, argument("these bytes are no tensor map")
	case le.Uint32(b[Size-4:]) != crc32.ChecksumIEEE(b[:Size-4]):
		return Map{}, argument("the map was changed after it was encoded")
	}
	m := Map{
		Type: DataType(b[4]), Rank: int(b[5]), Interleave: Interleave(b[6]), Swizzle: Swizzle(b[7]), Promotion: L2Promotion(b[8]),
		Fill: Fill(b[9]), Address: le.Uint64(b[16:]), Pixels: uint32(le.Uint16(b[92:])), Channels: uint32(le.Uint16(b[94:])),
	}
	for i := range m.Lower {
		m.Lower[i], m.Upper[i] = int32(int16(le.Uint16(b[96+2*i:]))), int32(int16(le.Uint16(b[102+2*i:])))
	}
	for i := range min(m.Rank, MaxRank) {
		m.Dims[i] = uint64(le.Uint32(b[24+4*i:])) + 1
		m.Box[i] = uint32(le.Uint16(b[76+2*i:]))
		m.ElementStrides[i] = uint32(b[86+i])
		if i > 0 {
			m.Strides[i-1] = le.Uint64(b[44+8*(i-1):])
		}
	}
	return m, m.Validate()
}

// Swizzle is a permutation of the 16-byte chunks of shared memory that keeps the rows of a tile in different banks.
type Swizzle uint8

// The swizzles, by the span within which chunks move. The values are those of the driver's enumeration.
const (
	NoSwizzle Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
	numSwizzles
)

// String names the swizzle.
func (s Swizzle) String() string {
	if s == NoSwizzle {
		return "no swizzle"
	}
	return fmt.Sprintf("the swizzle of %d bytes", s.Span())
}

// Span is the number of bytes within which chunks move: 32, 64 or 128, and 16 without swizzle.
func (s Swizzle) Span() int { return 16 << s }

// Repeat is the number of bytes after which the pattern repeats: 256, 512 or 1024, and 16 without swizzle.
func (s Swizzle) Repeat() int {
	if s == NoSwizzle {
		return 16
	}
	return 8 * s.Span()
}

// Apply is where the byte at addr of the plain layout lies: the number of its 16-byte chunk within the span (address bits 4
// and up) is XORed with as many bits from bit 7 on. It is its own inverse.
func (s Swizzle) Apply(addr uint64) uint64 {
	mask := uint64(s.Span()-1) >> 4
	return addr ^ addr>>7&mask<<4
}
