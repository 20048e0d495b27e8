package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// CacheRows is the sizes of an append: sequences, rows for each, keys of a cache or page, elements of a key.
type CacheRows struct{ Batch, N, Capacity, Width int }

// KVAppendShape checks a cache [batch, capacity, heads, d] against rows [batch, n, heads, d] and positions [batch].
func KVAppendShape(cache, rows, positions []int) (CacheRows, error) {
	cache, err := unpackedRows(cache, rows)
	if err != nil {
		return CacheRows{}, err
	}
	if len(cache) != 4 || len(rows) != 4 || !program.EqualShape(cache[2:], rows[2:]) || cache[0] != rows[0] {
		return CacheRows{}, fmt.Errorf("needs a cache [batch capacity heads d] and rows [batch n heads d]: %w", compute.ErrShape)
	}
	return appendShape(cache, rows, positions)
}

// KVAppendPagedShape checks pages [pages, pagesize, heads, d] against rows [batch, n, heads, d], positions [batch] and a table
// [batch, entries].
func KVAppendPagedShape(pages, rows, positions, table []int) (CacheRows, Paging, error) {
	pages, err := unpackedRows(pages, rows)
	if err != nil {
		return CacheRows{}, Paging{}, err
	}
	if len(pages) != 4 || len(rows) != 4 || !program.EqualShape(pages[2:], rows[2:]) {
		return CacheRows{}, Paging{}, fmt.Errorf("needs pages [pages pagesize heads d] and rows [batch n heads d]: %w", compute.ErrShape)
	}
	p, err := pagingOf(pages, table, rows[0])
	if err != nil {
		return CacheRows{}, p, err
	}
	r, err := appendShape(pages, rows, positions)
	return r, p, err
}

// unpackedRows is the shape of a cache as if it were not packed.
func unpackedRows(cache, rows []int) ([]int, error) {
	if len(rows) != 4 {
		return cache, nil
	}
	return unpackedShape(cache, 4, rows[3])
}

func appendShape(cache, rows, positions []int) (CacheRows, error) {
	r := CacheRows{rows[0], rows[1], cache[1], rows[2] * rows[3]}
	if !program.EqualShape(positions, []int{r.Batch}) {
		return r, fmt.Errorf("positions must have shape [%d]: %w", r.Batch, compute.ErrShape)
	}
	return r, nil
}

// checkRows rejects rows that can be neither copied nor rounded.
func checkRows(cache, rows program.Type, err error) (program.Type, error) {
	if err == nil {
		err = checkPacked(cache, 4)
	}
	if err == nil && rows.DType != cache.DType && rows.DType != compute.Float32 {
		err = fmt.Errorf("rows are %v, must be f32 or, like the cache, %v: %w", rows.DType, cache.DType, compute.ErrDType)
	}
	return cache, err
}

const appendSpecial = "rows is [batch, n, heads, d]: Float32, rounded to nearest even, or of the cache's " +
	"type, copied bit for bit. positions holds the position of the first row of each sequence; row i has that " +
	"position plus i. Rows at positions below 0 or from 2³¹ on are not written. Slots that no row goes to are " +
	"unchanged. " + packedCache + "Rows that are packed are Float32. The scale of a block is its largest magnitude divided by 127, rounded to " +
	"Float16; its values become the nearest multiples of the scale, up to 127 times it, halves away from 0. A packed block becomes NaN if a value is " +
	"not finite, or the scale would not be. "

// Entries of caches.
var (
	KVAppend = &program.Entry{Name: "kv_append", Method: "KVAppend", Class: program.Move, Updates: 1,
		Doc: "a cache of keys or values with new rows written to it, each at its position mod capacity",
		Special: appendSpecial + "cache is [batch, capacity, heads, d]. Once positions exceed the capacity, the newest rows replace " +
			"the oldest; of more rows than slots the last ones remain.",
		Inputs: []program.Input{{Name: "cache", Types: cacheTypes}, {Name: "rows", Types: floats},
			{Name: "positions", Types: []compute.DType{compute.Int32}}},
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			_, err := KVAppendShape(in[0].Shape, in[1].Shape, in[2].Shape)
			return checkRows(in[0], in[1], err)
		}}

	KVAppendPaged = &program.Entry{Name: "kv_append_paged", Method: "KVAppendPaged", Class: program.Move, Updates: 1,
		Doc: "pages of keys or values with new rows written to them, each in the page that a table names " +
			"for its position",
		Special: appendSpecial + "pages is [pages, pagesize, heads, d], table is [batch, entries]. Position t of sequence b lies in " +
			"page table[b, t/pagesize] at t mod pagesize. Rows at positions from entries·pagesize on are not written, nor are " +
			"rows in pages that do not exist, with ids below 0 or from pages on. If two rows go to one slot, its content is undefined.",
		Inputs: []program.Input{{Name: "pages", Types: cacheTypes}, {Name: "rows", Types: floats},
			{Name: "positions", Types: []compute.DType{compute.Int32}}, {Name: "table", Types: []compute.DType{compute.Int32}}},
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			_, _, err := KVAppendPagedShape(in[0].Shape, in[1].Shape, in[2].Shape, in[3].Shape)
			return checkRows(in[0], in[1], err)
		}}
)
