// Package lz4 compresses bytes on a device, in independent pages of 4 KiB, to blocks that every LZ4 decoder reads. The result
// is the same on every device.
//
// It is a convenience over the operations lz4_compress and lz4_decompress, which batches have as well.
package lz4

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// PageSize is the number of bytes of a page. A block of this size is stored: the page itself.
const PageSize = 4096

const words = PageSize / 4

// ErrMalformed is the error of a block that is not a valid LZ4 block.
var ErrMalformed = errors.New("malformed LZ4 block")

// Device is the part of a device that compression needs; every device implements it.
type Device interface {
	LZ4CompressAsync(blocks, sizes any, pages compute.Operand) *compute.Future
	LZ4DecompressAsync(pages, status any, blocks, sizes compute.Operand) *compute.Future
}

// Pages are compressed pages.
type Pages struct {
	Len    int      // bytes before compression; the last page is filled up with zeros
	Blocks []uint32 // 1024 words for each page, the lowest byte of a word first; the block is at the beginning
	Sizes  []int32  // of the blocks, in bytes
}

// Compress compresses data.
func Compress(ctx context.Context, d Device, data []byte) (*Pages, error) {
	n := (len(data) + PageSize - 1) / PageSize
	p := &Pages{Len: len(data), Blocks: make([]uint32, n*words), Sizes: make([]int32, n)}
	pages := make([]uint32, n*words)
	fill(pages, data)
	f := d.LZ4CompressAsync(p.Blocks, p.Sizes, compute.Of(pages, n, words))
	if err := f.Await(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// FromBlocks makes pages from blocks of any LZ4 encoder, each of which holds 4 KiB, the last one the rest of length bytes.
// Blocks of 4,096 bytes are stored pages. Errors wrap [compute.ErrArgument].
func FromBlocks(blocks [][]byte, length int) (*Pages, error) {
	n := len(blocks)
	if length < 0 || (length+PageSize-1)/PageSize != n {
		return nil, fmt.Errorf("%d blocks for %d bytes: %w", n, length, compute.ErrArgument)
	}
	p := &Pages{Len: length, Blocks: make([]uint32, n*words), Sizes: make([]int32, n)}
	for i, b := range blocks {
		if len(b) > PageSize {
			return nil, fmt.Errorf("block %d has %d bytes, more than a page: store the page: %w", i, len(b), compute.ErrArgument)
		}
		p.Sizes[i] = int32(len(b))
		fill(p.Blocks[i*words:(i+1)*words], b)
	}
	return p, nil
}

// Block returns a copy of the block of a page.
func (p *Pages) Block(page int) []byte {
	return bytesOf(p.Blocks[page*words : (page+1)*words])[:p.Sizes[page]]
}

// Size is the number of bytes of all blocks.
func (p *Pages) Size() int {
	n := 0
	for _, s := range p.Sizes {
		n += int(s)
	}
	return n
}

// Decompress returns the decompressed bytes. Where blocks are malformed, or hold less than their page, the error names the
// pages and wraps [ErrMalformed]; the other pages are returned nevertheless.
func Decompress(ctx context.Context, d Device, p *Pages) ([]byte, error) {
	n := len(p.Sizes)
	if p.Len < 0 || (p.Len+PageSize-1)/PageSize != n || len(p.Blocks) != n*words {
		return nil, fmt.Errorf("%d sizes and %d words for %d bytes: %w", n, len(p.Blocks), p.Len, compute.ErrArgument)
	}
	pages, status := make([]uint32, n*words), make([]int32, n)
	f := d.LZ4DecompressAsync(pages, status, compute.Of(p.Blocks, n, words), compute.Of(p.Sizes, n))
	if err := f.Await(ctx); err != nil {
		return nil, err
	}
	var bad []error
	for i, s := range status {
		if left := min(p.Len-i*PageSize, PageSize); s < 0 {
			bad = append(bad, fmt.Errorf("page %d: status %d: %w", i, s, ErrMalformed))
		} else if int(s) < left {
			bad = append(bad, fmt.Errorf("page %d: %d bytes of %d: %w", i, s, left, ErrMalformed))
		}
	}
	return bytesOf(pages)[:p.Len], errors.Join(bad...)
}

// fill puts bytes into words.
func fill(to []uint32, data []byte) {
	for ; len(data) >= 4; to, data = to[1:], data[4:] {
		to[0] = binary.LittleEndian.Uint32(data)
	}
	for i, b := range data {
		to[0] |= uint32(b) << (8 * i)
	}
}

func bytesOf(words []uint32) []byte {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
