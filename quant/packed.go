package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Packed is a matrix as the operations of devices take it: a tensor of Uint32 with a row of words for each row of values.
//
// Blocks of 18, 22, 34 or 210 bytes are not multiples of 4 bytes, and could not be read several words at a time. So the bytes
// of a row are sorted into planes ([Type.Planes]): the first plane of all blocks of the row, then the second of all blocks,
// and so on, then zeros up to a multiple of 16 bytes. The first plane of each format is a multiple of 16 bytes, the second of
// four where a third follows. [Packed.Unpack] is the inverse.
type Packed struct {
	Type       Type
	Rows, Cols int
	Words      []uint32 // little-endian
}

// Plane is a part of each block.
type Plane struct{ Offset, Size int }

// packedAlign is what rows are multiples of, in bytes.
const packedAlign = 16

// planes of the formats that weights have.
var planes = map[Type][]Plane{
	Q4_0: {{Q4_0Quants, 16}, {Q4_0Scale, 2}},
	Q4_1: {{Q4_1Quants, 16}, {Q4_1Scale, 4}},
	Q5_0: {{Q5_0Quants, 16}, {Q5_0High, 4}, {Q5_0Scale, 2}},
	Q5_1: {{Q5_1Quants, 16}, {Q5_1High, 4}, {Q5_1Scale, 4}},
	Q8_0: {{Q8_0Quants, 32}, {Q8_0Scale, 2}},
	Q2_K: {{Q2_KScales, 80}, {Q2_KScale, 4}}, // scales and quants; d and dmin
	Q3_K: {{Q3_KHigh, 96}, {Q3_KScales, 12}, {Q3_KScale, 2}},
	Q4_K: {{0, Q4_KSize}},
	Q5_K: {{0, Q5_KSize}},
	Q6_K: {{Q6_KLow, 208}, {Q6_KScale, 2}}, // low, high and scales; d
}

// Planes returns the parts into which [Pack] sorts blocks; nil for types that weights of devices do not have.
func (t Type) Planes() []Plane { return slices.Clone(planes[t]) }

// PackedWords is the number of words of a packed row of cols values. Errors wrap [compute.ErrShape], [compute.ErrDType] and
// [compute.ErrUnsupported].
func PackedWords(t Type, cols int) (int, error) {
	size, err := t.RowSize(cols)
	switch {
	case err != nil:
		return 0, err
	case planes[t] == nil:
		return 0, fmt.Errorf("quant: %v is no format of weights: %w: %w", t, compute.ErrDType, compute.ErrUnsupported)
	case size > math.MaxInt-packedAlign:
		return 0, fmt.Errorf("quant: %d values of %v: %w", cols, t, compute.ErrTooLarge)
	}
	return (size + packedAlign - 1) / packedAlign * packedAlign / 4, nil
}

// PackedCols is the number of values of a packed row: the inverse of [PackedWords], which differs for each number of blocks.
func PackedCols(t Type, words int) (int, error) {
	if planes[t] == nil {
		return 0, fmt.Errorf("quant: %v is no format of weights: %w: %w", t, compute.ErrDType, compute.ErrUnsupported)
	}
	if words >= 0 && words <= math.MaxInt/4 {
		cols := 4 * words / t.BlockSize() * t.BlockLen()
		if n, err := PackedWords(t, cols); err == nil && n == words {
			return cols, nil
		}
	}
	return 0, fmt.Errorf("quant: no row of %v has %d words: %w", t, words, compute.ErrShape)
}

// Pack sorts the blocks of a matrix. Errors are those of [PackedWords]; Inf and NaN are not looked for, see [Check].
func Pack(m *Matrix) (*Packed, error) {
	p := &Packed{}
	if err := PackInto(p, m); err != nil {
		return nil, err
	}
	return p, nil
}

// PackInto is [Pack] into p, whose memory it uses again if that is large enough. After an error p is unchanged.
func PackInto(p *Packed, m *Matrix) error {
	words, err := PackedWords(m.Type, m.Cols)
	if err != nil {
		return err
	}
	size, err := matrixSize(m.Type, m.Rows, m.Cols)
	switch {
	case err != nil:
		return err
	case size != len(m.Data):
		return fmt.Errorf("quant: %d × %d values of %v are %d bytes, not %d: %w",
			m.Rows, m.Cols, m.Type, size, len(m.Data), compute.ErrShape)
	case m.Rows > 0 && words > math.MaxInt/4/m.Rows:
		return fmt.Errorf("quant: %d × %d values of %v: %w", m.Rows, m.Cols, m.Type, compute.ErrTooLarge)
	}
	*p = Packed{m.Type, m.Rows, m.Cols, slices.Grow(p.Words[:0], m.Rows*words)[:m.Rows*words]}
	row, bytes := m.RowSize(), make([]byte, 4*words)
	for r := range m.Rows {
		shuffle(bytes, m.Data[r*row:(r+1)*row], m.Type, func(packed, block []byte) { copy(packed, block) })
		to := p.Words[r*words : (r+1)*words]
		for i := range to {
			to[i] = binary.LittleEndian.Uint32(bytes[4*i:])
		}
	}
	return nil
}

// Shape is that of the tensor: rows and words, which a matrix without rows has too. It is [Rows 0] for a Packed that [Pack] did not
// make.
func (p *Packed) Shape() []int {
	words, _ := PackedWords(p.Type, p.Cols)
	return []int{p.Rows, words}
}

// Unpack returns the matrix that was packed. Errors are those of [Pack], for a Packed that was not made by it.
func (p *Packed) Unpack() (*Matrix, error) {
	words, err := PackedWords(p.Type, p.Cols)
	if err != nil {
		return nil, err
	}
	size, err := matrixSize(p.Type, p.Rows, p.Cols)
	switch {
	case err != nil:
		return nil, err
	case p.Rows == 0 && len(p.Words) > 0 || p.Rows > 0 && (len(p.Words)%p.Rows != 0 || len(p.Words)/p.Rows != words):
		return nil, fmt.Errorf("quant: %d words are not %d rows of %d: %w", len(p.Words), p.Rows, words, compute.ErrShape)
	}
	m := &Matrix{p.Type, p.Rows, p.Cols, make([]byte, size)}
	row, bytes := m.RowSize(), make([]byte, 4*words)
	for r := range m.Rows {
		for i, w := range p.Words[r*words : (r+1)*words] {
			binary.LittleEndian.PutUint32(bytes[4*i:], w)
		}
		shuffle(bytes, m.Data[r*row:(r+1)*row], m.Type, func(packed, block []byte) { copy(block, packed) })
	}
	return m, nil
}

// shuffle calls move with the offsets of each plane of each block in a packed row and in a row of blocks.
func shuffle(packed, blocks []byte, t Type, move func(packed, block []byte)) {
	size := t.BlockSize()
	if parts := planes[t]; len(parts) == 1 {
		move(packed[:len(blocks)], blocks)
		return
	}
	for _, p := range planes[t] {
		for at := p.Offset; at < len(blocks); at += size {
			move(packed[:p.Size], blocks[at:at+p.Size])
			packed = packed[p.Size:]
		}
	}
}
