package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// Paging says where the keys of sequences lie in pages: key t of sequence b in page table[b, t/PageSize], at t mod PageSize.
type Paging struct {
	Pages, PageSize int
	PerSequence     int // entries of the table for each sequence
}

// Slot returns the index of key t of a sequence among the slots of all pages; false where the table has no page for it.
func (p Paging) Slot(table []int32, sequence, t int) (int, bool) {
	entry := t / max(p.PageSize, 1)
	if t < 0 || p.PageSize == 0 || entry >= p.PerSequence {
		return 0, false
	}
	id := int(table[sequence*p.PerSequence+entry])
	if id < 0 || id >= p.Pages {
		return 0, false
	}
	return id*p.PageSize + t%p.PageSize, true
}

// CacheFormat is the block format of packed caches, and CacheBlock the values of a block.
const (
	CacheFormat = compute.Q8_0
	CacheBlock  = 32
)

var cacheTypes = append(append([]compute.DType{}, floats...), compute.Uint32)

// unpackedShape is the shape [… heads d] of the keys that a cache has. One that has an axis less, [… words], is packed: a row of words for the
// heads of a key.
func unpackedShape(cache []int, axes, d int) ([]int, error) {
	if len(cache) != axes-1 || axes < 2 {
		return cache, nil
	}
	cols, err := quant.PackedCols(quant.Type(CacheFormat), cache[axes-2])
	switch {
	case err != nil:
		return nil, fmt.Errorf("packed keys of %d words: %w", cache[axes-2], err)
	case d < 1 || d%CacheBlock != 0 || cols%d != 0:
		return nil, fmt.Errorf("packed keys of %d elements for heads of %d, which must be a multiple of %d that divides them: %w", cols, d, CacheBlock, compute.ErrShape)
	}
	return append(slices.Clone(cache[:axes-2]), cols/d, d), nil
}

// checkPacked rejects caches whose type is not that of their axes.
func checkPacked(cache program.Type, axes int) error {
	if (cache.DType == compute.Uint32) != (len(cache.Shape) == axes-1) {
		return fmt.Errorf("a cache of %v with shape %v: packed keys are Uint32, [… words], others [… heads d]: %w", cache.DType, cache.Shape, compute.ErrShape)
	}
	return nil
}

const packedCache = "Uint32 caches are packed, [… words] in place of [… heads d]: a row of words for the heads of a key, in blocks of 32 " +
	"values as quant.Pack sorts a row of Q8_0; d is a multiple of 32. "

// pagingOf checks pages [pages, pagesize, heads, d] against a table [batch, entries].
func pagingOf(pages, table []int, batch int) (Paging, error) {
	if len(pages) != 4 || len(table) != 2 || table[0] != batch {
		return Paging{}, fmt.Errorf("needs pages [pages pagesize heads d] and a table [%d entries]: %w", batch, compute.ErrShape)
	}
	p := Paging{pages[0], pages[1], table[1]}
	if p.PageSize > 0 && p.PerSequence > program.MaxElements/p.PageSize {
		return p, fmt.Errorf("%d pages of %d keys for a sequence, at most %d keys: %w", p.PerSequence, p.PageSize, program.MaxElements, compute.ErrTooLarge)
	}
	return p, nil
}

// PagedShape derives the sizes of an attention over pages; NK is the keys that a sequence has room for.
func PagedShape(q, k, v, table, lengths []int, o compute.AttentionOptions) (AttentionDims, Paging, error) {
	batch := 1
	if len(q) == 4 {
		batch = q[0]
	}
	if !program.EqualShape(k, v) {
		return AttentionDims{}, Paging{}, fmt.Errorf("pages of keys and of values differ: %w", compute.ErrShape)
	}
	var err error
	if len(q) > 0 {
		if k, err = unpackedShape(k, 4, q[len(q)-1]); err != nil {
			return AttentionDims{}, Paging{}, err
		}
	}
	p, err := pagingOf(k, table, batch)
	if err != nil {
		return AttentionDims{}, p, err
	}
	if !program.EqualShape(lengths, []int{batch}) {
		return AttentionDims{}, p, fmt.Errorf("lengths must have shape [%d]: %w", batch, compute.ErrShape)
	}
	rows := []int{batch, p.PerSequence * p.PageSize, k[2], k[3]}
	if len(q) == 3 {
		rows = rows[1:]
	}
	d, err := AttentionShape(q, rows, rows, o)
	return d, p, err
}

const pagedSpecial = "q is [batch, n, heads, d], or lacks the batch; kpages and vpages are [pages, " +
	"pagesize, kvheads, d], of one type. " + packedCache + "table is [batch, entries]; lengths holds a number of keys for each " +
	"sequence. Key t of sequence b lies in page table[b, t/pagesize] at t mod pagesize. Keys of pages that do not " +
	"exist, with ids below 0 or from pages on, are not seen. Lengths beyond entries·pagesize mean that many keys. " +
	"All else is as in attention."

// PagedAttention is attention over a cache in pages.
var PagedAttention = &program.Entry{Name: "paged_attention", Method: "PagedAttention", Class: program.Matrix, Dots: attentionFlops(4),
	Doc: "attention over keys and values in pages that a table names for each sequence (Kwon et al., " +
		"\"PagedAttention\", 2023)",
	Special: pagedSpecial,
	Inputs: []program.Input{{Name: "q", Types: floats}, {Name: "kpages", Types: cacheTypes}, {Name: "vpages", Types: cacheTypes},
		{Name: "table", Types: []compute.DType{compute.Int32}}, {Name: "lengths", Types: []compute.DType{compute.Int32}}},
	Options: compute.AttentionOptions{},
	Tol:     attentionTol, Domain: [2]float64{-2, 2},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		_, _, err := PagedShape(in[0].Shape, in[1].Shape, in[2].Shape, in[3].Shape, in[4].Shape, a.Options.(compute.AttentionOptions))
		if err == nil {
			err = checkPacked(in[1], 4)
		}
		if err == nil && in[1].DType != in[2].DType {
			err = fmt.Errorf("pages are %v and %v, must be one type: %w", in[1].DType, in[2].DType, compute.ErrDType)
		}
		return in[0], err
	}}
